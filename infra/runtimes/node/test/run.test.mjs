import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { eventsOf, named, project, Runtime, Thread, until, token, write } from "./runtime.mjs";

const graphs = "graphs/framework.json";
let shared;
const cleanups = [];
before(async () => (shared = await Runtime.start({ after: (cleanup) => cleanups.push(cleanup) }, graphs)));
after(() => Promise.all(cleanups.map((cleanup) => cleanup())));

function journal() {
  const file = path.join(mkdtempSync(path.join(project, "graphs", "journal-")), "lines");
  writeFileSync(file, "");
  return { file, lines: () => readFileSync(file, "utf8").split("\n").filter(Boolean) };
}

const says = (thread) => thread.state.values.log;

test("a graph goes on from what its events brought", async () => {
  const thread = new Thread(shared, "steps");
  const events = await thread.invoke({ input: { log: ["in"] }, stream_mode: ["updates", "values"], context: { greeting: "hi" } });
  assert.deepEqual(named(events, "updates"), [{ one: { log: ["one hi"] } }, { two: { log: ["two hi"] } }, { three: { log: ["three hi"] } }]);
  assert.deepEqual(named(events, "values").at(-1), { log: ["in", "one hi", "two hi", "three hi"] });
  const roots = named(events, "checkpoint");
  assert.deepEqual(roots.map((c) => [c.metadata.step, c.metadata.source, c.next[0] ?? ""]), [
    [-1, "input", "__start__"], [0, "loop", "one"], [1, "loop", "two"], [2, "loop", "three"], [3, "loop", ""],
  ]);
  assert.deepEqual(roots.map((c) => c.parent_id), ["", ...roots.slice(0, -1).map((c) => c.id)]);
  await thread.invoke({ input: { log: ["again"] } });
  assert.deepEqual(says(thread), ["in", "one hi", "two hi", "three hi", "again", "one", "two", "three"]);
  assert.equal(thread.state.metadata.step, 8);
});

test("what tasks have returned beside a question outlives new input", async () => {
  const thread = new Thread(shared, "asking");
  await thread.invoke({ input: { log: ["in"] } });
  assert.deepEqual(says(thread), ["in", "begin", "beside"]);
  await thread.invoke({ input: { log: ["other"] } });
  assert.deepEqual(says(thread), ["in", "begin", "beside", "other", "begin", "beside"]);
});

test("without a mode of its own an event is not streamed", async () => {
  const events = await new Thread(shared, "steps").invoke({ input: { log: [] } });
  assert.deepEqual([...new Set(events.map((event) => event.name))].sort(), ["checkpoint", "updates", "writes"]);
});

for (const graph of ["builder", "own"]) {
  test(`the graph ${graph} runs with the platform's checkpointer`, async () => {
    const thread = new Thread(shared, graph);
    await thread.invoke({ input: { log: ["a"] } });
    await thread.invoke({ input: { log: ["b"] } });
    assert.equal(says(thread).length, 8);
    assert.match(shared.stderr, /graph "own": its own checkpointer is replaced/);
  });
}

test("a factory is called with the run's configuration", async () => {
  const thread = new Thread(shared, "factory");
  const events = await thread.invoke({ input: { log: [] }, config: { configurable: { node_name: "made" } } });
  assert.deepEqual(named(events, "updates"), [{ made: { log: ["made"] } }]);
});

test("a factory is told what for, for whom, and which store", async () => {
  const thread = new Thread(shared, "told");
  const given = { user: { identity: "a user" }, server_url: "http://127.0.0.1:1", context: { language: "fr" } };
  await thread.invoke({ ...given, operation: "update_state", supersteps: [{ updates: [{ values: { log: [] }, as_node: "tell" }] }] });
  await thread.invoke({ ...given, input: { log: [] } });
  await thread.invoke({ input: { log: [] } });
  const update = "threads.update a user Store  ";
  assert.deepEqual(thread.state.values.log, [update, "threads.create_run a user Store fr a user", update, "threads.create_run a user Store fr a user", "threads.create_run    "]);
});

test("a run is traced where its client says", async (t) => {
  const tracer = { project_name: "a project", example_id: crypto.randomUUID() };
  const tracing = await Runtime.start(t, graphs, { LANGSMITH_TRACING: "true", LANGSMITH_PROJECT: "its own", LANGSMITH_ENDPOINT: "http://127.0.0.1:9", LANGSMITH_API_KEY: "none" });
  for (const [wanted, tracers] of [[tracer, [["a project", tracer.example_id]]], [null, [["its own", undefined]]], [{ example_id: null }, [["its own", undefined]]]]) {
    for (const mode of ["updates", "messages"]) {
      const thread = new Thread(tracing, "traced");
      await thread.invoke({ input: { n: 1 }, tracer: wanted, stream_mode: [mode] });
      // From core 1.4 on, a tracer without a project finds that of the environment later.
      assert.deepEqual(thread.state.values.n.map(([project, example]) => [project ?? "its own", example ?? undefined]), tracers);
    }
  }
  const thread = new Thread(shared, "traced");
  await thread.invoke({ input: { n: 1 }, tracer });
  assert.deepEqual(thread.state.values.n, []);
});

test("a graph sees what it sees elsewhere", async () => {
  const thread = new Thread(shared, "seeing");
  const forged = { langgraph_auth_user: { identity: "evil" }, langgraph_auth_user_id: "evil", langgraph_auth_permissions: ["all"], assistant_id: "evil" };
  const run_id = crypto.randomUUID();
  const names = { assistant_id: "an assistant", graph_id: "seeing", thread_id: thread.id, run_id };
  await thread.invoke({
    input: { n: 1 }, run_id, assistant_id: "an assistant", config: { configurable: forged }, context: { language: "fr", ...forged },
    metadata: { of: "the run", tree: { a: [1] }, list: [1, { b: 2 }] }, user: { identity: "a user", permissions: ["read"] }, headers: { "x-tier": "gold" },
    trace: { "langsmith-trace": "an id", "langsmith-tags": ["a", "b"], "langsmith-metadata": { nested: true } },
  });
  const { configurable, metadata, context } = thread.state.values.n;
  assert.deepEqual(
    { ...configurable, checkpoint_ns: undefined, checkpoint_map: undefined, checkpoint_id: undefined },
    {
      ...names, language: "fr", "langsmith-trace": "an id", "langsmith-tags": ["a", "b"], "langsmith-metadata": { nested: true }, "x-tier": "gold", langgraph_auth_user_id: "a user", langgraph_auth_permissions: ["read"],
      langgraph_auth_user: { identity: "a user", display_name: "a user", is_authenticated: true, permissions: ["read"] }, checkpoint_ns: undefined, checkpoint_map: undefined, checkpoint_id: undefined,
    },
  );
  assert.equal(context.language, "fr");
  const wanted = { ...names, of: "the run", tree: { a: [1] }, list: [1, { b: 2 }] };
  assert.deepEqual(pick(metadata, wanted), wanted);
  for (const { root } of thread.log) assert.deepEqual(pick(root.metadata, wanted), wanted);

  await thread.invoke({ input: { n: 2 }, config: { configurable: { ...forged, language: "de" } }, context: null });
  const later = thread.state.values.n;
  assert.deepEqual(Object.keys(later.configurable).filter((key) => key.startsWith("langgraph_auth_")), []);
  assert.equal(later.context.language, "de");
});

test("the client without a URL reaches the own server for the run's user", async (t) => {
  const seen = [];
  const server = createServer((request, response) => {
    seen.push({ method: request.method, url: request.url, headers: request.headers });
    request.resume();
    response.writeHead(200, { "content-type": "application/json" }).end('{"thread_id": "made"}');
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const thread = new Thread(shared, "calling");
  await thread.invoke({ input: { n: 1 }, server_url: `http://127.0.0.1:${server.address().port}/d/x`, user: { identity: "a user" } });
  assert.equal(thread.state.values.n.thread_id, "made");
  const [{ method, url, headers }] = seen;
  assert.deepEqual([method, url, headers["x-api-key"]], ["POST", "/d/x/threads", token]);
  assert.deepEqual(JSON.parse(Buffer.from(headers["x-slipway-caller"], "base64url")).identity, "a user");
});

test("a run without a context has an empty one", async () => {
  const thread = new Thread(shared, "seeing");
  await thread.invoke({ input: { n: 1 } });
  assert.deepEqual(thread.state.values.n.context, {});
});

const pick = (fields, like) => Object.fromEntries(Object.keys(like).map((key) => [key, fields[key]]));

test("the framework's classes are those of the graph's file", async () => {
  const thread = new Thread(shared, "common");
  await thread.invoke({ input: { messages: [] } });
  await thread.invoke({ command: { resume: "instances" } });
  assert.equal(thread.state.values.messages.at(-1).content, "instances: true");
});

test("values that JSON has no form for", async () => {
  const thread = new Thread(shared, "script");
  await thread.invoke({ input: { n: 1 } });
  assert.deepEqual(thread.state.values.n, { set: [1], map: { a: 1 }, bytes: "aGk=", error: { error: "RangeError", message: "far" }, circle: "", big: 12 });
});

test("a thread goes on after values that are nothing in JSON", async () => {
  for (const n of ["function", "symbol", "undefined"]) {
    const thread = new Thread(shared, "gaps");
    await thread.invoke({ input: { n } });
    const events = await thread.invoke({ operation: "update_state", supersteps: [{ updates: [{ values: null, as_node: "gap" }] }] });
    assert.deepEqual([named(events, "error"), thread.state.values.n ?? null], [[], null], n);
    assert.deepEqual(named(await thread.invoke({ input: { n: "function" } }), "error"), [], n);
  }
});

test("each checkpoint is sent, whatever the durability", async () => {
  const thread = new Thread(shared, "steps");
  const events = await thread.invoke({ input: { log: ["in"] }, durability: "exit" });
  assert.equal(named(events, "checkpoint").length, 5);
  assert.deepEqual(says(thread), ["in", "one", "two", "three"]);
  await thread.invoke({ input: { log: ["b"] }, durability: "sync" });
  assert.equal(says(thread).length, 8);
});

test("breakpoints before and after a node", async () => {
  const thread = new Thread(shared, "steps");
  let events = await thread.invoke({ input: { log: [] }, interrupt_before: ["two"] });
  assert.deepEqual(named(events, "interrupt"), [[]]);
  assert.deepEqual([thread.state.next, says(thread)], [["two"], ["one"]]);
  events = await thread.invoke({ interrupt_after: "*" });
  assert.deepEqual(named(events, "interrupt"), [[]]);
  assert.deepEqual([thread.state.next, says(thread)], [["three"], ["one", "two"]]);
  events = await thread.invoke({});
  assert.deepEqual(named(events, "interrupt"), []);
  assert.deepEqual([thread.state.next, says(thread)], [[], ["one", "two", "three"]]);
});

test("a breakpoint in a subgraph", async () => {
  const thread = new Thread(shared, "breakpoint");
  const events = await thread.invoke({ input: { total: 0 } });
  assert.equal(named(events, "interrupt").length, 1);
  assert.deepEqual(thread.state.next, ["stopping"]);
  await thread.invoke({});
  assert.deepEqual([thread.state.next, thread.state.values.total], [[], 1]);
});

test("a breakpoint after a subgraph's checkpoint was addressed", async () => {
  const thread = new Thread(shared, "steps");
  await thread.invoke({ input: { log: [] }, interrupt_before: ["two"] });
  const { id } = thread.state;
  const configurable = { checkpoint_id: id, checkpoint_map: { "": id, "inner:1": "1" } };
  const events = await thread.invoke({ config: { configurable }, interrupt_before: ["three"] });
  assert.deepEqual([named(events, "interrupt"), thread.state.next], [[[]], ["three"]]);
});

test("a command goes to a node, sends to one, and updates", async () => {
  const thread = new Thread(shared, "steps");
  await thread.invoke({ input: { log: ["in"] } });
  await thread.invoke({ command: { goto: "three", update: { log: ["upd"] } } });
  assert.deepEqual(says(thread).slice(4), ["upd", "three"]);
  await thread.invoke({ command: { goto: [{ node: "two", input: { log: [] } }] } });
  assert.deepEqual(says(thread).slice(6), ["two", "three"]);
});

test("a fork from an older checkpoint is a branch of its own", async () => {
  const thread = new Thread(shared, "steps");
  await thread.invoke({ input: { log: ["in"] } });
  const from = thread.log.find(({ root }) => root.next[0] === "two").root.id;
  const events = await thread.invoke({ from });
  const steps = named(events, "checkpoint");
  assert.equal(steps[0].parent_id, from);
  assert.deepEqual(steps.filter((c) => c.metadata.source === "loop").map((c) => c.next), [["three"], []]); // newer versions begin with a "fork"
  assert.deepEqual(says(thread), ["in", "one", "two", "three"]);
  await thread.invoke({ from, input: { log: ["other"] } });
  assert.deepEqual(says(thread), ["in", "one", "other", "one", "two", "three"]);
});

test("update_state applies supersteps through the graph's reducers", async () => {
  const thread = new Thread(shared, "steps");
  const events = await thread.invoke({
    operation: "update_state",
    supersteps: [
      { updates: [{ values: { log: ["in"] }, as_node: "__input__" }] },
      { updates: [{ values: { log: ["in"] }, as_node: "__start__" }] },
      { updates: [{ values: { log: ["as one"] }, as_node: "one" }] },
      { updates: [{ values: { log: ["as two"], set: 1 }, as_node: "two" }] },
    ],
  });
  assert.deepEqual(named(events, "checkpoint").map((c) => [c.metadata.source, c.next.join()]), [
    ["input", "__start__"], ["update", "one"], ["update", "two"], ["update", "three"],
  ]);
  assert.equal(thread.state.metadata.run_id, undefined);
  await thread.invoke({});
  assert.deepEqual(says(thread), ["in", "as one", "as two", "three"]);
  const failed = await thread.invoke({ operation: "update_state", supersteps: [{ updates: [{ values: { log: [] }, as_node: "nobody" }] }] });
  assert.deepEqual(named(failed, "error"), [{ error: "InvalidUpdateError", message: 'Node "nobody" does not exist' }]);
});

test("pending updates come before the input", async () => {
  const thread = new Thread(shared, "steps");
  await thread.invoke({ input: { log: ["in"] }, interrupt_before: ["two"] });
  thread.pending = [
    { values: { log: ["shown"] }, as_node: "two" }, { values: { log: ["of nobody"] }, as_node: "gone" }, { values: { log: ["queued"] }, as_node: "__input__" },
  ];
  await thread.invoke({ input: { log: ["new"] } });
  assert.deepEqual(says(thread), ["in", "one", "shown", "of nobody", "queued", "new", "one", "two", "three"]);
});

test("the input of a run that was interrupted before its first step is in the state once", async () => {
  for (const last of ["checkpoint", "writes"]) {
    const thread = new Thread(shared, "steps");
    const input = { log: ["in"] };
    for await (const event of eventsOf(await shared.post(thread.invocation({ input })))) {
      thread.take(event);
      if (event.name === last) break; // the server hears no more of it
    }
    assert.deepEqual([thread.state.metadata.source, thread.head.writes.length], ["input", last === "writes" ? 1 : 0]);
    thread.pending = [{ values: input, as_node: "__input__" }];
    await thread.invoke({ input: { log: ["new"] } });
    assert.deepEqual(says(thread), ["in", "new", "one", "two", "three"]);
  }
});

test("a later attempt does not take the input again", async () => {
  const thread = new Thread(shared, "steps");
  const { file, lines } = journal();
  const run = { run_id: randomUUID(), input: { log: ["in"] } };
  const failed = await thread.invoke({ ...run, config: { configurable: { journal: file, fail: "two" } } });
  assert.deepEqual(named(failed, "error"), [{ error: "TypeError", message: "two fails" }]);
  const line = `ERROR: graph "steps", run ${run.run_id}, steps.ts, line 15: TypeError: two fails`;
  await until("the log", () => shared.stderr.split("\n").includes(line));
  assert.deepEqual([thread.state.next, JSON.parse(thread.state.tasks[0].error)], [["two"], { name: "TypeError", message: "two fails" }]);
  await thread.invoke({ ...run, attempt: 2, config: { configurable: { journal: file } } });
  assert.deepEqual(says(thread), ["in", "one", "two", "three"]);
  assert.deepEqual(lines(), ["one", "two", "two", "three"]);
});

test("a later attempt does not take a command again", async () => {
  const thread = new Thread(shared, "steps");
  await thread.invoke({ input: { log: ["in"] } });
  const run = { run_id: randomUUID(), command: { goto: "two", update: { log: ["upd"] } } };
  const failed = await thread.invoke({ ...run, config: { configurable: { fail: "two" } } });
  assert.equal(named(failed, "error").length, 1);
  await thread.invoke({ ...run, attempt: 2 });
  assert.deepEqual(says(thread).slice(4), ["upd", "two", "three"]);
});

test("finished siblings are not run again after a kill", async (t) => {
  const { file, lines } = journal();
  const runtime = await Runtime.start(t, graphs);
  const thread = new Thread(runtime, "siblings");
  const run = { run_id: randomUUID(), input: { subjects: ["a", "b", "c"] } };
  const response = await runtime.post(thread.invocation({ ...run, config: { configurable: { journal: file, hang: "b" } } }));
  const collecting = thread.collect(response).catch((error) => error);
  await until("the siblings' results", () => thread.head?.root.next.includes("work") && thread.head.writes.length === 2);
  await runtime.kill();
  assert.ok((await collecting) instanceof Error);
  thread.runtime = shared;
  await thread.invoke({ ...run, attempt: 2, config: { configurable: { journal: file } } });
  assert.deepEqual(lines().sort(), ["a", "b", "b", "c"]);
  assert.deepEqual(thread.state.values.done, ["a", "b", "c", "all 3"]);
});

test("tasks of a function are not run again when it is resumed", async () => {
  const thread = new Thread(shared, "functional");
  const { file, lines } = journal();
  const [question] = named(await thread.invoke({ input: { topic: "cats", journal: file } }), "interrupt");
  assert.deepEqual(question[0].value, { text: "about cats" });
  await thread.invoke({ command: { resume: "good" } });
  assert.deepEqual(lines(), ["draft"]);
  await thread.invoke({ input: { topic: "dogs", journal: file } });
  const events = await thread.invoke({ command: { resume: "fine" }, stream_mode: ["updates", "values"] });
  assert.deepEqual(named(events, "values").at(-1), { text: "about dogs", decision: "fine", before: "about cats" });
});

test("a lasting subgraph keeps its state from run to run", async () => {
  const thread = new Thread(shared, "lasting");
  for (const total of [1, 2, 3]) {
    const events = await thread.invoke({ input: { total: 0 } });
    assert.equal(thread.state.values.total, total);
    assert.deepEqual([...new Set(named(events, "checkpoint").filter((c) => c.ns).map((c) => [c.ns, c.persistent].join()))], ["counter,true"]);
  }
});

test("a graph that a node's code calls stops and goes on", async () => {
  const thread = new Thread(shared, "inner");
  const [question] = named(await thread.invoke({ input: { total: 0 } }), "interrupt");
  assert.equal(question[0].value, "what?");
  await thread.invoke({ command: { resume: "that" } });
  assert.deepEqual(thread.state.values, { total: 1, note: "that" });
});

test("a graph runs that a graph of another server is in", async (t) => {
  const source = `import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { RemoteGraph } from "@langchain/langgraph/remote";
const far = new RemoteGraph({ graphId: "agent", url: "http://127.0.0.1:9" });
export default new StateGraph(Annotation.Root({ at: Annotation })).addNode("near", () => ({ at: "near" })).addNode("far", far)
  .addConditionalEdges(START, () => "near", ["near", "far"]).compile();
`;
  const runtime = await Runtime.start(t, write({ "agent.mjs": source, "framework.json": { graphs: { agent: "./agent.mjs:default" } } }));
  const thread = new Thread(runtime, "agent");
  await thread.invoke({ input: { at: "" } });
  assert.deepEqual(thread.state.values, { at: "near" });
});

test("a subgraph's question is asked again at the checkpoint of the subgraph", async () => {
  const thread = new Thread(shared, "inner");
  await thread.invoke({ input: { total: 0 } });
  const { root: { id: from }, since: [[ns, { id }]] } = { ...thread.head, since: [...thread.head.since] };
  await thread.invoke({ command: { resume: "that" } });
  const config = { configurable: { checkpoint_ns: ns, checkpoint_id: id, checkpoint_map: { "": from, [ns]: id } } };
  const [question] = named(await thread.invoke({ from, config }), "interrupt");
  assert.equal(question[0].value, "what?");
  await thread.invoke({ command: { resume: "other" } });
  assert.deepEqual(thread.state.values, { total: 1, note: "other" });
});

test("a state is changed at an older checkpoint of a subgraph", async () => {
  const thread = new Thread(shared, "breakpoint");
  await thread.invoke({ input: { total: 0 } });
  const { root: { id: root }, since: [[ns, stopped]] } = { ...thread.head, since: [...thread.head.since] };
  await thread.invoke({});
  const { state } = thread.invocation({ from: root });
  const { parent_id, persistent, data } = stopped;
  state.checkpoint.checkpoints.splice(1, 0, { id: stopped.id, parent_id, ns, persistent, data });
  assert.notEqual(state.checkpoint.checkpoints[2].id, stopped.id);
  const config = { configurable: { checkpoint_ns: ns, checkpoint_id: stopped.id, checkpoint_map: { "": root, [ns]: stopped.id } } };
  const supersteps = [{ updates: [{ values: { calls: 5 } }] }];
  const [made] = named(await thread.invoke({ state, config, operation: "update_state", supersteps }), "checkpoint").filter((c) => c.ns === ns);
  assert.deepEqual([made.parent_id, made.values.calls, made.next], [stopped.id, 6, ["last"]]);
});

test("checkpoints hold what channels of deltas are made from", async () => {
  const thread = new Thread(shared, "delta");
  await thread.invoke({ input: { items: ["in"] } });
  assert.deepEqual(thread.state.values.items, ["in", "one"]);
  await thread.invoke({ command: { resume: "then" } });
  assert.deepEqual(thread.state.values.items, ["in", "one", "then"]);
  await thread.invoke({ operation: "update_state", supersteps: [{ updates: [{ values: { items: ["set"] }, as_node: "ask" }] }] });
  await thread.invoke({ input: { items: ["again"] } });
  assert.deepEqual(thread.state.values.items, ["in", "one", "then", "set", "again", "one"]);
  assert.deepEqual(thread.state.values.marks, ["other", "other"]);
});

test("what a graph throws is an error event", async () => {
  for (const what of ["text", "nothing", "speechless", "odd"]) {
    const events = await new Thread(shared, "trouble").invoke({ input: { what } });
    assert.equal(named(events, "error").length, 1, what);
    assert.equal(events.at(-1).name, "error");
    for (const text of Object.values(events.at(-1).data)) assert.equal(typeof text, "string");
  }
});

test("what nobody handles ends neither the run nor the process", async () => {
  const thread = new Thread(shared, "trouble");
  const events = await thread.invoke({ input: { what: "rejection" } });
  assert.deepEqual([named(events, "error"), thread.state.values.n], [[], 1]);
  await until("the log", () => /^ERROR: uncaught exception: .*nobody waits for this/m.test(shared.stderr) && /nobody hears this/.test(shared.stderr));
});

test("data that cannot be read is an error event", async () => {
  const thread = new Thread(shared, "steps");
  await thread.invoke({ input: { log: [] } });
  thread.head.root.data = Buffer.from('{"format":99}\n').toString("base64");
  const [error] = named(await thread.invoke({ input: { log: [] } }), "error");
  assert.equal(error.error, "DataError");
  assert.match(error.message, /format 99 is not known/);
});

test("a closed connection stops the run", async () => {
  const { file, lines } = journal();
  const controller = new AbortController();
  const invocation = new Thread(shared, "trouble").invocation({ input: { what: "wait" }, config: { configurable: { journal: file } }, stream_mode: ["custom"] });
  for await (const event of eventsOf(await shared.post(invocation, { signal: controller.signal }))) if (event.name === "custom") break;
  controller.abort();
  await until("the stop", () => lines().length === 1);
  await until("quiet", async () => (await shared.ping()).status === "Healthy");
});

test("many invocations at once keep their own state", async () => {
  const threads = Array.from({ length: 24 }, () => new Thread(shared, "steps"));
  await Promise.all(threads.map((thread, i) => thread.invoke({ input: { log: [`t${i}`] } })));
  await Promise.all(threads.map((thread) => thread.invoke({ input: { log: ["again"] } })));
  threads.forEach((thread, i) => assert.deepEqual(says(thread), [`t${i}`, "one", "two", "three", "again", "one", "two", "three"]));
});
