// Streams the answers of 200 threads at once. Arguments: the agent's URL, the key, the transport.
const assert = require("node:assert/strict");
const { client, isRoot, said, stream, until } = require("./threads-v3.cjs");
const { answered, ask, tell, types } = require("./story.cjs");

const config = { configurable: { token_delay_ms: 5, node_delay_ms: 5, answer_words: 60 } };
const channels = ["lifecycle", "messages", "values"];
const finished = (events) => events.filter((event) => event.method === "messages" && said(event) === "message-finish").length;

/** one is a thread: its answer comes whole and in its order, and it sees nothing of others. */
async function one(n) {
  const thread = stream();
  const { run_id } = await thread.run.start({ input: { messages: [...ask("sf").messages], n }, config });
  // The SDK has a connection of its own for lifecycles, whose events may overtake others.
  const seen = await until(await thread.subscribe({ channels }), (_, events) => events.filter(isRoot).length === 2 && finished(events) === 2);
  const numbers = seen.map(({ seq }) => seq);
  assert.equal(new Set(numbers).size, numbers.length);
  assert.deepEqual(seen.filter(isRoot).map(({ event_id }) => event_id), [`synth:${run_id}:running`, `synth:${run_id}:completed`]);
  const { values } = await client.threads.getState(thread.threadId);
  assert.deepEqual(types(values), answered);
  const deltas = seen.filter((event) => event.method === "messages" && said(event) === "content-block-delta" && event.params.data.id === values.messages[3].id);
  assert.equal(deltas.map((event) => event.params.data.delta.text).join(""), values.messages[3].content);
  await thread.close();
}

async function many() {
  await Promise.all(Array.from({ length: 200 }, (_, n) => one(n)));
}

tell(many);
