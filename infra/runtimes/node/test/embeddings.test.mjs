// The vectors of the store's items: what is embedded, in which calls, and what becomes of failures.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { project, run, Runtime, write } from "./runtime.mjs";

const agent = 'import { Annotation, START, StateGraph } from "@langchain/langgraph";\nexport const graph = new StateGraph(Annotation.Root({ n: Annotation })).addNode("a", () => ({})).addEdge(START, "a");\n';
/** A text becomes its length and its number of "a"s. Each call is a line of a file. */
const functions = `
import { appendFileSync } from "node:fs";
const vector = (text: string) => {
  if (text.includes("broken")) throw new RangeError("a secret");
  return text.includes("short") ? [1] : [text.length, text.split("a").length - 1];
};
export const embed = (texts: string[]) => {
  appendFileSync(new URL("calls", import.meta.url), JSON.stringify(texts) + "\\n");
  return texts.map(vector);
};
export const later = async (texts: string[]) => texts.map(vector);
export const own = { embedDocuments: async (texts: string[]) => texts.map(() => [1, 0]), embedQuery: async () => [0, 1] };
export const number = 7;
`;
const files = (index) => ({ "framework.json": { graphs: { agent: "./agent.ts:graph" }, store: { index: { dims: 2, ...index } } }, "agent.ts": agent, "embed.ts": functions });
const env = { SLIPWAY_KEYS: "store" };

/** Starts an agent, and returns a function that asks it for vectors. */
async function indexed(t, index) {
  const config = write(files(index));
  const runtime = await Runtime.start(t, config, env);
  const ask = async (embed) => (await runtime.post({ operation: "embed", embed })).json();
  const vectors = async (items, queries = []) => {
    const { items: made, queries: asked, error } = await ask({ items, queries });
    assert.equal(error, undefined);
    return [...made, ...asked].map((text) => Buffer.from(text, "base64")).map((bytes) => Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(4 * i)));
  };
  return { runtime, ask, vectors, calls: () => readFileSync(path.join(project, path.dirname(config), "calls"), "utf8").trim().split("\n").map((line) => JSON.parse(line)) };
}

test("texts are taken as the framework takes them", async (t) => {
  const value = { text: "aab", of: { name: "a" }, parts: [{ text: "x" }, { text: "ya" }], n: 12 };
  for (const name of ["embed", "later"]) {
    const { vectors } = await indexed(t, { embed: `./embed.ts:${name}`, fields: ["text", "of.name"] });
    const items = [{ value }, { value, fields: ["parts[*].text", "n"] }, { value: {} }];
    assert.deepEqual(await vectors(items, ["a", ""]), [[3, 2, 1, 1], [2, 0, 1, 0, 2, 1], [], [1, 1], [0, 0]]);
  }
});

test("an object embeds queries in its own way", async (t) => {
  const { vectors } = await indexed(t, { embed: "./embed.ts:own" });
  assert.deepEqual(await vectors([{ value: { a: 1 } }], ["q"]), [[1, 0], [0, 1]]);
});

test("items that come together are embedded together, and a failure is that of its own item", async (t) => {
  const { ask, vectors, calls } = await indexed(t, { embed: "./embed.ts:embed", fields: ["text"] });
  assert.deepEqual(await vectors([{ value: { text: "one" } }, { value: { text: "two" } }]), [[3, 0], [3, 0]]);
  assert.deepEqual(calls(), [["one", "two"]]);
  const answers = await Promise.all(["fine", "broken", "short"].map((text) => ask({ items: [{ value: { text } }] })));
  assert.equal(answers[0].error, undefined);
  assert.equal(answers[1].error, "RangeError");
  assert.equal(answers[2].error, "a vector has 1 dimensions, and store.index.dims is 2");
});

test("an item has a bound", async (t) => {
  const { ask } = await indexed(t, { embed: "./embed.ts:embed", fields: ["all[*]"] });
  assert.equal((await ask({ items: [{ value: { all: Array.from({ length: 1001 }, (_, i) => `x${i}`) } }] })).error, "the item has 1001 texts, and may have 1000");
});

test("texts that are no texts are refused, and an agent without an index embeds nothing", async (t) => {
  const { runtime } = await indexed(t, { embed: "./embed.ts:embed" });
  for (const embed of [{ items: [1] }, { items: [{ value: 1 }] }, { items: [{ value: {}, fields: [1] }] }, { queries: [1] }, { queries: "a" }]) {
    assert.equal((await runtime.post({ operation: "embed", embed })).status, 400, JSON.stringify(embed));
  }
  const without = await Runtime.start(t, write({ ...files({}), "framework.json": { graphs: { agent: "./agent.ts:graph" } } }));
  assert.equal((await without.post({ operation: "embed", embed: { queries: ["a"] } })).status, 404);
});

test("an index that cannot be loaded ends the program", async () => {
  for (const [index, words] of [
    [{ embed: "./embed.ts:none" }, /store\.index\.embed: \.\/embed\.ts has no export "none"/],
    [{ embed: "./embed.ts:number" }, /store\.index\.embed: \.\/embed\.ts:number must be a function or an Embeddings object/],
    [{ embed: "nobody:model" }, /store\.index\.embed: "nobody" is no provider/],
    [{ embed: "openai:model" }, /store\.index\.embed: openai:model cannot be used: .*@langchain\/openai/],
    [{ embed: "./embed.ts:embed", dims: 0 }, /store\.index: must be as/],
  ]) {
    const { code, stderr } = await run(["--config", path.join(project, write(files(index))), "--check"], { env: { ...process.env, ...env } });
    assert.equal(code, 1);
    assert.match(stderr, words);
  }
});
