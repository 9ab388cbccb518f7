import { randomUUID } from "node:crypto";
import { InvalidInvocation } from "./errors.mjs";

const OPERATIONS = ["run", "update_state", "describe", "embed"];
/**
 * Each checkpoint is sent, also to an earlier server that passes on that a client wants those of
 * the end only.
 */
const DURABILITIES = new Map([["sync", "sync"], ["async", "async"], ["exit", "async"]]);
// Clients send the names on the left.
const CONFIG_FIELDS = { tags: "tags", recursion_limit: "recursionLimit", max_concurrency: "maxConcurrency", run_name: "runName" };
/**
 * The framework's own names of who asks for a run. The platform alone says it: what a client sends
 * under them is dropped.
 */
const USER = "langgraph_auth_";
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * A change of the state as if a node had returned it. Without a node it is left to the graph to say
 * which.
 * @typedef {{values: unknown, command: object | undefined, asNode: string | undefined}} Update
 */

/** The JSON form of an invocation, checked. */
export class Invocation {
  /**
   * @param {string} body
   * @param {boolean} ownUsers whether the repository's own authentication lets users in
   */
  constructor(body, ownUsers = false) {
    this.ownUsers = ownUsers;
    let fields;
    try {
      fields = JSON.parse(body);
    } catch (error) {
      throw new InvalidInvocation(`the body is not valid JSON: ${error.message}`);
    }
    if (!isObject(fields)) throw new InvalidInvocation("the body is not a JSON object");
    const state = optional(fields, "state", "object") ?? {};
    const kept = optional(state, "checkpoint", "object") ?? {};
    this.operation = optional(fields, "operation", "string") || OPERATIONS[0];
    if (!OPERATIONS.includes(this.operation)) throw new InvalidInvocation(`operation: must be one of ${OPERATIONS.join(", ")}`);
    this.graph = optional(fields, "graph", "string") ?? "";
    this.threadID = optional(fields, "thread_id", "string") || randomUUID();
    this.runID = optional(fields, "run_id", "string") || randomUUID();
    this.attempt = optional(fields, "attempt", "number") ?? 1;
    this.input = fields.input ?? null;
    this.command = readCommand(optional(fields, "command", "object"));
    /** @type {string | undefined} of the graph's own */
    this.checkpointID = optional(kept, "id", "string");
    this.checkpoints = list(kept, "checkpoints").map((c) => ({
      id: required(c, "id"), parentID: optional(c, "parent_id", "string") || undefined, ns: optional(c, "ns", "string") ?? "", data: data(c),
    }));
    this.writes = list(kept, "writes").map((w) => ({
      checkpointID: required(w, "checkpoint_id"), ns: optional(w, "ns", "string") ?? "", taskID: required(w, "task_id"), data: data(w),
    }));
    /** Whether the thread has moved past the checkpoint. */
    this.superseded = optional(kept, "superseded", "boolean") ?? false;
    this.pending = list(state, "pending").map(readUpdate);
    this.config = optional(fields, "config", "object") ?? {};
    for (const part of ["configurable", "metadata"]) optional(this.config, part, "object");
    this.assistantID = optional(fields, "assistant_id", "string") ?? "";
    /** The run's own, and its assistant's and thread's. */
    this.metadata = optional(fields, "metadata", "object") ?? {};
    const user = optional(fields, "user", "object");
    this.user = user && asUser(user);
    /**
     * Those of the request that asked for the run, without credentials, by their names in lower
     * case, and the place in a trace at which its client sees the run.
     */
    this.headers = { ...optional(fields, "headers", "object"), ...optional(fields, "trace", "object") };
    /** Where the run is traced, if its process traces. */
    this.tracer = optional(fields, "tracer", "object");
    // Clients that know only configurable values have them passed as the context. The context is an
    // object even if there are no values: only an object makes a schema's defaults.
    this.context = fields.context ?? Object.fromEntries(Object.entries(this.#given()).filter(([key]) => !UNSAID.has(key) && key !== "thread_id"));
    this.streamModes = new Set(strings(fields.stream_mode ?? ["updates"], "stream_mode").map((mode) => (mode === "messages-tuple" ? "messages" : mode)));
    this.streamSubgraphs = fields.stream_subgraphs === true;
    this.interruptBefore = nodes(fields.interrupt_before, "interrupt_before");
    this.interruptAfter = nodes(fields.interrupt_after, "interrupt_after");
    this.durability = DURABILITIES.get(optional(fields, "durability", "string") || "async");
    if (this.durability === undefined) throw new InvalidInvocation(`durability: must be one of ${[...DURABILITIES.keys()].join(", ")}`);
    this.supersteps = list(fields, "supersteps").map((step) => list(step, "updates").map(readUpdate));
    /** The texts of the operation embed. */
    this.embed = optional(fields, "embed", "object") ?? {};
    this.typed = fields.typed === true;
    this.serverURL = optional(fields, "server_url", "string") ?? "";
  }

  /** What each checkpoint of a change that belongs to no run says of it. */
  get stateMetadata() {
    const metadata = { ...this.metadata, ...this.config.metadata };
    return { ...nested(metadata), ...scalars({ ...this.#given(), ...this.headers, ...metadata, ...this.#names() }) };
  }

  /**
   * What each checkpoint of the run says of it. One with the run's id means that the run has taken
   * its input.
   */
  get runMetadata() {
    return { ...this.stateMetadata, run_id: this.runID, run_attempt: this.attempt };
  }

  /** What a client may set of the configuration's values. */
  #given() {
    return unowned(this.config.configurable ?? {});
  }

  #names() {
    return { thread_id: this.threadID, graph_id: this.graph, ...(this.assistantID ? { assistant_id: this.assistantID } : {}) };
  }

  /** The configuration of an assistant, without a thread. */
  assistantConfig() {
    const config = this.stateConfig();
    for (const part of [config.configurable, config.metadata]) delete part.thread_id;
    return config;
  }

  /** The configuration of changes that belong to no run. */
  stateConfig() {
    const config = {};
    for (const [name, own] of Object.entries(CONFIG_FIELDS)) {
      if (this.config[name] !== undefined && this.config[name] !== null) config[own] = this.config[name];
    }
    config.configurable = { ...(isObject(this.context) ? unowned(this.context) : {}), ...this.#given(), ...this.headers, ...this.#names() };
    config.metadata = { ...this.metadata, ...this.config.metadata, ...this.#names() };
    if (this.user) {
      const { identity = "", permissions = [] } = this.user;
      Object.assign(config.configurable, { [`${USER}user`]: this.user, [`${USER}user_id`]: identity, [`${USER}permissions`]: permissions });
      if (this.ownUsers) config.configurable.user_id ??= identity; // as the framework's server names the user
    }
    const named = config.configurable;
    const { checkpoint_ns: ns, checkpoint_id: within } = named;
    // The map of a subgraph's checkpoint names the graph's checkpoint, at which a run begins.
    if (ns) named.checkpoint_id = named.checkpoint_map?.[""];
    // A checkpoint to go on from is addressed only if it is the one that the state holds, and
    // nothing comes before the run.
    const addressed = named.checkpoint_id;
    if (!addressed || addressed !== this.checkpointID || this.pending.length > 0) {
      delete named.checkpoint_id;
      delete named.checkpoint_map;
    }
    if (!named.checkpoint_map) delete named.checkpoint_map;
    if (this.operation === "run" || !ns) delete named.checkpoint_ns;
    else if (this.checkpoints.some((c) => c.ns === ns && c.id === within)) named.checkpoint_id = within;
    else delete named.checkpoint_id;
    return config;
  }

  /** The configuration of a run, whose id is ours, so that whatever is traced is found under it. */
  runConfig() {
    const config = this.stateConfig();
    config.configurable.run_id = this.runID;
    config.metadata = { ...config.metadata, run_id: this.runID, run_attempt: this.attempt };
    if (UUID.test(this.runID)) config.runId = this.runID; // else the framework makes one up
    return config;
  }
}

/** A user as the platform names it, with the members that graphs and applications rely on. */
export function asUser(fields) {
  return { ...fields, display_name: fields.display_name ?? fields.identity, is_authenticated: fields.is_authenticated ?? true, permissions: fields.permissions ?? [] };
}

function readUpdate(fields) {
  return {
    values: fields.values ?? null,
    command: readCommand(optional(fields, "command", "object")),
    asNode: optional(fields, "as_node", "string") || undefined,
  };
}

function readCommand(fields) {
  if (!fields) return undefined;
  const command = {};
  for (const name of ["update", "resume"]) if (fields[name] !== undefined && fields[name] !== null) command[name] = fields[name];
  if (fields.goto !== undefined && fields.goto !== null) {
    command.goto = (Array.isArray(fields.goto) ? fields.goto : [fields.goto]).map((target) => {
      if (typeof target === "string") return target;
      if (isObject(target) && typeof target.node === "string") return { node: target.node, input: target.input };
      throw new InvalidInvocation('goto: must name nodes, or be {"node": ..., "input": ...}');
    });
  }
  return Object.keys(command).length > 0 ? command : undefined;
}

function optional(fields, name, type) {
  const value = fields[name];
  if (value === undefined || value === null) return undefined;
  if (type === "object" ? !isObject(value) : typeof value !== type) throw new InvalidInvocation(`${name}: must be of type ${type}`);
  return value;
}

function required(fields, name) {
  const value = optional(fields, name, "string");
  if (!value) throw new InvalidInvocation(`${name}: is missing`);
  return value;
}

function list(fields, name) {
  const items = fields[name] ?? [];
  if (!Array.isArray(items) || !items.every(isObject)) throw new InvalidInvocation(`${name}: must be a list of objects`);
  return items;
}

function strings(value, name) {
  if (!Array.isArray(value) || !value.every((item) => typeof item === "string")) throw new InvalidInvocation(`${name}: must be a list of strings`);
  return value;
}

function nodes(value, name) {
  if (value === undefined || value === null) return undefined;
  return typeof value === "string" ? (value === "*" ? "*" : [value]) : strings(value, name);
}

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

function data(fields) {
  const text = optional(fields, "data", "string") ?? "";
  if (!BASE64.test(text)) throw new InvalidInvocation("data: is not base64");
  return Buffer.from(text, "base64");
}

const UNSAID = new Set(["checkpoint_id", "checkpoint_ns", "checkpoint_map", "run_id"]);

function scalars(fields) {
  return Object.fromEntries(Object.entries(fields).filter(([key, value]) =>
    !key.startsWith("__") && !UNSAID.has(key) && ["string", "number", "boolean"].includes(typeof value)));
}

/**
 * The objects and lists of metadata. Those of configurable values are not for everybody who reads a
 * state.
 */
function nested(metadata) {
  return Object.fromEntries(Object.entries(metadata).filter(([key, value]) =>
    !key.startsWith("__") && !UNSAID.has(key) && typeof value === "object" && value !== null));
}

/** Leaves out the names that are the framework's own and the platform's. */
function unowned(fields) {
  return Object.fromEntries(Object.entries(fields).filter(([key]) => !key.startsWith("__") && !key.startsWith(USER)));
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
