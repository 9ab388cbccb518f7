import { spawn } from "node:child_process";
import os from "node:os";
import { fileURLToPath } from "node:url";
import { Refusal } from "./errors.mjs";

const PROGRAM = fileURLToPath(new URL("./types-worker.mjs", import.meta.url));
/** How long the compiler may take. It works beside the runs, and gives way to them. */
const LIMIT_MS = 55_000;
const MEMORY_MB = 1024;
const NICE = 10;

/** @type {Map<string, Promise<Record<string, object>>>} */
const made = new Map();

/**
 * Makes schemas of graphs whose types are all that says what they take, with the TypeScript compiler in a process of its own. A graph's files do not change while this
 * process lives, so the compiler works once; only if it had too little time does it work again. What it cannot make is left out, with a warning.
 * @param {Record<string, {file: string, variable: string}>} places of the graphs, by id
 * @returns {Promise<Record<string, object>>} schemas by graph, under the names of the agent server's interface
 */
export function schemasOfTypes(places) {
  const asked = JSON.stringify(places);
  if (!made.has(asked)) {
    made.set(asked, compile(asked).catch((error) => {
      if (error instanceof Refusal) {
        made.delete(asked);
        throw error;
      }
      console.warn(`the schemas of ${Object.keys(places).map((id) => `"${id}"`).join(", ")} cannot be made of their types: ${error.message}`);
      return {};
    }));
  }
  return made.get(asked);
}

function compile(asked) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [`--max-old-space-size=${MEMORY_MB}`, PROGRAM, asked], { stdio: ["ignore", "pipe", "pipe"], timeout: LIMIT_MS, killSignal: "SIGKILL" });
    const output = { stdout: "", stderr: "" };
    for (const name of Object.keys(output)) child[name].setEncoding("utf8").on("data", (text) => (output[name] += text));
    child.once("spawn", () => giveWay(child.pid));
    child.once("error", reject);
    child.once("close", (code, signal) => {
      if (code === 0) resolve(JSON.parse(output.stdout));
      else if (signal === "SIGKILL") reject(new Refusal(503, "Unavailable", "the schemas of the graphs are not made in time"));
      else reject(new Error(/^\w*Error: .*$/m.exec(output.stderr)?.[0] ?? output.stderr.trim().split("\n").at(-1)));
    });
  });
}

function giveWay(pid) {
  try {
    os.setPriority(pid, NICE);
  } catch {
    // it has ended, or may not be changed
  }
}
