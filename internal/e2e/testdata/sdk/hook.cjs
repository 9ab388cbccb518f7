// Makes the requests that the React hook makes, in its order: a page sends a message, is reloaded, sends another one, and stops it. Arguments: the
// agent's URL, the key.
const assert = require("node:assert/strict");
const { Client } = require("@langchain/langgraph-sdk");

const [apiUrl, apiKey] = process.argv.slice(2);
const modes = ["values", "messages-tuple", "custom", "updates"];
const answered = ["human", "ai", "tool", "ai"];
const types = (values) => (values?.messages ?? []).map((message) => message.type);

// page is the hook of one page: what it submits goes to its thread, and what it shows is the history and what it was streamed.
function page(thread) {
  const client = new Client({ apiUrl, apiKey });
  return {
    client,
    submit: async function* (city, configurable) {
      thread ??= (await client.threads.create({ metadata: {} })).thread_id;
      yield* client.runs.stream(thread, "agent", {
        input: { messages: [{ type: "human", content: `what's the weather in ${city}?` }] }, config: { configurable }, streamMode: modes,
        multitaskStrategy: "interrupt", streamSubgraphs: false, streamResumable: true, onDisconnect: "continue", durability: "async",
        onRunCreated: (run) => { this.run = run; }, signal: (this.abort = new AbortController()).signal,
      });
    },
    join: (run, lastEventId) => client.runs.joinStream(thread, run, { lastEventId, streamMode: modes }),
    stop: (run) => client.runs.cancel(thread, run),
    history: () => client.threads.getHistory(thread, { limit: 10 }),
    thread: () => thread,
  };
}

async function take(stream, enough) {
  const parts = [];
  try {
    for await (const part of stream) {
      parts.push(part);
      if (enough?.(parts)) break;
    }
  } catch (error) {
    if (error.name !== "AbortError") throw error;
  }
  return parts;
}

const tokens = (parts) => parts.filter((part) => part.event === "messages" && part.data[0].content).length;
const text = (parts) => parts.filter((part) => part.event === "messages").map((part) => part.data[0].content).join("");

async function main() {
  const long = { token_delay_ms: 15, node_delay_ms: 10, answer_words: 150 };
  const first = page();
  const begun = await take(first.submit("sf", long), (parts) => tokens(parts) >= 5);
  assert.equal(begun[0].data.run_id, first.run.run_id);
  first.abort.abort(); // the page is closed

  const second = page(first.thread());
  assert.equal((await second.client.threads.get(first.thread())).status, "busy");
  const [now] = await second.history();
  assert.deepEqual(types(now.values), answered.slice(0, 3));
  const rest = await take(second.join(first.run.run_id, begun.at(-1).id));
  const whole = await take(second.join(first.run.run_id, "-1"));
  assert.deepEqual([...begun, ...rest], whole);
  const [done] = await second.history();
  assert.deepEqual(types(done.values), answered);
  assert.equal(done.values.messages[3].content, text(whole));
  assert.deepEqual([done.next, done.tasks], [[], []]);

  // Stop: the stream ends by itself, and what was shown stays.
  let stopped;
  const cut = await take(second.submit("rome", { ...long, answer_words: 10_000 }), (parts) => {
    if (tokens(parts) >= 5) stopped ??= second.stop(second.run.run_id);
  });
  await stopped;
  assert.equal((await second.client.runs.get(second.thread(), second.run.run_id)).status, "interrupted");
  const [left] = await second.history();
  assert.deepEqual(types(left.values), [...answered, ...answered]);
  assert.equal(left.values.messages[7].content, text(cut));

  // Double texting: the second message interrupts the first one's answer.
  const third = page(first.thread());
  let next;
  const overtaken = await take(second.submit("oslo", { ...long, answer_words: 10_000 }), (parts) => {
    if (tokens(parts) >= 5) next ??= take(third.submit("nyc", { token_delay_ms: 1, node_delay_ms: 1 }));
  });
  const answer = await next;
  assert.ok(!overtaken.some((part) => part.event === "error"), JSON.stringify(overtaken.at(-1)));
  const [final] = await third.history();
  assert.deepEqual(types(final.values), [...answered, ...answered, ...answered, ...answered]);
  assert.equal(final.values.messages[11].content, text(overtaken));
  assert.deepEqual(answer.filter((part) => part.event === "values").at(-1).data, final.values);
  assert.equal((await third.client.threads.get(first.thread())).status, "idle");
}

main().then(() => process.exit(0), (error) => {
  console.error(error);
  process.exit(1);
});
