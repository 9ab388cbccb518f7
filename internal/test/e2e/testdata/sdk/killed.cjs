// Reads an answer in whose middle the server is killed. Says "shown" when it may be. Arguments: the agent's URL, the key, the transport.
const assert = require("node:assert/strict");
const { client, isRoot, said, stream, transport, until } = require("./threads-v3.cjs");
const { answered, ask, tell, types } = require("./story.cjs");

const channels = ["lifecycle", "messages", "updates", "values", "tools"];
const ends = (event) => isRoot(event) && said(event) === "completed";

const bySize = (a, b) => a - b;
const numbers = (events) => events.map(({ seq }) => seq);

/** inOrder checks that each event came once and in order, and sorts the events. The SDK has a subscription of its own for lifecycles, whose events overtake others: always
    as server-sent events, and on a socket after a loss, when the SDK asks for that subscription first and waits for it. */
function inOrder(events) {
  const others = numbers(events.filter(({ method }) => method !== "lifecycle"));
  assert.deepEqual(others, [...others].sort(bySize));
  assert.equal(new Set(numbers(events)).size, events.length);
  events.sort((a, b) => bySize(a.seq, b.seq));
}

async function killed() {
  const thread = stream();
  await thread.run.start({ input: ask("sf"), config: { configurable: { token_delay_ms: 30, node_delay_ms: 20, answer_words: 400 } } });
  let tokens = 0;
  const seen = await until(await thread.subscribe({ channels }), (event) => {
    if (event.method === "messages" && said(event) === "content-block-delta" && ++tokens === 10) console.log("shown");
    return ends(event);
  });
  inOrder(seen);
  const late = stream(thread.threadId);
  const whole = await until(await late.subscribe({ channels }), ends);
  if (transport === "websocket") assert.deepEqual(numbers(whole), numbers(whole).sort(bySize)); // no connection was lost
  inOrder(whole);
  assert.deepEqual(whole.map(({ event_id }) => event_id), seen.map(({ event_id }) => event_id));
  assert.deepEqual(types((await client.threads.getState(thread.threadId)).values), answered);
  await Promise.all([thread.close(), late.close()]);
}

tell(killed);
