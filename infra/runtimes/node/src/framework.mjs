import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { abilitiesOf } from "./early.mjs";
import { UserError } from "./errors.mjs";

const GRAPHS = "@langchain/langgraph";
const CORE = "@langchain/core";
const CHECKPOINTS = "@langchain/langgraph-checkpoint";

/**
 * The framework's modules as a graph's file gets them: the same instances, so that what we make is
 * of the classes that its code knows.
 * @typedef {object} Framework
 * @property {any} graphs the package of graphs
 * @property {any} checkpoints the package of checkpointers and stores
 * @property {() => Promise<any>} tracers its tracers of runs
 * @property {() => Promise<any>} messages its functions for the events of messages
 * @property {any} schemas its functions for JSON schemas; null where there are none
 * @property {ReturnType<typeof abilitiesOf>} abilities of the release
 */

/** @type {Map<string, Promise<Framework>>} */
const loaded = new Map();

/**
 * @param {string} file the graph's
 * @param {any} [graph] tells which of the package's two builds its file uses: that for `import` or
 * that for `require`
 * @returns {Promise<Framework>}
 */
export async function frameworkOf(file, graph) {
  const manifest = findManifest(file);
  const module = await once(manifest, "import");
  if (graph === undefined || isOf(graph, module) || manifest === undefined) return module;
  const common = await once(manifest, "require");
  return isOf(graph, common) ? common : module;
}

function once(manifest, condition) {
  const key = `${condition} ${manifest}`;
  if (!loaded.has(key)) loaded.set(key, load(manifest, condition));
  return loaded.get(key);
}

/** Some projects have the framework only through another package of its family. */
function findManifest(file) {
  const require = createRequire(file);
  for (const through of [undefined, "langchain/package.json", "deepagents/package.json"]) {
    try {
      return (through ? createRequire(require.resolve(through)) : require).resolve(`${GRAPHS}/package.json`);
    } catch {
      continue;
    }
  }
  throw new UserError(`${path.basename(file)}: the package ${GRAPHS} is not installed in its project`);
}

async function load(manifest, condition) {
  const require = createRequire(manifest);
  const get = async (owner, entry) => {
    if (condition === "require") return require(path.posix.join(owner.name, entry));
    const target = owner.exports[entry].import;
    return import(pathToFileURL(path.join(owner.directory, typeof target === "string" ? target : target.default)).href);
  };
  const graphs = await readManifest(manifest);
  if (/^0\.[01]\./.test(graphs.version)) throw new UserError(`release ${graphs.version} of the framework is too old: graphs of 0.2.0 and newer are hosted`);
  const checkpoints = await readManifest(require.resolve(`${CHECKPOINTS}/package.json`));
  const core = async (entry) => get(await readManifest(require.resolve(`${CORE}/package.json`)), entry);
  return {
    graphs: await get(graphs, "."),
    checkpoints: await get(checkpoints, "."),
    tracers: () => core("./tracers/tracer_langchain"),
    messages: () => core("./language_models/compat"),
    schemas: graphs.exports["./zod/schema"] ? await get(graphs, "./zod/schema").catch(() => null) : null,
    pregel: await get(graphs, "./pregel"),
    abilities: abilitiesOf(graphs.version),
  };
}

async function readManifest(file) {
  const { name, version, exports } = JSON.parse(await readFile(file, "utf8"));
  return { name, version, exports, directory: path.dirname(file) };
}

function isOf(graph, framework) {
  return graph instanceof framework.pregel.Pregel;
}
