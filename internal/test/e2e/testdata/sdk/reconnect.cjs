// Streams while the server is killed and started again. Prints a line when that may happen. Arguments: the agent's URL, the key.
const assert = require("node:assert/strict");
const { Client } = require("@langchain/langgraph-sdk");

const [apiUrl, apiKey] = process.argv.slice(2);
const client = new Client({ apiUrl, apiKey });

async function main() {
  const { thread_id: thread } = await client.threads.create();
  let created, tokens = 0;
  const seen = [];
  for await (const part of client.runs.stream(thread, "agent", {
    input: { messages: [{ role: "user", content: "what's the weather in sf?" }] },
    config: { configurable: { token_delay_ms: 40, node_delay_ms: 20 } },
    streamMode: ["messages-tuple", "values"], streamResumable: true, onRunCreated: (run) => { created = run; },
  })) {
    seen.push(part);
    if (part.event === "messages" && part.data[0].content && ++tokens === 5) console.log("shown");
  }
  const replayed = [];
  for await (const part of client.runs.joinStream(thread, created.run_id, { lastEventId: "-1" })) replayed.push(part);
  assert.deepEqual(seen, replayed);
  assert.equal(seen.filter((part) => part.event === "metadata").length, 2, "the server was not killed in the middle of the run");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
