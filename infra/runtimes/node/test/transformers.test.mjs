// What stream transformers make for clients is what the framework itself makes of the same run.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import path from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { eventsOf, project, Runtime, Thread, write } from "./runtime.mjs";

const load = (file) => import(pathToFileURL(file).href);
const directory = path.dirname(createRequire(path.join(project, "package.json")).resolve("@langchain/langgraph/package.json"));
const framework = await load(path.join(directory, "dist/index.js"));
const options = { skip: framework.StreamChannel?.remote ? false : "the release has no transformers" };
/** What the server asks of a run whose client subscribes to channels. */
const SHOWN = ["updates", "values", "messages", "custom", "tasks", "tools"];
const asking = (content) => ({ messages: [{ role: "user", content, id: "h1" }] });

let runtime;
const cleanups = [];
after(() => Promise.all(cleanups.map((cleanup) => cleanup())));
before(async () => {
  if (options.skip) return;
  const file = "../transforming.mjs";
  runtime = await Runtime.start({ after: (cleanup) => cleanups.push(cleanup) }, write({ "framework.json": { graphs: { agent: `${file}:graph`, natively: `${file}:natively` } } }));
});

/** What the framework's own stream of events has for channels with names, and of promises. */
async function own(input) {
  const { graph } = await load(path.join(project, "graphs/transforming.mjs"));
  graph.checkpointer = new framework.MemorySaver();
  const found = [];
  const run = await graph.streamEvents(input, { version: "v3", configurable: { thread_id: "t" } });
  try {
    for await (const { method, params: { data } } of run) {
      if (method.startsWith("custom:")) found.push([method.slice("custom:".length), data]);
      if (method === "custom" && data.name === "total") found.push([data.name, data.payload]);
    }
  } catch (error) {
    found.push(["error", error.message]);
  }
  return found;
}

async function shown(thread, invocation) {
  const events = await thread.invoke({ stream_mode: SHOWN, stream_subgraphs: true, ...invocation });
  return events.flatMap(({ name, data }) => (name === "custom" && data.name !== "own" && data.name ? [[data.name, data.payload]] : name === "error" ? [["error", data.message]] : []));
}

/** What a channel has, without the members that have no value. */
const of = (name, found) => JSON.parse(JSON.stringify(found.filter(([channel]) => channel === name)));

test("channels with names and promises are shown", options, async () => {
  const wanted = await own(asking("hi"));
  assert.deepEqual([...new Set(wanted.map(([name]) => name))], ["early", "seen", "total"]);
  const thread = new Thread(runtime);
  const found = await shown(thread, { input: asking("hi") });
  for (const name of ["early", "seen", "total"]) assert.deepEqual(of(name, found), of(name, wanted));
  await shown(thread, { command: { resume: "yes" } });
  assert.equal(thread.state.values.messages.length, 3);
});

test("nothing is shown before the first checkpoint", options, async () => {
  const names = [];
  const thread = new Thread(runtime);
  for await (const { name } of eventsOf(await runtime.post(thread.invocation({ input: asking("hi"), stream_mode: SHOWN, stream_subgraphs: true })))) names.push(name);
  assert.ok(names.indexOf("checkpoint") < names.indexOf("custom"), names.join());
});

test("an error of a transformer is one of the run", options, async () => {
  assert.deepEqual((await own(asking("fail"))).at(-1), ["error", "a transformer fails"]);
  const found = await shown(new Thread(runtime), { input: asking("fail") });
  assert.deepEqual(found.slice(-2), [["seen", "Error: a transformer fails"], ["error", "a transformer fails"]]);
});

for (const [graph, modes] of [["agent", ["updates", "messages", "custom"]], ["natively", SHOWN]]) {
  test(`the graph ${graph} runs no transformers with ${modes}`, options, async () => {
    assert.deepEqual(await shown(new Thread(runtime, graph), { input: asking("hi"), stream_mode: modes }), []);
  });
}
