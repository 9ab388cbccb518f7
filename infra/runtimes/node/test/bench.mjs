// Measures the cost of a run beside the graph: a graph that does nothing runs through the runtime
// and in a loop in this process. After test.sh:
//   RUNTIME_DIR=.tools/runtime-node/runtime PROJECT_DIR=.tools/runtime-node/current \
//   node infra/runtimes/node/test/bench.mjs
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { project, Runtime, token } from "./runtime.mjs";

const RUNS = 1000;
const load = (file) => import(pathToFileURL(path.resolve(file)).href);
const require = createRequire(path.resolve(project, "package.json"));
const { MemorySaver } = await load(path.join(path.dirname(require.resolve("@langchain/langgraph/package.json")), "dist/index.js"));
const { builder } = await load(path.join(project, "graphs/noop.mjs"));

/**
 * The processor's time that a process has had, in ms: on a busy machine it says more than the
 * clock.
 */
function cpuOf(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

async function measure(name, go, pid = process.pid) {
  for (let i = 0; i < 200; i++) await go();
  const times = [];
  const before = cpuOf(pid);
  for (let i = 0; i < RUNS; i++) {
    const begin = process.hrtime.bigint();
    await go();
    times.push(Number(process.hrtime.bigint() - begin) / 1e6);
  }
  const cpu = (cpuOf(pid) - before) / RUNS;
  times.sort((a, b) => a - b);
  console.log(`${name.padEnd(44)} p50 ${times[RUNS / 2].toFixed(2)} ms  p99 ${times[Math.floor(RUNS * 0.99)].toFixed(2)} ms  CPU ${cpu.toFixed(2)} ms`);
}

const cleanups = [];
const runtime = await Runtime.start({ after: (cleanup) => cleanups.push(cleanup) }, "graphs/framework.json");
const agent = new Agent({ keepAlive: true });
const post = () => new Promise((resolve, reject) => {
  const body = JSON.stringify({ graph: "noop", thread_id: randomUUID(), run_id: randomUUID(), input: { n: 1 }, state: { checkpoint: null, pending: [] }, stream_mode: ["updates"] });
  const sent = request(`${runtime.url}/invocations`, { method: "POST", agent, headers: { authorization: `Bearer ${token}`, "content-length": Buffer.byteLength(body) } }, (response) => {
    response.resume().on("end", resolve);
  });
  sent.on("error", reject).end(body);
});

const plain = builder.compile();
const kept = builder.compile({ checkpointer: new MemorySaver() });
await measure("in process, without checkpoints", () => plain.invoke({ n: 1 }));
await measure("in process, with the framework's MemorySaver", () => kept.invoke({ n: 1 }, { configurable: { thread_id: randomUUID() } }));
await measure("through the runtime", post, runtime.child.pid);
await measure("GET /ping", () => runtime.ping(), runtime.child.pid);
agent.destroy();
await Promise.all(cleanups.map((cleanup) => cleanup()));
