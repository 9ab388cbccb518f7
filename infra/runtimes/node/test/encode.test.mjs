import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { Runtime, Thread, write } from "./runtime.mjs";

const { encode } = await import(pathToFileURL(path.join(process.env.RUNTIME_DIR, "src", "encode.mjs")).href);

const GRAPH = String.raw`
import { Annotation, START, StateGraph } from "@langchain/langgraph";
const texts = { half: "cut \ud83d", other: "\ude00\ud83d", whole: "\ud83d\ude00", written: "\\ud83d", after: "\\\ud83d\n\"", ["name \udc00"]: 1 };
const node = (_, { writer }) => {
  writer?.(texts);
  return { texts };
};
export const graph = new StateGraph(Annotation.Root({ texts: Annotation() })).addNode("cut", node).addEdge(START, "cut").compile();
`;

test("no event has half of a surrogate pair, which clients in other languages cannot read", async (t) => {
  const config = write({ "framework.json": { graphs: { agent: "./graph.mjs:graph" } }, "graph.mjs": GRAPH });
  const runtime = await Runtime.start(t, config);
  const thread = new Thread(runtime);
  const texts = { half: "cut \ufffd", other: "\ufffd\ufffd", whole: "\u{1f600}", written: "\\ud83d", after: "\\\ufffd\n\"", "name \ufffd": 1 };
  const events = await thread.invoke({ input: { texts: {} }, stream_mode: ["updates", "values", "custom"] });
  assert.deepEqual(events.find(({ name }) => name === "updates").data, { cut: { texts } });
  assert.deepEqual(events.find(({ name }) => name === "custom").data, texts);
  assert.deepEqual(thread.state.values.texts, texts);
});

test("a value that throws what has no text has a form", () => {
  const failing = (thrown) => ({ toJSON() { throw thrown; } });
  assert.equal(encode([failing(new Error("no")), failing(null), failing(Object.create(null))]), '["[no]","[null]","[the text of the error cannot be made]"]');
});
