import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { json } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { eventsOf, named, project, run, Runtime, Thread, token, until, write } from "./runtime.mjs";

const graphs = "graphs/framework.json";
let runtime;
const cleanups = [];
before(async () => (runtime = await Runtime.start({ after: (cleanup) => cleanups.push(cleanup) }, graphs)));
after(() => Promise.all(cleanups.map((cleanup) => cleanup())));

/** A configuration file beside the broken graphs. */
function configure(fields) {
  const file = path.join(mkdtempSync(path.join(project, "graphs", "config-")), "framework.json");
  cpSync(path.join(project, "graphs", "broken"), path.dirname(file), { recursive: true });
  writeFileSync(file, typeof fields === "string" ? fields : JSON.stringify(fields));
  return file;
}

/** The same file below a link to its directory. */
function linked(file) {
  const link = path.join(mkdtempSync(path.join(tmpdir(), "linked-")), "project");
  cleanups.push(() => rmSync(path.dirname(link), { recursive: true }));
  symlinkSync(path.dirname(file), link);
  return path.join(link, path.basename(file));
}

const failures = {
  "./syntax.ts:graph": /^syntax\.ts, line 3: SyntaxError: /,
  "./syntax.mjs:graph": /^syntax\.mjs, line 3: SyntaxError: /,
  "./nowhere.ts:graph": /^there is no file "\.\/nowhere\.ts"$/,
  "./other.ts:graph": /^\.\/other\.ts has no export "graph"; it has /,
  "./other.ts:other": /^a graph, or a function that returns one, was expected, not a plain object$/,
  "./other.ts:dangling": /^the graph cannot be compiled: /,
  "./throws.ts:graph": /^throws\.ts, line 3: TypeError: Cannot read properties of undefined/,
  "./package.ts:graph": /Cannot find package 'no-such-package'/,
};

for (const [name, at] of [["", (file) => file], [", also through a link", linked]]) test(`each graph that cannot be had is a line${name}`, async () => {
  const graphs = Object.fromEntries(Object.keys(failures).map((place) => [place, place]));
  const { code, stdout, stderr } = await run(["--config", at(configure({ graphs })), "--check"]);
  assert.deepEqual([code, stdout], [1, ""]);
  const lines = stderr.trim().split("\n");
  assert.equal(lines.length, Object.keys(failures).length, stderr);
  for (const [place, want] of Object.entries(failures)) {
    const said = lines.filter((line) => line.startsWith(`graph "${place}": `));
    assert.equal(said.length, 1, stderr);
    assert.match(said[0].slice(`graph "${place}": `.length), want);
  }
});

test("releases before 0.2.0 are refused by name", async () => {
  const config = write({
    "framework.json": { graphs: { agent: "./agent.mjs:graph" } },
    "agent.mjs": 'export const graph = { lc_namespace: ["langgraph", "pregel"], updateState() {}, stream() {}, nodes: {} };',
    "node_modules/@langchain/langgraph/package.json": { name: "@langchain/langgraph", version: "0.1.9", exports: { "./package.json": "./package.json" } },
  });
  const { code, stderr } = await run(["--config", path.join(project, config), "--check"]);
  assert.deepEqual([code, stderr.trim()], [1, "release 0.1.9 of the framework is too old: graphs of 0.2.0 and newer are hosted"]);
});

test("a place that names no variable", async () => {
  const { code, stdout, stderr } = await run(["--config", configure({ graphs: { agent: "./agent" } }), "--check"]);
  assert.deepEqual([code, stdout], [1, ""]);
  assert.match(stderr.trim(), /must be "\.\/path\/to\/file\.ts:variable"$/);
});

test("a factory may need what only a run has", async () => {
  const { code, stdout, stderr } = await run(["--config", configure({ graphs: { agent: "./other.ts:failing" } }), "--check"]);
  assert.deepEqual([code, JSON.parse(stdout)], [0, { graphs: { agent: { configured: true, checkpoints: true } } }]);
  assert.equal(stderr.trim(), 'graph "agent" cannot be described: no key');
});

test("a configuration that cannot be read", async () => {
  for (const [config, want] of [["{", /framework\.json is not valid JSON/], ["[]", /is not a JSON object/], [{ graphs: {} }, /graphs must name at least one graph/]]) {
    const { code, stderr } = await run(["--config", configure(config)]);
    assert.equal(code, 1);
    assert.match(stderr.trim(), want);
  }
  const { code, stderr } = await run([], { cwd: "/" });
  assert.deepEqual([code, stderr.trim()], [1, "there is no framework.json or langgraph.json in /"]);
});

test("what is not served is refused by name", async () => {
  const fields = { "ui": { a: "./ui.tsx" }, auth: { path: "./auth.ts:auth" }, http: {}, webhooks: { a: 1 }, ui_config: { a: 1 }, unknown: 1, " Encryption": { path: "x" }, store: " ", api_version: "0.3" };
  const { code, stderr } = await run(["--config", configure({ graphs: { agent: { path: "./other.ts:failing", description: "An agent.", color: "red" } }, ...fields })]);
  assert.equal(code, 1);
  assert.deepEqual(stderr.trim().split("\n").map((line) => line.split(":")[1].trim()), ["Encryption", "auth", "ui", "ui_config", "webhooks"]);
});

test("attack: a repository with auth is not served", async () => {
  const plain = JSON.stringify({ graphs: { agent: "./other.ts:failing" } });
  const guarded = `${plain.slice(0, -1)}, "\\u0061uth": {"path": "./auth.ts:auth"}}`;
  for (const [own, other, variables, said] of [
    [guarded, undefined, {}, "framework.json: auth: is not served"],
    [undefined, guarded, {}, "langgraph.json: auth: is not served"],
    [plain, guarded, {}, "there are both framework.json and langgraph.json, and they differ"],
    [plain, plain, { LANGGRAPH_AUTH: "{}" }, "the environment variable LANGGRAPH_AUTH: is not read here"],
  ]) {
    const directory = path.dirname(configure(plain));
    for (const [name, text] of [["framework.json", own], ["langgraph.json", other]]) {
      if (text === undefined) rmSync(path.join(directory, name), { force: true });
      else writeFileSync(path.join(directory, name), text);
    }
    const { code, stderr } = await run([], { cwd: directory, env: variables });
    assert.deepEqual([code, stderr.includes(said)], [1, true], stderr);
  }
});

test("a broken graph ends the program when it starts", async () => {
  const { code, stderr } = await run(["--config", configure({ graphs: { agent: "./syntax.ts:graph" } })]);
  assert.equal(code, 1);
  assert.match(stderr, /line 3: SyntaxError/);
});

test("--check describes the graphs, as the operation does", async (t) => {
  const { code, stdout } = await run(["--config", path.join(project, "examples/node-approval/framework.json"), "--check"]);
  assert.equal(code, 0);
  const { graphs: described } = JSON.parse(stdout);
  const { agent } = described;
  assert.equal(agent.checkpoints, true);
  assert.deepEqual(agent.graph.nodes.map((node) => node.id), ["__start__", "write", "approve", "send", "__end__"]);
  assert.ok(agent.graph.edges.some((edge) => edge.source === "approve" && edge.target === "send" && edge.conditional));
  assert.equal(agent.input_schema.properties.request.type, "string");
  assert.deepEqual(agent.output_schema.required, ["request"]);
  assert.ok(agent.state_schema);
  const runtime = await Runtime.start(t, "examples/node-approval/framework.json");
  const answer = await runtime.post({ operation: "describe" });
  assert.match(answer.headers.get("content-type"), /^application\/json/);
  assert.deepEqual(await answer.json(), { graphs: described });
});

test("graphs within a graph are described by namespace", async () => {
  const { graphs: described } = await (await runtime.post({ operation: "describe" })).json();
  assert.deepEqual(Object.keys(described.asking.subgraphs), ["asking"]);
  assert.equal(described.steps.subgraphs, undefined);
  assert.ok(described.factory.graph.nodes.some((node) => node.id === "unnamed"));
});

test("a factory is described as an assistant configures it", async () => {
  const question = { operation: "describe", graph: "factory", config: { configurable: { node_name: "mine" } }, user: { identity: "ada" } };
  const { graphs } = await (await runtime.post(question)).json();
  assert.deepEqual(Object.keys(graphs), ["factory"]);
  assert.ok(graphs.factory.configured && graphs.factory.graph.nodes.some((node) => node.id === "mine"));
  assert.equal((await runtime.post({ ...question, graph: "other" })).status, 404);
});

test("requests that are refused", async () => {
  const cases = [
    [401, { headers: { authorization: "Bearer another" } }, {}],
    [401, { headers: { authorization: "" } }, {}],
    [400, {}, "{"],
    [400, {}, "[]"],
    [400, {}, { operation: "dance" }],
    [400, {}, { graph: 1 }],
    [400, {}, { graph: "steps", state: { checkpoint: { checkpoints: [{ id: "1", data: "%" }] } } }],
    [400, {}, { graph: "steps", command: { goto: [1] } }],
    [404, {}, { graph: "unknown" }],
  ];
  for (const [status, options, body] of cases) {
    const response = await runtime.post(body, options);
    const answer = await response.json();
    assert.equal(response.status, status, JSON.stringify(body));
    assert.ok(answer.error && answer.message, JSON.stringify(answer));
  }
  assert.equal((await fetch(`${runtime.url}/nowhere`)).status, 404);
  assert.equal((await fetch(`${runtime.url}/invocations`)).status, 405);
  assert.deepEqual((await runtime.ping()).status, "Healthy");
});

test("the signature", async () => {
  const status = async (header) => {
    const response = await runtime.post(new Thread(runtime, "steps").invocation({ input: { log: [] } }), { headers: { "x-slipway-signature": header } });
    await response.text();
    return response.status;
  };
  const signed = (at, { nonce = "nonce", key = token } = {}) => `t=${at},n=${nonce},v1=${createHmac("sha256", key).update(`${at}.nonce`).digest("hex")}`;
  const now = Math.floor(Date.now() / 1000);
  for (const good of [signed(now), signed(now - 290), `${signed(now)},v2=x`]) assert.equal(await status(good), 200, good);
  for (const bad of [signed(now, { nonce: "other" }), signed(now, { key: "another" }), signed(now - 310), signed(now + 310), signed("NaN"), signed(""), "nonsense", ""]) {
    assert.equal(await status(bad), 401, bad);
  }
});

test("without a token of its own the runtime takes every caller", async (t) => {
  const runtime = await Runtime.start(t, graphs, { SLIPWAY_INVOKE_TOKEN: "" });
  const response = await runtime.post(new Thread(runtime, "steps").invocation({ input: { log: [] } }), { headers: { authorization: "" } });
  assert.equal(response.status, 200);
  await response.text();
});

test("a running invocation may finish after SIGTERM, and no other begins", async (t) => {
  const runtime = await Runtime.start(t, graphs);
  const response = await runtime.post(new Thread(runtime, "trouble").invocation({ input: { what: "finish" }, stream_mode: ["custom", "updates"] }));
  const events = [];
  for await (const event of eventsOf(response)) {
    events.push(event);
    if (event.name !== "custom") continue;
    assert.equal((await runtime.ping()).status, "HealthyBusy");
    runtime.child.kill("SIGTERM");
    await until("the end of listening", () => fetch(`${runtime.url}/ping`, { headers: { connection: "close" } }).then(() => false, () => true));
  }
  assert.deepEqual(named(events, "updates"), [{ node: { n: 2 } }]);
  assert.deepEqual(await runtime.exited, [0, null]);
});

test("it listens at the socket that it is offered", async (t) => {
  const dir = mkdtempSync(path.join(tmpdir(), "slipway-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const place = path.join(dir, "socket");
  const { url } = await Runtime.start(t, graphs, { SLIPWAY_SOCKET: place });
  assert.equal(url, place);
  const [response] = await once(request({ socketPath: place, path: "/ping" }).end(), "response");
  assert.equal((await json(response)).status, "Healthy");
});

test("a port that is taken ends the program", async () => {
  const { code, stderr } = await run(["--config", path.join(project, graphs)], { env: { PATH: process.env.PATH, HOST: "127.0.0.1", PORT: new URL(runtime.url).port } });
  assert.equal(code, 1);
  assert.match(stderr, /EADDRINUSE/);
});
