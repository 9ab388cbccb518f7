// Threads go on after an update that the graph's own reducer refuses.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { named, Runtime, Thread } from "./runtime.mjs";

let runtime;
const cleanups = [];
before(async () => (runtime = await Runtime.start({ after: (cleanup) => cleanups.push(cleanup) }, "graphs/framework.json")));
after(() => Promise.all(cleanups.map((cleanup) => cleanup())));

const refusals = { "an input": { last: "one", log: ["refused"] }, "what a node has returned": { last: "bad" } };

async function refused(input) {
  const thread = new Thread(runtime, "refusing");
  await thread.invoke({ input: { last: "one" } });
  const [error] = named(await thread.invoke({ input }), "error");
  assert.equal(error.error, "RangeError");
  return thread;
}

for (const [what, input] of Object.entries(refusals)) {
  test(`a new input after ${what} that is refused`, async () => {
    const thread = await refused(input);
    const events = await thread.invoke({ input: { last: "two" } });
    assert.deepEqual([named(events, "error"), thread.state.values.log], [[], ["echo one", "echo two"]]);
  });

  test(`a new input with ${what} that is refused still pending`, async () => {
    const thread = await refused(input);
    thread.pending = [{ values: input, as_node: "__input__" }];
    const events = await thread.invoke({ input: { last: "two" } });
    assert.deepEqual([named(events, "error"), thread.state.values.log], [[], ["echo one", "echo two"]]);
  });

  test(`a change of the state after ${what} that is refused`, async () => {
    const thread = await refused(input);
    const events = await thread.invoke({ operation: "update_state", supersteps: [{ updates: [{ values: { log: ["set"] }, as_node: "echo" }] }] });
    assert.deepEqual([named(events, "error"), thread.state.values.log], [[], ["echo one", "set"]]);
  });
}
