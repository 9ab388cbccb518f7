import { spawn } from "node:child_process";
import os from "node:os";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Refusal } from "./errors.mjs";

const PROGRAM = fileURLToPath(new URL("./types-worker.mjs", import.meta.url));
/** How long the compiler may take. It works beside the runs, and gives way to them. */
const LIMIT_MS = 300_000;
/** How long a request waits for it. The agent server waits a little longer. */
const WAIT_MS = 55_000;
const MEMORY_MB = 1024;
const NICE = 10;

/** @type {Map<string, Promise<Record<string, object>>>} */
const made = new Map();

/**
 * Makes schemas of graphs whose types are all that says what they take, with the TypeScript compiler in a process of its own. A graph's files do not change while this
 * process lives, so the compiler works once. A request does not wait for it for ever: the next one asks for what is done by then. What the compiler cannot make is left
 * out, with a warning.
 * @param {Record<string, {file: string, variable: string}>} places of the graphs, by id
 * @returns {Promise<Record<string, object>>} schemas by graph, under the names of the agent server's interface
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

function compile(asked) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [`--max-old-space-size=${MEMORY_MB}`, PROGRAM, asked], { stdio: ["ignore", "pipe", "pipe"], timeout: LIMIT_MS, killSignal: "SIGKILL" });
    const end = () => child.kill("SIGKILL");
    process.once("exit", end);
    const output = { stdout: "", stderr: "" };
    for (const name of Object.keys(output)) child[name].setEncoding("utf8").on("data", (text) => (output[name] += text));
    child.once("spawn", () => giveWay(child.pid));
    child.once("error", reject);
    child.once("close", (code, signal) => {
      process.off("exit", end);
      if (code === 0) resolve(JSON.parse(output.stdout));
      else if (signal === "SIGKILL") reject(new Error("the compiler was stopped, after too much time or for the lack of memory"));
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
