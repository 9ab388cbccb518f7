import { spawn } from "node:child_process";
import os from "node:os";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Refusal } from "./errors.mjs";

const PROGRAM = fileURLToPath(new URL("./types-worker.mjs", import.meta.url));
/** How long the compiler may take. It works beside the runs, and gives way to them. */
const LIMIT_MS = 300_000;
/**
 * How long a request waits for it. The agent server waits a little longer, and on AWS it has 29 s
 * for its own answer.
 */
const WAIT_MS = 20_000;
/** The heap of the compiler. With less than the minimum, it is not started. */
const MIN_HEAP_MB = 300;
const MAX_HEAP_MB = 1024;
const NICE = 10;

/** @type {Map<string, Promise<Record<string, object>>>} */
const made = new Map();

/**
 * Makes schemas of graphs whose types are all that says what they take, with the TypeScript
 * compiler in a process of its own. A graph's files do not change while this process lives, so the
 * compiler works once. A request does not wait for it for ever: the next one asks for what is done
 * by then. What the compiler cannot make is left out, with a warning.
 * @param {Record<string, {file: string, variable: string, subgraphs: string[]}>} places of the
 * graphs, by id, and the namespaces of the graphs within
 * @returns {Promise<Record<string, object>>} schemas by graph, under the names of the agent
 * server's interface; those of the graphs within as `subgraphs`
 */
export function schemasOfTypes(places) {
  const asked = JSON.stringify(places);
  if (!made.has(asked)) {
    made.set(asked, compile(asked).catch((error) => {
      console.warn(`the schemas of ${Object.keys(places).map((id) => `"${id}"`).join(", ")} cannot be made of their types: ${error.message}`);
      return {};
    }));
  }
  const late = new Refusal(503, "Unavailable", "the schemas of the graphs are not made yet");
  return Promise.race([made.get(asked), wait(WAIT_MS, undefined, { ref: false }).then(() => Promise.reject(late))]);
}

/**
 * Half of the memory that this process may still take: a memory group that lacks memory may end as
 * a whole, with the agent and its runs.
 */
function heapInMB() {
  const total = Math.min(process.constrainedMemory() || Infinity, os.totalmem()); // 0 is no limit
  return Math.min(MAX_HEAP_MB, Math.floor((total - process.memoryUsage().rss) / 2 / 2 ** 20));
}

function compile(asked) {
  const heap = heapInMB();
  if (heap < MIN_HEAP_MB) return Promise.reject(new Error(`the compiler needs a heap of ${MIN_HEAP_MB} MB, and the agent's memory has room for ${Math.max(0, heap)} MB`));
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [`--max-old-space-size=${heap}`, PROGRAM, asked], { stdio: ["ignore", "pipe", "pipe"], timeout: LIMIT_MS, killSignal: "SIGKILL" });
    const end = () => child.kill("SIGKILL");
    process.once("exit", end);
    const output = { stdout: "", stderr: "" };
    for (const name of Object.keys(output)) child[name].setEncoding("utf8").on("data", (text) => (output[name] += text));
    child.once("spawn", () => giveWay(child.pid));
    child.once("error", reject);
    child.once("close", (code, signal) => {
      process.off("exit", end);
      if (code === 0) {
        if (output.stderr) console.warn(output.stderr.trim());
        resolve(JSON.parse(output.stdout));
      } else if (child.killed) reject(new Error(`the compiler took more than ${LIMIT_MS / 1000} s`));
      else if (signal) reject(new Error(`the compiler was ended by ${signal}, probably because a heap of ${heap} MB is too small`));
      else reject(new Error(/^\w*Error: .*$/m.exec(output.stderr)?.[0] ?? output.stderr.trim().split("\n").at(-1)));
    });
  });
}

function giveWay(pid) {
  try {
    os.setPriority(pid, Math.min(os.getPriority() + NICE, os.constants.priority.PRIORITY_LOW));
  } catch {
    // it has ended, or may not be changed
  }
}
