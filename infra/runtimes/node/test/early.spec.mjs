// Drives graphs of the framework's early releases. test.sh runs it with several of them.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { eventsOf, named, project, Runtime, Thread } from "./runtime.mjs";

const { version } = createRequire(path.join(project, "package.json"))("@langchain/langgraph/package.json");
const since = (patch) => Number(version.split(".")[2]) >= patch;
let runtime;
const cleanups = [];
after(() => Promise.all(cleanups.map((cleanup) => cleanup())));
before(async () => {
  runtime = await Runtime.start({ after: (cleanup) => cleanups.push(cleanup) }, "graphs/framework.json", { SLIPWAY_INVOKE_TOKEN: "a token" });
});

const human = (content) => ({ messages: [{ role: "user", content, id: content }] });
const texts = (messages) => messages.map(({ content }) => content);
const log = (thread) => thread.state.values.log;

test("a run streams, keeps its checkpoints, and the next one goes on", async () => {
  const thread = new Thread(runtime);
  const events = await thread.invoke({ input: human("hi"), stream_mode: ["values", "updates", "messages-tuple", "tasks"], config: { configurable: { model: "a model" } } });
  assert.deepEqual(named(events, "error"), []);
  const chunks = named(events, "messages");
  assert.deepEqual(texts(chunks.map(([message]) => message)), ["word0 ", "word1 "]);
  assert.deepEqual([...new Set(chunks.map(([message, metadata]) => `${message.id} ${metadata.langgraph_node}`))].length, 1);
  assert.equal(chunks[0][1].langgraph_node, "talk");
  assert.deepEqual(Object.keys(named(events, "updates")[0]), ["talk"]);
  assert.deepEqual(texts(named(events, "values").at(-1).messages), ["hi", "word0 word1 "]);
  assert.equal(chunks[0][0].id, thread.state.values.messages[1].id);
  assert.deepEqual(thread.log.map(({ root }) => [root.metadata.source, root.metadata.step, root.next]), [["input", -1, ["__start__"]], ["loop", 0, ["talk"]], ["loop", 1, []]]);
  assert.deepEqual(named(events, "interrupt"), []);
  assert.deepEqual(log(thread), ["a model"]);
  await thread.invoke({ input: human("again") });
  assert.deepEqual(texts(thread.state.values.messages), ["hi", "word0 word1 ", "again", "word0 word1 "]);
});

test("the text of chunks is streamed where a model tells no more, and once", async () => {
  const thread = new Thread(runtime);
  const chunks = named(await thread.invoke({ input: human("bare"), stream_mode: ["messages-tuple"] }), "messages").map(([message]) => message);
  assert.deepEqual(texts(chunks), ["word0 ", "word1 "]);
  assert.equal(new Set(chunks.map(({ id }) => id)).size, 1);
  assert.deepEqual(await stopped(thread, { input: human("bare and slow") }, 3), [{ node: "talk", content: "word0 word1 word2 " }]);
});

test("the events of callbacks", async () => {
  const events = await new Thread(runtime).invoke({ input: human("hi"), stream_mode: ["events", "values"] });
  assert.deepEqual(named(events, "error"), []);
  assert.ok(named(events, "events").some(({ event, data }) => event === "on_chat_model_stream" && data.chunk.content === "word1 "));
  assert.deepEqual(texts(named(events, "values").at(-1).messages), ["hi", "word0 word1 "]);
});

/**
 * Stops a run when it has shown so many chunks, and returns what the server then has to keep of
 * them.
 */
async function stopped(thread, options, count) {
  let [shown, unfinished] = [[], []];
  const controller = new AbortController();
  for await (const event of eventsOf(await runtime.post(thread.invocation({ stream_mode: ["messages-tuple"], ...options }), { signal: controller.signal }))) {
    thread.take(event);
    if (event.name === "unfinished") unfinished = event.data;
    if (event.name === "messages" && event.data[0].content.startsWith("word")) shown.push(event.data[0]);
    if (shown.length === count) break;
  }
  controller.abort();
  const kept = unfinished.map(({ id, node }) => ({ node, content: texts(shown.filter((chunk) => chunk.id === id)).join("") })).filter(({ content }) => content !== "");
  thread.pending = kept.map(({ node, content }) => ({ values: { messages: [{ type: "ai", content, id: `kept ${thread.log.length}` }] }, as_node: node }));
  return kept;
}

test("an interrupt keeps the text that was shown", async () => {
  const thread = new Thread(runtime);
  assert.deepEqual(await stopped(thread, { input: human("slow") }, 3), [{ node: "talk", content: "word0 word1 word2 " }]);
  const events = await thread.invoke({ input: human("second") });
  assert.deepEqual(named(events, "error"), []);
  assert.deepEqual(texts(thread.state.values.messages), ["slow", "word0 word1 word2 ", "second", "word0 word1 "]);
});

test("an interrupt keeps nothing of a structured output, nor of a step that has finished", async () => {
  const thread = new Thread(runtime, "planner");
  assert.deepEqual(await stopped(thread, { input: human("slow") }, 3), []);
  thread.pending = [{ values: human("slow"), as_node: "__input__" }];
  await thread.invoke({ input: human("second") });
  assert.deepEqual(texts(thread.state.values.messages), ["slow", "second", "word0 word1 "]);
});

test("an interrupt keeps the text of a subgraph that shares the channel", async () => {
  const thread = new Thread(runtime, "outer");
  assert.deepEqual(await stopped(thread, { input: human("slow") }, 2), [{ node: "inner", content: "word0 word1 " }]);
  await thread.invoke({ input: human("second") });
  assert.deepEqual(texts(thread.state.values.messages), ["slow", "word0 word1 ", "second", "word0 word1 "]);
});

test("what a node has returned beside one that is stopped is kept", async () => {
  const thread = new Thread(runtime, "parallel");
  assert.deepEqual(await stopped(thread, { input: human("slow") }, 2), [{ node: "talk", content: "word0 word1 " }]);
  await thread.invoke({ input: human("second") });
  const { messages } = thread.state.values;
  assert.deepEqual(texts(messages).slice(0, 4), ["slow", "Hello!", "word0 word1 ", "second"]);
  assert.deepEqual(texts(messages).slice(4).sort(), ["Hello!", "word0 word1 "]);
});

test("messages of subgraphs are streamed", async () => {
  const thread = new Thread(runtime, "outer");
  const events = await thread.invoke({ input: human("hi"), stream_mode: ["messages-tuple", "updates"], stream_subgraphs: true });
  assert.deepEqual(named(events, "error"), []);
  const streamed = events.filter(({ name }) => name.startsWith("messages|inner:"));
  assert.deepEqual(texts(streamed.map(({ data }) => data[0])), ["word0 ", "word1 "]);
  assert.deepEqual(log(thread).slice(-1), ["end"]);
  assert.equal(events.some(({ name }) => name.startsWith("updates|inner")), since(9));
});

test("breakpoints before and after a node, and a run that goes on", async () => {
  const thread = new Thread(runtime, "steps");
  assert.deepEqual(named(await thread.invoke({ input: { log: ["in"] }, interrupt_before: ["two"] }), "interrupt"), [[]]);
  assert.deepEqual([thread.state.next, log(thread)], [["two"], ["in", "one"]]);
  assert.deepEqual(named(await thread.invoke({ interrupt_after: "*" }), "interrupt"), [[]]);
  assert.deepEqual([thread.state.next, log(thread)], [["three"], ["in", "one", "two"]]);
  assert.deepEqual(named(await thread.invoke({ command: { resume: "go" } }), "interrupt"), []);
  assert.deepEqual([thread.state.next, log(thread)], [[], ["in", "one", "two", "three"]]);
});

test("a node asks, the state is changed, and the run goes on", async () => {
  const thread = new Thread(runtime, "asking");
  const [question] = named(await thread.invoke({ input: { log: ["in"] } }), "interrupt");
  assert.deepEqual(question.map(({ value }) => value), ["what?"]);
  assert.deepEqual([thread.state.next, thread.state.tasks[0].interrupts.map(({ value }) => value)], [["ask"], ["what?"]]);
  await thread.invoke({ operation: "update_state", supersteps: [{ updates: [{ values: { log: ["told"] }, as_node: "prepare" }] }] });
  assert.deepEqual(named(await thread.invoke({}), "error"), []);
  assert.deepEqual([thread.state.next, log(thread)], [[], ["in", "prepared", "told", "asked"]]);
});

test("a question is answered where the release has questions", { skip: !since(25) }, async () => {
  const thread = new Thread(runtime, "answering");
  const [question] = named(await thread.invoke({ input: { log: ["in"] } }), "interrupt");
  assert.deepEqual(question.map(({ value }) => value), ["what?"]);
  await thread.invoke({ command: { resume: "that" } });
  assert.deepEqual([thread.state.next, log(thread)], [[], ["in", "that"]]);
});

test("a command is refused where the release has none", { skip: since(23) }, async () => {
  const thread = new Thread(runtime, "steps");
  await thread.invoke({ input: { log: [] } });
  const [error] = named(await thread.invoke({ command: { goto: "two" } }), "error");
  assert.equal(error.error, "CommandError");
});

test("an error names its node, and a later attempt does not take the input again", async () => {
  const thread = new Thread(runtime, "steps");
  const journal = path.join(mkdtempSync(path.join(tmpdir(), "runtime-")), "journal");
  const run = { run_id: "11111111-1111-4111-8111-111111111111", input: { log: ["in"] } };
  const failed = await thread.invoke({ ...run, config: { configurable: { journal, fail: "two" } } });
  assert.deepEqual(named(failed, "error"), [{ error: "TypeError", message: "two fails" }]);
  assert.deepEqual([thread.state.next, JSON.parse(thread.state.tasks[0].error)], [["two"], { name: "TypeError", message: "two fails" }]);
  await thread.invoke({ ...run, attempt: 2, config: { configurable: { journal } } });
  assert.deepEqual(log(thread), ["in", "one", "two", "three"]);
  assert.deepEqual(readFileSync(journal, "utf8").trim().split("\n"), ["one", "two", "two", "three"]);
});

test("a fork goes on from an older checkpoint", async () => {
  const thread = new Thread(runtime, "steps");
  await thread.invoke({ input: { log: ["in"] } });
  const from = thread.log.find(({ root }) => root.next[0] === "two").root.id;
  const steps = named(await thread.invoke({ from }), "checkpoint");
  assert.equal(steps[0].parent_id, from);
  assert.deepEqual(log(thread), ["in", "one", "two", "three"]);
});

test("the state is changed step by step", async () => {
  const thread = new Thread(runtime, "steps");
  const updates = (as_node, values) => ({ updates: [{ values: { log: values }, as_node }] });
  const events = await thread.invoke({ operation: "update_state", supersteps: [updates("__start__", ["in"]), updates("one", ["as one"]), updates("two", ["as two"])] });
  assert.deepEqual(named(events, "error"), []);
  assert.deepEqual(named(events, "checkpoint").map(({ metadata, next }) => [metadata.source, next.join()]), [["update", "one"], ["update", "two"], ["update", "three"]]);
  await thread.invoke({});
  assert.deepEqual(log(thread), ["in", "as one", "as two", "three"]);
});

test("nodes that are sent to run once each", async () => {
  const thread = new Thread(runtime, "spread");
  await thread.invoke({ input: { log: ["a", "b"] }, interrupt_before: ["work"] });
  assert.deepEqual(thread.state.next, ["work", "work"]);
  await thread.invoke({});
  assert.deepEqual(log(thread), ["a", "b", "a!", "b!", "all 4"]);
});

test("graphs are described", async () => {
  const { graphs } = await (await runtime.post({ operation: "describe" })).json();
  assert.ok(["__start__", "inner", "end"].every((name) => graphs.outer.graph.nodes.some(({ id }) => id === name)));
  assert.deepEqual(Object.keys(graphs.outer.subgraphs ?? {}), since(9) ? ["inner"] : []);
});
