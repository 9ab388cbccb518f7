// Streams while the server is killed and started again. Prints a line when that may happen.
// Arguments: the agent's URL, the key.
const assert = require("node:assert/strict");
const { createRequire } = require("node:module");
const path = require("node:path");
const { Client } = require("@langchain/langgraph-sdk");
const { apiKey, apiUrl, tell } = require("./story.cjs");
const threads = createRequire(path.join(process.env.NODE_PATH, "..", "..", "js-threads", "package.json"))("@langchain/langgraph-sdk");

// It tries for a minute: a busy machine may take longer to start the server than the default tries.
const client = new Client({ apiUrl, apiKey, callerOptions: { maxRetries: 6 } });
const config = { configurable: { token_delay_ms: 40, node_delay_ms: 20 } };
const input = { messages: [{ role: "user", content: "what's the weather in sf?" }] };

/** threadStream reads the thread-centric protocol: each token once and in order. */
async function threadStream() {
  const thread = new threads.Client({ apiUrl, apiKey }).threads.stream({ assistantId: "agent" });
  const { run_id } = await thread.run.start({ input, config });
  const seen = [];
  for await (const event of await thread.subscribe({ channels: ["lifecycle", "messages"] })) {
    seen.push(event);
    if (event.method === "lifecycle" && event.params.data.event === "completed") break;
  }
  const numbers = seen.map((event) => event.seq);
  assert.deepEqual(numbers, [...new Set(numbers)].sort((a, b) => a - b));
  const { messages } = await client.runs.join(thread.threadId, run_id);
  const deltas = seen.filter((event) => event.params.data.id === messages.at(-1).id && event.params.data.event === "content-block-delta");
  assert.equal(deltas.map((event) => event.params.data.delta.text).join(""), messages.at(-1).content);
}

async function main() {
  await Promise.all([runStream(), threadStream()]);
  process.exit(0);
}

async function runStream() {
  const { thread_id: thread } = await client.threads.create();
  let created, tokens = 0;
  const seen = [];
  for await (const part of client.runs.stream(thread, "agent", {
    input, config, streamMode: ["messages-tuple", "values"], streamResumable: true, onRunCreated: (run) => { created = run; },
  })) {
    seen.push(part);
    if (part.event === "messages" && part.data[0].content && ++tokens === 5) console.log("shown");
  }
  const replayed = [];
  for await (const part of client.runs.joinStream(thread, created.run_id, { lastEventId: "-1" })) replayed.push(part);
  assert.deepEqual(seen, replayed);
  assert.equal(seen.filter((part) => part.event === "metadata").length, 2, "the server was not killed in the middle of the run");
}

tell(runStream, threadStream);
