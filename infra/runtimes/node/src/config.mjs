import { access, readFile } from "node:fs/promises";
import path from "node:path";
import { UserError } from "./errors.mjs";

// What this runtime does not do. The build refuses these keys, too; an image that was built elsewhere is not served without them either.
const NOT_SERVED = ["auth", "http", "store", "checkpointer", "encryption", "ui"];
const CONFIG_NAMES = ["framework.json", "langgraph.json"];

/**
 * @typedef {object} Config
 * @property {string} directory where the paths of graphs begin
 * @property {Record<string, {file: string, name: string, variable: string}>} graphs by id; name is the file as the configuration has it
 * @property {boolean} check
 */

/**
 * @param {{config?: string, check?: boolean}} options
 * @returns {Promise<Config>}
 */
export async function readConfig(options) {
  const file = path.resolve(options.config ?? (await findConfig()));
  const fields = parse(file, await readText(file));
  if (!isObject(fields.graphs) || Object.keys(fields.graphs).length === 0) {
    throw new UserError(`${path.basename(file)}: graphs must name at least one graph, as {"agent": "./path/to/file.ts:variable"}`);
  }
  const refused = NOT_SERVED.filter((name) => isAsked(fields[name]));
  if (refused.length > 0) {
    throw new UserError(refused.map((name) => `${path.basename(file)}: ${name}: is not served yet, and the agent is not served without it`).join("\n"));
  }
  const directory = path.dirname(file);
  const graphs = Object.fromEntries(Object.entries(fields.graphs).map(([id, value]) => [id, readGraph(directory, id, value)]));
  return { directory, graphs, check: options.check === true };
}

async function findConfig() {
  for (const name of CONFIG_NAMES) {
    if (await access(name).then(() => true, () => false)) return name;
  }
  throw new UserError(`there is no ${CONFIG_NAMES.join(" or ")} in ${process.cwd()}`);
}

async function readText(file) {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (error.code === "ENOENT") throw new UserError(`there is no file ${file}`);
    throw new UserError(`${file} cannot be read: ${error.message}`);
  }
}

function parse(file, text) {
  let fields;
  try {
    fields = JSON.parse(text);
  } catch (error) {
    throw new UserError(`${path.basename(file)} is not valid JSON: ${error.message}`);
  }
  if (!isObject(fields)) throw new UserError(`${path.basename(file)} is not a JSON object`);
  return fields;
}

function readGraph(directory, id, value) {
  const spec = isObject(value) ? value.path : value;
  const at = typeof spec === "string" ? spec.lastIndexOf(":") : -1;
  if (at <= 0 || at === spec.length - 1) throw new UserError(`graph "${id}": must be "./path/to/file.ts:variable"`);
  const name = spec.slice(0, at);
  return { file: path.resolve(directory, name), name, variable: spec.slice(at + 1) };
}

function isAsked(value) {
  return isObject(value) || Array.isArray(value) ? Object.keys(value).length > 0 : Boolean(value);
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
