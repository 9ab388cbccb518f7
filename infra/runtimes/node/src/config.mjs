import { lstat, readFile } from "node:fs/promises";
import path from "node:path";
import { UserError } from "./errors.mjs";

// The keys that the platform must do something for. A file with one of them is refused unless the
// platform says that it does so: an image that was built elsewhere is not served without what its
// repository asks for either. A key that no format has asks for nothing.
const ASKED = ["auth", "checkpointer", "encryption", "http", "package", "priority", "project_root", "store", "ui", "ui_config", "webhooks"];
/** The platform sets it to the authentication that it asks about every request. */
const AUTH_VARIABLE = "SLIPWAY_AUTH";
// The public server takes keys from these variables, too.
const SETTINGS = ["LANGGRAPH", "FRAMEWORK"].flatMap((word) =>
  ["AUTH", "HTTP", "STORE", "CHECKPOINTER", "ENCRYPTION", "PRIORITY", "WEBHOOKS", "UI", "UI_CONFIG", "CONFIG", "AES_KEY", "AES_JSON_KEYS"].map((name) => `${word}_${name}`));
const CONFIG_NAMES = ["framework.json", "langgraph.json"];

/**
 * Where a variable is exported; name is the file as the configuration has it.
 * @typedef {{file: string, name: string, variable: string}} Place
 */

/**
 * @typedef {object} Config
 * @property {string} directory where the paths of graphs begin
 * @property {Record<string, Place>} graphs by id
 * @property {Place | undefined} auth the repository's own authentication
 * @property {{app: Place | undefined, prefix: string}} http the repository's own application, and
 * the prefix of all paths
 * @property {{embed?: unknown, dims?: unknown, fields?: unknown} | undefined} index how items of
 * the store are embedded
 * @property {boolean} hasComponents whether the repository has components of a user interface
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
  refuse(path.basename(file), fields);
  const directory = path.dirname(file);
  const graphs = Object.fromEntries(Object.entries(fields.graphs).map(([id, value]) => [id, readGraph(directory, id, value)]));
  return { directory, graphs, auth: readAuth(file, fields.auth), http: readHTTP(directory, fields.http), index: isAsked(fields.store?.index) ? fields.store.index : undefined, hasComponents: isAsked(fields.ui), check: options.check === true };
}

/**
 * The repository's own authentication. It is run only if the platform says that it will ask exactly
 * that one about every request.
 */
function readAuth(file, value) {
  const asked = process.env[AUTH_VARIABLE] || undefined;
  const name = path.basename(file);
  if (!isAsked(value)) {
    if (asked !== undefined) throw new UserError(`${name}: auth: the platform asks "${asked}" about every request, and the file names none`);
    return undefined;
  }
  if (value.path !== asked) throw new UserError(`${name}: auth.path: the platform asks "${asked}" about every request, not "${value.path}"`);
  return readPlace("auth.path", path.dirname(file), asked);
}

function readHTTP(directory, value) {
  const asked = isObject(value) ? value : {};
  return { app: isAsked(asked.app) ? readPlace("http.app", directory, asked.app) : undefined, prefix: String(asked.mount_prefix ?? "").replace(/\/$/, "") };
}

async function findConfig() {
  const found = [];
  for (const name of CONFIG_NAMES) {
    if (await lstat(name).then(() => true, () => false)) found.push(name);
  }
  if (found.length === 0) throw new UserError(`there is no ${CONFIG_NAMES.join(" or ")} in ${process.cwd()}`);
  if (found.length === 2 && !(await isSame(...found))) {
    throw new UserError(`there are both ${found[0]} and ${found[1]}, and they differ: name the one that counts with --config, or keep one`);
  }
  return found[0];
}

async function isSame(one, other) {
  try {
    return (await readFile(one)).equals(await readFile(other));
  } catch {
    return false;
  }
}

/**
 * Refuses by name what would be missing, also in other letters, such as "Auth": an agent is never
 * served without what its repository asks for.
 */
function refuse(file, fields) {
  // The platform says which keys it has read from the file and does what they ask for.
  const served = [...(process.env.SLIPWAY_KEYS ?? "").split(" "), ...(process.env[AUTH_VARIABLE] ? ["auth"] : [])];
  const refused = Object.keys(fields).filter((name) => ASKED.includes(name.trim().toLowerCase()) && !served.includes(name) && isAsked(fields[name])).sort()
    .map((name) => `${file}: ${name}: is not served, and the agent is not served without it`);
  for (const name of SETTINGS) {
    if (process.env[name]) refused.push(`the environment variable ${name}: is not read here, and the agent is not served without what it asks for`);
  }
  if (refused.length > 0) throw new UserError(refused.join("\n"));
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
  return readPlace(`graph "${id}"`, directory, isObject(value) ? value.path : value);
}

function readPlace(label, directory, spec) {
  const at = typeof spec === "string" ? spec.lastIndexOf(":") : -1;
  if (at <= 0 || at === spec.length - 1) throw new UserError(`${label}: must be "./path/to/file.ts:variable"`);
  const name = spec.slice(0, at);
  return { file: path.resolve(directory, name), name, variable: spec.slice(at + 1) };
}

function isAsked(value) {
  if (value === undefined || value === null || value === false) return false;
  if (typeof value === "string") return value.trim() !== "";
  return typeof value !== "object" || Object.keys(value).length > 0;
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
