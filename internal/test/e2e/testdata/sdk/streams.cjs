// Drives threads.stream, the thread-centric streaming protocol, through the JavaScript SDK.
// Arguments: the agent's URL, the key, the transport.
const assert = require("node:assert/strict");
const { client, isRoot, said, stream, until } = require("./threads-v3.cjs");
const { answered, ask, brisk, fast, slow, tell, types } = require("./story.cjs");

const long = { configurable: { token_delay_ms: 20, answer_words: 10_000, node_delay_ms: 0 } };
const channels = ["lifecycle", "messages", "updates", "values", "tools", "checkpoints", "tasks", "input", "custom"];

const frames = (events) => events.filter((event) => event.method === "messages").map(said);
const text = (events) =>
  events.filter((event) => event.method === "messages" && said(event) === "content-block-delta").map((event) => event.params.data.delta.text ?? "").join("");
const count = (list, item) => list.filter((other) => other === item).length;

async function collect(iterable, take = (item) => item) {
  const all = [];
  for await (const item of iterable) all.push(await take(item));
  return all;
}

/** started has tokens in their order, tools and the last values. */
async function started() {
  const thread = stream();
  const { run_id } = await thread.run.start({ input: ask("sf"), config: { configurable: { ...brisk.configurable, answer_words: 250 } } });
  const tokens = [];
  const messages = collect(thread.messages, async (message) => {
    for await (const token of message.text) tokens.push(token);
    return String(await message.text);
  });
  const tools = collect(thread.toolCalls); // each comes when it begins, and again when it has ended
  const values = await thread.values;
  assert.deepEqual(types(values), answered);
  assert.equal((await messages).at(-1), values.messages[3].content);
  assert.equal(tokens.join(""), values.messages[3].content);
  assert.ok(tokens.length > 3);
  const [call] = values.messages[1].tool_calls;
  const [handle] = await tools;
  assert.deepEqual([handle.callId, handle.name, handle.args, await handle.output], [call.id, call.name, call.args, values.messages[2].content]);
  assert.equal((await client.runs.get(thread.threadId, run_id)).status, "success");
  await thread.close();
}

/** interrupted ends the first run before the second begins, and keeps what was shown. */
async function interrupted() {
  const thread = stream();
  const first = await thread.run.start({ input: ask("sf"), config: long });
  const subscription = await thread.subscribe({ channels });
  let second;
  const seen = await until(subscription, async (event, events) => {
    if (!second && text(events).length > 40) second = await thread.run.start({ input: ask("nyc"), config: fast, multitaskStrategy: "interrupt" });
    return second && isRoot(event) && said(event) === "completed";
  });
  assert.deepEqual(
    seen.filter(isRoot).map((event) => [said(event), event.event_id.split(":")[1]]),
    [["running", first.run_id], ["interrupted", first.run_id], ["running", second.run_id], ["completed", second.run_id]],
  );
  assert.equal(count(frames(seen), "message-start"), count(frames(seen), "message-finish"));
  const end = seen.findIndex((event) => isRoot(event) && said(event) === "interrupted");
  const { values } = await client.threads.getState(thread.threadId);
  assert.deepEqual(types(values), [...answered, ...answered]);
  assert.equal(values.messages[3].content, text(seen.slice(0, end)));
  await thread.close();
}

/** strategies that leave the first run alone. */
async function strategies() {
  const thread = stream();
  const { run_id } = await thread.run.start({ input: ask("sf"), config: long });
  const subscription = await thread.subscribe({ channels: ["lifecycle", "values"] });
  await assert.rejects(thread.run.start({ input: ask("nyc"), multitaskStrategy: "reject" }), /busy|unfinished|running/i);
  await thread.run.start({ input: ask("nyc"), config: fast, multitaskStrategy: "enqueue" });
  await client.runs.cancel(thread.threadId, run_id);
  const seen = await until(subscription, (event) => isRoot(event) && said(event) === "completed");
  assert.deepEqual(seen.filter(isRoot).map(said), ["running", "interrupted", "running", "completed"]);
  await thread.close();
}

/** reloaded pages see the whole answer, also when they come in the middle. */
async function reloaded() {
  const page = stream();
  await page.run.start({ input: ask("sf"), config: brisk });
  const before = await until(await page.subscribe({ channels }), (_, events) => text(events).length > 10);
  await page.close();
  const again = stream(page.threadId);
  const seen = await until(await again.subscribe({ channels }), (event) => isRoot(event) && said(event) === "completed");
  const numbers = new Map(seen.map((event) => [event.event_id, event.seq]));
  for (const event of before) assert.equal(numbers.get(event.event_id), event.seq);
  const { values } = await client.threads.getState(page.threadId);
  assert.equal(text(seen), values.messages[3].content);
  await again.close();
}

async function failing() {
  const thread = stream();
  await thread.run.start({ input: ask("sf"), config: { configurable: { node_delay_ms: 0, fail: "tools" } } });
  const seen = await until(await thread.subscribe({ channels }), (event) => isRoot(event) && said(event) !== "running");
  assert.equal(said(seen.at(-1)), "failed");
  assert.match(seen.at(-1).params.data.error, /^node tools fails because/);
  await thread.close();
}

async function cancelled() {
  const thread = stream();
  const { run_id } = await thread.run.start({ input: ask("sf"), config: slow });
  let asked = false;
  const seen = await until(await thread.subscribe({ channels }), async (event, events) => {
    if (!asked && text(events)) {
      asked = true;
      await client.runs.cancel(thread.threadId, run_id);
    }
    return isRoot(event) && said(event) !== "running";
  });
  assert.equal(said(seen.at(-1)), "interrupted");
  assert.equal(count(frames(seen), "message-start"), count(frames(seen), "message-finish"));
  await thread.close();
}

tell(started, interrupted, strategies, reloaded, failing, cancelled);
