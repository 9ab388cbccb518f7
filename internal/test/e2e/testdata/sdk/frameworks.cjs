// Drives agents of both frameworks in the thread-centric protocol. Arguments: the agent's URL, the
// key, the transport, the agent's language, and the example that it is, after which the story is
// named.
const assert = require("node:assert/strict");
const { client, isRoot, said, stream, until } = require("./threads-v3.cjs");
const { answered, ask, tell, types } = require("./story.cjs");

const [language, example] = process.argv.slice(5);
const facts = require("./agents.json")[language];
const channels = ["lifecycle", "messages", "updates", "values", "tools", "checkpoints", "tasks", "input", "custom"];
const of = (events, method) => events.filter((event) => event.method === method);
const ends = (name) => (event) => isRoot(event) && said(event) === name;
const partOf = (values, wanted) => Object.fromEntries(Object.keys(wanted).map((key) => [key, values[key]]));
const results = (events) => of(events, "tasks").filter(({ params }) => params.data.result !== undefined);
const latest = (events) => Math.max(...events.map(({ seq }) => seq));
const children = (events) => of(events, "lifecycle").filter((event) => !isRoot(event)).map((event) => [event.params.data.graph_name, said(event)]);

/**
 * whole is the end of a run with some tasks. The SDK has another connection for lifecycles,
 * questions and values, which may be ahead: only the subscription's own brings tasks and
 * checkpoints.
 */
const whole = (name, tasks) => (_, events) => events.some(ends(name)) && latest(of(events, "values")) > latest(of(events, "checkpoints")) &&
  results(events).filter(({ params }) => params.namespace.length === 0).length === tasks;

/**
 * wantsOrder has each event once, checkpoints directly before their values, and a result for each
 * task.
 */
function wantsOrder(events) {
  // The SDK has a connection of its own for lifecycles, whose events may overtake others.
  const seqs = events.map(({ seq }) => seq).sort((a, b) => a - b);
  assert.equal(new Set(seqs).size, seqs.length);
  const numbers = new Set(of(events, "values").map(({ seq }) => seq));
  for (const { seq } of of(events, "checkpoints")) assert.ok(numbers.has(seq + 1));
  const begun = of(events, "tasks").filter(({ params }) => params.data.result === undefined);
  assert.deepEqual(begun.map(({ params }) => params.data.id).sort(), results(events).map(({ params }) => params.data.id).sort());
}

const stories = {
  /** react has a model whose tokens come one by one, and a tool. */
  async react() {
    const { cities, answers, tool, model } = facts.react;
    const thread = stream();
    await thread.run.start({ input: ask(cities[0]) });
    const seen = await until(await thread.subscribe({ channels }), whole("completed", 3));
    wantsOrder(seen);
    const { values } = await client.threads.getState(thread.threadId);
    assert.deepEqual(types(values), answered);
    const last = of(seen, "messages").filter(({ params }) => params.data.id === values.messages[3].id);
    const deltas = last.filter((event) => said(event) === "content-block-delta");
    assert.equal(deltas.map(({ params }) => params.data.delta.text).join(""), answers[0]);
    assert.ok(deltas.length > 1);
    assert.deepEqual([said(last[0]), last[0].params.data.role, last[0].params.node, said(last.at(-1))], ["message-start", "ai", model, "message-finish"]);
    const [call] = values.messages[1].tool_calls;
    const calls = of(seen, "messages").filter((event) => said(event) === "content-block-finish" && event.params.data.content.type === "tool_call");
    assert.deepEqual(calls.map(({ params: { data: { content } } }) => [content.id, content.name, content.args]), [[call.id, tool, call.args]]);
    const tools = of(seen, "tools").map(({ params: { data } }) => [data.event, data.tool_call_id, data.tool_name]);
    assert.deepEqual([tools[0], tools.at(-1)], [["tool-started", call.id, tool], ["tool-finished", call.id, undefined]]);
    await thread.close();
  },

  /** subgraph asks in a graph within the graph. */
  async subgraph() {
    const { nodes, inner, question, resume, values } = facts.subgraph;
    const thread = stream();
    await thread.run.start({ input: { city: "Rome" } });
    const subscription = await thread.subscribe({ channels });
    const seen = await until(subscription, whole("interrupted", 2));
    wantsOrder(seen);
    const [{ params }] = of(seen, "input.requested");
    assert.deepEqual([params.data.payload, params.data.value, params.namespace.map((at) => at.split(":")[0])], [question, question, [nodes[1]]]);
    const within = of(seen, "updates").filter((event) => event.params.namespace.length === 1);
    assert.deepEqual(within.map(({ params: { node } }) => node), [inner[0]]);
    assert.deepEqual(children(seen), [[nodes[1], "started"], [nodes[1], "interrupted"]]);
    assert.equal((await client.threads.get(thread.threadId)).status, "interrupted");
    await thread.respondInput({ namespace: params.namespace, interrupt_id: params.data.interrupt_id, response: resume });
    const after = await until(subscription, whole("completed", 2));
    assert.deepEqual(children(after), [[nodes[1], "started"], [nodes[1], "completed"]]);
    assert.deepEqual(partOf((await client.threads.getState(thread.threadId)).values, values), values);
    await thread.close();
  },

  /** custom has a node that says how far it has come. */
  async custom() {
    const { says, values } = facts.custom;
    const thread = stream();
    await thread.run.start({ input: { files: ["a", "b"] } });
    const seen = await until(await thread.subscribe({ channels }), whole("completed", 1));
    wantsOrder(seen);
    assert.deepEqual(of(seen, "custom").map(({ params }) => params.data), says.map((payload) => ({ payload })));
    assert.deepEqual((await client.threads.getState(thread.threadId)).values, values);
    await thread.close();
  },
};

tell(stories[example]);
