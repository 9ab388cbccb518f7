import { spawnSync } from "node:child_process";
import { realpathSync } from "node:fs";
import { stat } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { register as registerRequire } from "tsx/cjs/api";
import { register as registerImport } from "tsx/esm/api";
import { UserError } from "./errors.mjs";
import { frameworkOf } from "./framework.mjs";

/**
 * What a graph id stands for: a graph, or a factory that is called for each invocation.
 * @typedef {object} Source
 * @property {string} id
 * @property {import("./config.mjs").Place} place
 * @property {boolean} isFactory
 * @property {(config: object, runtimeFor: (framework?: import("./framework.mjs").Framework) => object) => Promise<{graph: any, framework: import("./framework.mjs").Framework}>}
 * open
 */

/**
 * Imports every graph. The error has a line for each that cannot be had.
 * @param {import("./config.mjs").Config} config
 * @returns {Promise<Map<string, Source>>}
 */
export async function loadGraphs(config) {
  // The framework needs no tsx, whose hooks cost each of its hundreds of modules more than loading
  // it. A graph without it is told so when it is attached.
  const troubles = new Map();
  for (const [id, { file }] of Object.entries(config.graphs)) await frameworkOf(file).catch((error) => troubles.set(id, error));
  registerImport();
  registerRequire();
  const sources = new Map();
  const problems = [];
  for (const [id, place] of Object.entries(config.graphs)) {
    try {
      sources.set(id, await loadGraph(config.directory, id, place));
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      problems.push(causeOf(config.directory, id, error, troubles.get(id)));
    }
  }
  if (problems.length > 0) throw new UserError(problems.join("\n"));
  return sources;
}

/**
 * A framework that does not load itself is why a graph does not, and Node forgets its reason at the
 * second import of its modules.
 */
function causeOf(directory, id, problem, trouble) {
  if (trouble === undefined || !/not in cache/.test(problem.message)) return problem.message;
  return `graph "${id}": its framework cannot be loaded: ${explain(directory, "node_modules", trouble)}`;
}

async function loadGraph(directory, id, place) {
  const value = await importVariable(directory, `graph "${id}"`, place);
  if (typeof value === "function" && !isGraph(value)) {
    return {
      id,
      place,
      isFactory: true,
      open: async (config, runtimeFor) => attach(id, place, await value(config, runtimeFor(await frameworkOf(place.file).catch(() => undefined)))),
    };
  }
  const graph = await attach(id, place, await value);
  const { checkpointer } = graph.graph;
  if (checkpointer !== undefined && checkpointer !== null && typeof checkpointer !== "boolean") {
    console.warn(`graph "${id}": its own checkpointer is replaced by the platform's`);
  }
  return { id, place, isFactory: false, open: async () => graph };
}

async function attach(id, place, value) {
  const graph = asGraph(id, value);
  return { graph, framework: await frameworkOf(place.file, graph) };
}

/**
 * Imports a variable of one of the repository's files.
 * @param {string} directory the configuration file's
 * @param {string} label what the file is named for, for errors
 * @param {import("./config.mjs").Place} place
 */
export async function importVariable(directory, label, { file, name, variable }) {
  const found = await stat(file).catch(() => undefined);
  if (!found?.isFile()) throw new UserError(`${label}: there is no file "${name}"`);
  if (file.endsWith(".py")) throw new UserError(`${label}: ${name} is a Python file; the Node runtime loads JavaScript only`);
  let module;
  try {
    module = await import(pathToFileURL(file).href);
  } catch (error) {
    throw new UserError(`${label}: ${explain(directory, name, error)}`);
  }
  const exported = [module, module.default, module["module.exports"]].find((names) => names != null && Object.hasOwn(Object(names), variable));
  if (exported === undefined) {
    const others = Object.keys(module).filter((other) => other !== "default" && other !== "module.exports");
    const known = others.length > 0 ? `; it has ${others.map((other) => `"${other}"`).join(", ")}` : "";
    throw new UserError(`${label}: ${name} has no export "${variable}"${known}`);
  }
  return exported[variable];
}

/**
 * @param {string} id
 * @param {any} value
 */
function asGraph(id, value) {
  let graph = value;
  if (typeof graph === "object" && graph !== null && typeof graph.compile === "function") {
    try {
      graph = graph.compile();
    } catch (error) {
      throw new UserError(`graph "${id}": the graph cannot be compiled: ${oneLine(error)}`);
    }
  }
  if (isGraph(graph?.graph)) return graph.graph; // an agent that wraps its graph
  if (isGraph(graph)) return graph;
  throw new UserError(`graph "${id}": a graph, or a function that returns one, was expected, not ${kindOf(graph)}`);
}

function isGraph(value) {
  // Graphs of releases before 0.2.19 are known only by their namespace.
  const isMarked = value?.lg_is_pregel === true || (value?.lc_namespace?.[0] === "langgraph" && typeof value.updateState === "function");
  return isMarked && typeof value.stream === "function" && typeof value.nodes === "object";
}

function kindOf(value) {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return "a list";
  if (typeof value !== "object") return `a ${typeof value}`;
  const name = value.constructor?.name;
  return name && name !== "Object" ? `an object of ${name}` : "a plain object";
}

/** One sentence of an import that failed, with the innermost place in the repository's own code. */
function explain(link, name, error) {
  const directory = realpathSync(link); // modules are known by their real paths
  const text = error instanceof Error ? `${error.message}\n${error.stack ?? ""}` : String(error);
  const syntax = /([^\s()"']+?):(\d+):(\d+): ERROR: (.*)/.exec(text);
  if (syntax) return `${relative(directory, syntax[1])}, line ${syntax[2]}: SyntaxError: ${syntax[4]}`;
  const unread = /Parse error (\/.+):\d+:\d+/.exec(text); // tells no place in files that are JavaScript already
  if (unread) return explainSyntax(directory, unread[1]);
  const kind = error?.name || "Error";
  const place = placeOf(directory, error) ?? name;
  return `${place}: ${kind}: ${oneLine(error)}`;
}

function explainSyntax(directory, file) {
  const { stderr } = spawnSync(process.execPath, ["--check", file], { encoding: "utf8" });
  const line = /:(\d+)\n/.exec(stderr)?.[1];
  return `${relative(directory, file)}${line ? `, line ${line}` : ""}: ${/SyntaxError: .*/.exec(stderr)?.[0] ?? "SyntaxError: it cannot be parsed"}`;
}

/**
 * The innermost line of the repository's own code that an error comes from.
 * @param {string} directory its real path
 */
export function placeOf(directory, error) {
  for (const [, url, line] of String(error?.stack ?? "").matchAll(/(file:\/\/[^\s()]+?|\/[^\s():]+):(\d+)/g)) {
    const file = url.startsWith("file:") ? fileURLToPath(url.split("?")[0]) : url;
    if (file.startsWith(directory + path.sep) && !file.includes(`${path.sep}node_modules${path.sep}`)) {
      return `${relative(directory, file)}, line ${line}`;
    }
  }
  return undefined;
}

function relative(directory, file) {
  const inside = path.relative(directory, file.startsWith("file:") ? fileURLToPath(file) : path.resolve(directory, file));
  return inside.startsWith("..") ? file : inside;
}

function oneLine(error) {
  return String(error?.message ?? error).split("\n")[0].replace(/\s+/g, " ").trim();
}
