// Drives the interrupt scenario through the JavaScript SDK, as its documentation has it. Arguments:
// the agent's URL, the key.
const assert = require("node:assert/strict");
const { answered, ask, brisk, client, collect, create, fast, slow, tell, types, until } = require("./story.cjs");

async function background() {
  const thread = await create();
  const first = await client.runs.create(thread, "agent", { input: ask("sf"), config: slow });
  await until(async () => types((await client.threads.getState(thread)).values).length === 3);
  const second = await client.runs.create(thread, "agent", { input: ask("nyc"), config: fast, multitaskStrategy: "interrupt" });
  assert.deepEqual(types(await client.runs.join(thread, second.run_id)), ["human", "ai", "tool", ...answered]);
  const state = await client.threads.getState(thread);
  assert.deepEqual(types(state.values), ["human", "ai", "tool", ...answered]);
  assert.deepEqual(state.next, []);
  assert.equal((await client.runs.get(thread, first.run_id)).status, "interrupted");
  assert.equal((await client.runs.get(thread, second.run_id)).status, "success");
  assert.deepEqual(types(await client.runs.join(thread, first.run_id)), ["human", "ai", "tool"]);
  assert.deepEqual((await client.runs.list(thread)).map((run) => run.run_id), [second.run_id, first.run_id]);
  assert.equal((await client.threads.get(thread)).status, "idle");
}

async function streamed() {
  const thread = await create({ metadata: { from: "a test" } });
  let created, second, shown = "";
  const config = { configurable: { token_delay_ms: 20, answer_words: 10_000, node_delay_ms: 0 } };
  for await (const part of client.runs.stream(thread, "agent", {
    input: ask("sf"), config, streamMode: ["messages-tuple", "updates"], streamResumable: true, onRunCreated: (run) => { created = run; },
  })) {
    assert.ok(!part.event.startsWith("error"), JSON.stringify(part));
    if (part.event === "messages") shown += part.data[0].content;
    if (shown.length > 40 && !second) {
      second = await client.runs.create(thread, "agent", { input: ask("nyc"), config: fast, multitaskStrategy: "interrupt" });
    }
  }
  assert.equal(created.thread_id, thread);
  await client.runs.join(thread, second.run_id);
  const { messages } = (await client.threads.getState(thread)).values;
  assert.deepEqual(messages.map((message) => message.type), [...answered, ...answered]);
  assert.equal(messages[3].content, shown);
  assert.equal((await client.runs.get(thread, created.run_id)).status, "interrupted");
}

async function joinedStream() {
  const thread = await create();
  const run = await client.runs.create(thread, "agent", {
    input: ask("sf"), config: brisk, streamMode: ["values", "messages-tuple"], streamResumable: true,
  });
  const whole = await collect(client.runs.joinStream(thread, run.run_id, { lastEventId: "-1" }));
  assert.equal(whole[0].event, "metadata");
  assert.equal(whole.at(-1).event, "values");
  assert.deepEqual(await collect(client.runs.joinStream(thread, run.run_id, { lastEventId: "-1" })), whole);
  assert.deepEqual(await collect(client.runs.joinStream(thread, run.run_id, { lastEventId: whole[4].id })), whole.slice(5));
}

async function siblings() {
  let thread = await create();
  await client.runs.create(thread, "agent", { input: ask("sf"), config: brisk });
  const values = await client.runs.wait(thread, "agent", { input: ask("nyc"), config: fast, multitaskStrategy: "enqueue" });
  assert.deepEqual(types(values), [...answered, ...answered]);
  thread = await create();
  await client.runs.create(thread, "agent", { input: ask("sf"), config: slow });
  await assert.rejects(client.runs.create(thread, "agent", { input: ask("nyc"), multitaskStrategy: "reject" }), { status: 409 });
  assert.equal((await client.runs.list(thread)).length, 1);
}

async function rolledBack() {
  const thread = await create();
  await client.runs.wait(thread, "agent", { input: ask("rome"), config: fast });
  const first = await client.runs.create(thread, "agent", { input: ask("sf"), config: slow });
  await until(async () => types((await client.threads.getState(thread)).values).length === 7);
  const queued = await client.runs.create(thread, "agent", { input: ask("oslo"), config: fast });
  const second = await client.runs.create(thread, "agent", { input: ask("nyc"), config: fast, multitaskStrategy: "rollback" });
  const { messages } = await client.runs.join(thread, second.run_id);
  assert.deepEqual(messages.map((message) => message.type), [...answered, ...answered]);
  assert.match(messages[4].content, /nyc/);
  for (const gone of [first, queued]) {
    await assert.rejects(client.runs.get(thread, gone.run_id), { status: 404 });
    await assert.rejects(client.runs.join(thread, gone.run_id), { status: 404 });
  }
  assert.deepEqual((await client.runs.list(thread)).map((run) => run.status), ["success", "success"]);
  const history = await client.threads.getHistory(thread, { limit: 100 });
  assert.ok(!history.some((state) => [first.run_id, queued.run_id].includes(state.metadata.run_id)), JSON.stringify(history));
}

async function cancelled() {
  const thread = await create();
  const first = await client.runs.create(thread, "agent", { input: ask("sf"), config: slow });
  await until(async () => types((await client.threads.getState(thread)).values).length === 3);
  await client.runs.cancel(thread, first.run_id, true);
  assert.equal((await client.runs.get(thread, first.run_id)).status, "interrupted");
  await assert.rejects(client.runs.cancel(thread, first.run_id), { status: 404 });
  const second = await client.runs.create(thread, "agent", { input: ask("rome"), config: slow });
  await client.runs.cancel(thread, second.run_id, true, "rollback");
  await assert.rejects(client.runs.get(thread, second.run_id), { status: 404 });
  assert.deepEqual(types(await client.runs.wait(thread, "agent", { input: ask("nyc"), config: fast })), ["human", "ai", "tool", ...answered]);
}

/**
 * What the agent does not show itself: its checkpoints, each as it can be read later and gone on
 * from, and the nodes between them.
 */
async function steps() {
  const thread = await create();
  const parts = await collect(client.runs.stream(thread, "agent", { input: ask("sf"), config: fast, streamMode: ["checkpoints", "debug"] }));
  const shown = parts.filter((part) => part.event === "checkpoints").map((part) => part.data);
  assert.deepEqual(shown.map((checkpoint) => types(checkpoint.values)), [1, 2, 3, 4].map((n) => answered.slice(0, n)));
  for (const { config, parent_config: before, ...checkpoint } of shown) {
    assert.deepEqual(checkpoint, await client.threads.getState(thread, checkpoint.checkpoint));
    assert.equal(config.configurable.checkpoint_id, checkpoint.checkpoint.checkpoint_id);
    assert.equal(before?.configurable.checkpoint_id, checkpoint.parent_checkpoint?.checkpoint_id);
  }
  const debug = parts.filter((part) => part.event === "debug").map((part) => part.data);
  assert.deepEqual(debug.map(({ type }) => type), ["checkpoint", ...Array(3).fill(["task", "task_result", "checkpoint"]).flat()]);
  assert.deepEqual(debug.filter(({ type }) => type === "task").map(({ payload }) => payload.name), ["model", "tools", "model"]);
  const config = { configurable: { ...shown[0].config.configurable, ...fast.configurable } };
  assert.deepEqual(types(await client.runs.wait(thread, "agent", { config })), answered);
}

async function errors() {
  const thread = await create();
  const again = await client.threads.create({ threadId: thread, ifExists: "do_nothing" });
  assert.equal(again.thread_id, thread);
  await assert.rejects(client.threads.create({ threadId: thread }), { status: 409 });
  await assert.rejects(client.threads.get("0191f6a0-0000-7000-8000-000000000000"), { status: 404 });
  await assert.rejects(client.runs.create(thread, "agent", { input: ask("sf"), multitaskStrategy: "panic" }), { status: 422 });
  const config = { configurable: { node_delay_ms: 0, fail: "tools" } };
  const values = await client.runs.wait(thread, "agent", { input: ask("sf"), config, raiseError: false });
  assert.equal(values.__error__.error, "NodeError");
  await assert.rejects(client.runs.wait(thread, "agent", { input: ask("sf"), config }), /NodeError/);
  const parts = await collect(client.runs.stream(thread, "agent", { input: ask("sf"), config }));
  assert.equal(parts.at(-1).event, "error");
}

// Longer than the silence that the server allows itself.
async function longWait() {
  const thread = await create();
  const config = { configurable: { node_delay_ms: 0, token_delay_ms: 5500, answer_words: 1 } };
  assert.deepEqual(types(await client.runs.wait(thread, "agent", { input: ask("sf"), config })), answered);
  const parts = await collect(client.runs.stream(thread, "agent", { input: ask("nyc"), config }));
  assert.deepEqual(parts.map((part) => part.event), ["metadata", "values", "values", "values", "values"]);
}

tell(background, streamed, joinedStream, siblings, rolledBack, cancelled, steps, errors, longWait);
