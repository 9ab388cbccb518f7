// Schemas of graphs whose types are all there is, and drawings of graphs with those within.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Runtime, write } from "./runtime.mjs";

const imports = 'import { Annotation, END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";\n';
const annotated = `${imports}
interface Page { title: string; tags: ("old" | "new")[] }
const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  /** What is to be written about. */
  topic: Annotation<string>,
  page: Annotation<Page>,
  count: Annotation<number>({ reducer: (a: number, b: number) => a + b, default: () => 0 }),
});
const Input = Annotation.Root({ topic: Annotation<string> });
const Config = Annotation.Root({ model: Annotation<"small" | "large">, depth: Annotation<number> });
const builder = new StateGraph({ stateSchema: State, input: Input, output: State }, Config).addNode("write", () => ({ count: 1 })).addEdge(START, "write").addEdge("write", END);
export const compiled = builder.compile();
export { builder };
export const factory = async () => builder.compile();
export const wrong: number = "a type error ends nothing";
`;
const plain = `${imports}
const State = Annotation.Root({ topic: Annotation({ reducer: (a, b) => a + b, default: () => "" }) });
export default new StateGraph(State).addNode("write", () => ({ topic: "t" })).addEdge(START, "write").compile();
`;
const nested = `${imports}
const graph = (node: any) => new StateGraph(MessagesAnnotation).addNode("node", node).addNode("next", () => ({})).addEdge(START, "node").addEdge("node", "next").addEdge("next", END).compile();
export const outer = graph(graph(graph(() => ({}))));
export const untyped: any = graph(() => ({}));
`;

const within = `${imports}
import { shared } from "./shared";
const Inner = Annotation.Root({ topic: Annotation<string>, words: Annotation<number> });
const Deep = Annotation.Root({ topic: Annotation<string>, deepest: Annotation<boolean> });
const deep = new StateGraph(Deep).addNode("write", () => ({ deepest: true })).addEdge(START, "write").compile();
const inner = new StateGraph(Inner).addNode("deep", deep).addEdge(START, "deep");
const names = { inner: "inner" } as const;
const builder = new StateGraph(MessagesAnnotation);
builder.addNode(names.inner, inner.compile()).addNode({ shared, plain: () => ({}) }).addEdge(START, "inner").addEdge("inner", "shared").addEdge("shared", "plain");
export const outer = builder.compile();
export async function made(config: { n: number }) {
  if (config.n > 1) return new StateGraph(Deep).addNode("one", () => ({})).addEdge(START, "one").compile();
  const Own = Annotation.Root({ own: Annotation<string[]> });
  const own = await Promise.resolve(new StateGraph(Own).addNode("write", () => ({ own: [] })).addEdge(START, "write").compile());
  return new StateGraph(Inner).addNode([["own", own], ["asked", asked(config.n)]]).addEdge(START, "own").addEdge("own", "asked").compile();
}
const asked = (_n: number) => new StateGraph(Deep).addNode("write", () => ({})).addEdge(START, "write").compile();
`;
const shared = `${imports}
const Shared = Annotation.Root({ ...MessagesAnnotation.spec, user: Annotation<{ name: string }> });
export const shared = new StateGraph(Shared).addNode("write", () => ({})).addEdge(START, "write").compile();
`;

/**
 * Starts the graphs, and returns a function that asks for their description, until the compiler has
 * ended.
 */
async function start(t, files, graphs, env) {
  const runtime = await Runtime.start(t, write({ ...files, "framework.json": { graphs } }), env);
  const describe = async (typed) => {
    const answer = await runtime.post({ operation: "describe", typed });
    return answer.status === 503 ? describe(typed) : (await answer.json()).graphs;
  };
  return Object.assign(describe, { runtime });
}

/** The environment in which each process runs a piece of code first. */
const preloaded = (code) => ({ NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` });
const limited = (megabytes) => `process.constrainedMemory = () => ${megabytes} * 2 ** 20;`;

test("schemas are made of the types of a graph, of its builder and of what makes it", async (t) => {
  const graphs = { compiled: "./agent.ts:compiled", builder: "./agent.ts:builder", factory: "./agent.ts:factory", plain: "./plain.mjs:default" };
  const describe = await start(t, { "agent.ts": annotated, "plain.mjs": plain }, graphs);
  assert.deepEqual(Object.values(await describe(false)).map((graph) => graph.input_schema), [undefined, undefined, undefined, undefined]);
  const { plain: untyped, ...typed } = await describe(true);
  for (const { input_schema: input, output_schema: output, state_schema: state, config_schema: config, context_schema: context, graph } of Object.values(typed)) {
    assert.deepEqual([Object.keys(input.properties), input.required], [["topic"], undefined]);
    assert.deepEqual(Object.keys(output.properties).sort(), ["count", "messages", "page", "topic"]);
    assert.deepEqual(output.properties.topic, { description: "What is to be written about.", type: "string" });
    assert.deepEqual(output.properties.messages, { type: "array", items: { $ref: "#/definitions/BaseMessage" } });
    const [, page] = Object.entries(output.definitions).find(([name]) => output.properties.page.$ref === `#/definitions/${encodeURIComponent(name)}`);
    assert.deepEqual(page.properties, { title: { type: "string" }, tags: { type: "array", items: { enum: ["new", "old"], type: "string" } } });
    assert.deepEqual(output.definitions.BaseMessage.required, ["content", "type"]);
    assert.equal(state.properties.count.type, "number");
    assert.deepEqual(config.properties, { model: { enum: ["large", "small"], type: "string" }, depth: { type: "number" } });
    assert.deepEqual(context, config);
    assert.equal(graph.nodes.length, 3);
  }
  assert.deepEqual(untyped.output_schema.properties, { topic: { type: "string" } });
  assert.equal(untyped.config_schema, undefined);
});

const stated = `import { MessagesValue, START, StateGraph, StateSchema } from "@langchain/langgraph";
import { z } from "zod";
const State = new StateSchema({ messages: MessagesValue, topic: z.string(), count: z.number().default(0) });
const Topic = new StateSchema({ topic: z.string() });
const plain = new StateGraph(State).addNode("write", () => ({ count: 1 })).addEdge(START, "write");
export const whole = plain.compile();
export const parts = new StateGraph({ state: State, input: Topic, output: Topic }).addNode("inner", whole).addEdge(START, "inner").compile();
const First = new StateSchema({ messages: MessagesValue });
First.getJsonSchema = First.getInputJsonSchema = () => ({ type: "object", properties: {} }); // as release 1.1.1
export const first = new StateGraph(First).addNode("write", () => ({})).addEdge(START, "write").compile();
`;

test("a StateSchema says which schemas its graph has, in each release", async (t) => {
  const describe = await start(t, { "agent.ts": stated }, { whole: "./agent.ts:whole", parts: "./agent.ts:parts", first: "./agent.ts:first" });
  const { whole, parts, first } = await describe(false);
  const properties = ({ input_schema: input, output_schema: output, state_schema: state }) => [input, output, state].map((schema) => Object.keys(schema?.properties ?? {}).sort());
  const all = ["count", "messages", "topic"];
  assert.deepEqual(properties(whole), [all, all, all]);
  assert.equal(whole.input_schema.properties.messages.langgraph_type, "messages");
  assert.deepEqual(properties(parts), [["topic"], ["topic"], all]);
  assert.deepEqual(properties(parts.subgraphs.inner), [all, all, all]);
  assert.deepEqual(properties(first), [["messages"], ["messages"], ["messages"]]);
});

test("graphs within have the schemas of their types, wherever they are named", async (t) => {
  const describe = await start(t, { "agent.ts": within, "shared.ts": shared }, { outer: "./agent.ts:outer", made: "./agent.ts:made" });
  const { outer, made } = await describe(true);
  const properties = (graph) => Object.fromEntries(Object.entries(graph.subgraphs).map(([ns, { state_schema: state }]) => [ns, Object.keys(state.properties).sort()]));
  assert.deepEqual(properties(outer), { inner: ["topic", "words"], "inner|deep": ["deepest", "topic"], shared: ["messages", "user"] });
  assert.deepEqual(properties(made), { asked: ["deepest", "topic"], own: ["own"] });
  assert.deepEqual(outer.subgraphs.inner.input_schema.properties, { topic: { type: "string" }, words: { type: "number" } });
  assert.deepEqual(outer.subgraphs["inner|deep"].output_schema.properties.deepest, { type: "boolean" });
  assert.deepEqual(made.subgraphs.own.output_schema.properties, { own: { type: "array", items: { type: "string" } } });
});

test("a schema that the types do not give is left out", async (t) => {
  const describe = await start(t, { "agent.ts": nested }, { untyped: "./agent.ts:untyped", outer: "./agent.ts:outer" });
  const { untyped, outer } = await describe(true);
  assert.deepEqual(Object.keys(untyped).sort(), ["checkpoints", "graph"]);
  assert.deepEqual(outer.subgraphs, { node: {}, "node|node": {} });
  assert.ok(outer.input_schema);
});

test("a schema that the compiler refuses to make takes no other schema away", async (t) => {
  const argument = annotated.replace("new StateGraph({ stateSchema: State, input: Input, output: State }, Config)", "new StateGraph<typeof State.State>(State)");
  const describe = await start(t, { "agent.ts": annotated, "argument.ts": argument }, { named: "./argument.ts:compiled", good: "./agent.ts:compiled" });
  const { named, good } = await describe(true);
  assert.equal(named.input_schema, undefined);
  assert.deepEqual(Object.keys(good.input_schema.properties), ["topic"]);
  assert.match(describe.runtime.stderr, /the input_schema of "named" cannot be made of its type: Unsupported type/);
});

test("each graph is read with the tsconfig.json that is nearest to it", async (t) => {
  const files = Object.fromEntries(["one", "two"].flatMap((name) => [
    [`${name}/tsconfig.json`, { compilerOptions: { paths: { "own/*": [`./${name}-types/*`] } } }],
    [`${name}/${name}-types/page.ts`, `export interface Page { ${name}: string }\n`],
    [`${name}/agent.ts`, `${imports}import type { Page } from "own/page";
const State = Annotation.Root({ page: Annotation<Page> });
export default new StateGraph(State).addNode("write", () => ({})).addEdge(START, "write").compile();
`],
  ]));
  const described = await (await start(t, files, { one: "./one/agent.ts:default", two: "./two/agent.ts:default" }))(true);
  for (const name of ["one", "two"]) assert.deepEqual(Object.values(described[name].input_schema.definitions)[0].properties, { [name]: { type: "string" } });
});

test("an agent whose memory has no room for the compiler has no schemas of types", async (t) => {
  const describe = await start(t, { "agent.ts": nested }, { outer: "./agent.ts:outer" }, preloaded(limited(512)));
  assert.equal((await describe(true)).outer.input_schema, undefined);
  assert.match(describe.runtime.stderr, /the schemas of "outer" cannot be made of their types: the compiler needs a heap of 300 MB, /);
});

test("a compiler that lacks memory is reported", async (t) => {
  const fill = `${limited(1024)} if (process.argv[1].endsWith("types-worker.mjs")) for (const all = []; ; ) all.push(new Array(1e6).fill(0));`;
  const describe = await start(t, { "agent.ts": nested }, { outer: "./agent.ts:outer" }, preloaded(fill));
  assert.equal((await describe(true)).outer.input_schema, undefined);
  assert.match(describe.runtime.stderr, /the compiler was ended by SIG\w+, probably because a heap of [34]\d\d MB is too small/);
});

test("a graph is drawn with those within, level by level", async (t) => {
  const describe = await start(t, { "agent.ts": nested }, { outer: "./agent.ts:outer" });
  const { graph, xray } = (await describe(false)).outer;
  const names = ({ nodes }) => nodes.map(({ id }) => id).filter((id) => !id.endsWith("__")).sort();
  assert.deepEqual([graph, ...xray].map(names), [["next", "node"], ["next", "node:next", "node:node"], ["next", "node:next", "node:node:next", "node:node:node"]]);
});

test("a graph with a graph of another server in it is described without that server", async (t) => {
  const source = `${imports}import { RemoteGraph } from "@langchain/langgraph/remote";
const far = new RemoteGraph({ graphId: "agent", url: "http://127.0.0.1:9" });
const State = Annotation.Root({ topic: Annotation<string> });
const inner = new StateGraph(State).addNode("far", far).addEdge(START, "far").compile();
export default new StateGraph(State).addNode("inner", inner).addNode("far", far).addEdge(START, "inner").addEdge("inner", "far").compile();
`;
  const { graph, input_schema, subgraphs } = (await (await start(t, { "agent.ts": source }, { agent: "./agent.ts:default" }))(true)).agent;
  assert.deepEqual(graph.nodes.map(({ id }) => id).filter((id) => !id.endsWith("__")), ["inner", "far"]);
  assert.deepEqual([input_schema.properties, Object.keys(subgraphs)], [{ topic: { type: "string" } }, ["inner", "inner|far", "far"]]);
});
