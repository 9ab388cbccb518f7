// Reads an answer in whose middle the server is killed. Says "shown" when it may be. Arguments: the
// agent's URL, the key, the transport.
const assert = require("node:assert/strict");
const { client, isRoot, said, stream, transport, until } = require("./threads-v3.cjs");
const { answered, ask, tell, types } = require("./story.cjs");

const channels = ["lifecycle", "messages", "updates", "values", "tools"];
const ends = (event) => isRoot(event) && said(event) === "completed";

const bySeq = (a, b) => a.seq - b.seq;

async function killed() {
  const thread = stream();
  await thread.run.start({ input: ask("sf"), config: { configurable: { token_delay_ms: 30, node_delay_ms: 20, answer_words: 400 } } });
  let tokens = 0;
  const seen = await until(await thread.subscribe({ channels }), (event) => {
    if (event.method === "messages" && said(event) === "content-block-delta" && ++tokens === 10) console.log("shown");
    return ends(event);
  });
  // The SDK has subscriptions of its own, whose events may overtake others: always as server-sent
  // events, and on a socket after a loss, although the server sends them in order. Clients in
  // Python check the order.
  seen.sort(bySeq);
  assert.equal(new Set(seen.map(({ seq }) => seq)).size, seen.length);
  const late = stream(thread.threadId);
  const whole = await until(await late.subscribe({ channels }), ends);
  if (transport === "sse") whole.sort(bySeq);
  assert.deepEqual(whole.map(({ event_id }) => event_id), seen.map(({ event_id }) => event_id));
  assert.deepEqual(types((await client.threads.getState(thread.threadId)).values), answered);
  await Promise.all([thread.close(), late.close()]);
}

tell(killed);
