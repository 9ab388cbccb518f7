import { checkpointerOf } from "./checkpointer.mjs";
import { subgraphsOf } from "./early.mjs";
import { encode } from "./encode.mjs";

/**
 * Makes `checkpoint` and `writes` events of what the checkpointer is given.
 *
 * A checkpoint is two things that arrive apart: the saved form, from the checkpointer, and how
 * clients see it (values, next, tasks), which the framework streams from its live state in the mode
 * "checkpoints". So no state is computed a second time. The event is sent when both are there;
 * events keep the order in which the framework saved.
 */
export class Recorder {
  #graph;
  #framework;
  #thread;
  #emit;
  /**
   * @type {{ns: string, saved: import("./checkpointer.mjs").Saved, taskID?: string}[]} an entry
   * with a task is its writes
   */
  #queue = [];
  /**
   * @type {Map<string, {view: string, names: Set<string>, whole: Map<string, import("./parts.mjs").Typed>}>}
   * by place, how a checkpoint is seen, and values that it does not hold itself
   */
  #described = new Map();
  /**
   * Namespaces in which tasks have stopped at the newest checkpoint. The server has to hear of
   * them.
   */
  #stopped = new Set();
  /** @type {Set<Promise<unknown>>} */
  #busy = new Set();
  #deltas;

  /**
   * @param {any} graph a copy of its own for this invocation, which gets the checkpointer
   * @param {import("./framework.mjs").Framework} framework
   * @param {string} thread
   * @param {(event: string, json: string) => void} emit
   */
  constructor(graph, framework, thread, emit) {
    this.#graph = graph;
    this.#framework = framework;
    this.#thread = thread;
    this.#emit = emit;
    this.checkpointer = new (checkpointerOf(framework))(thread, this);
    /** Whether a checkpoint of the graph itself was sent. */
    this.hasSent = false;
    graph.checkpointer = this.checkpointer;
    this.#deltas = deltaChannels(graph);
  }

  // What the framework saves

  onCheckpoint(ns, saved) {
    this.#stopped.delete(ns);
    this.#queue.push({ ns, saved });
    if (ns !== "" && !this.#framework.abilities.subgraphs) this.#track(this.#look(ns, saved.id).then(() => this.#drain())); // nobody will describe it
    this.#drain();
  }

  onWrites(ns, saved, taskID) {
    const stops = [...saved.writes.values()].some((write) => write.taskID === taskID && (write.channel === "__interrupt__" || write.channel === "__error__"));
    if (stops) this.#stopped.add(ns);
    this.#queue.push({ ns, saved, taskID });
    this.#drain();
  }

  // What the framework streams

  /** Takes the payload of an event of the stream mode "checkpoints". */
  describe(payload) {
    const place = payload.config?.configurable ?? {};
    if (place.thread_id !== this.#thread || !place.checkpoint_id) return;
    const ns = place.checkpoint_ns ?? "";
    this.#see(ns, place.checkpoint_id, payload);
    const [head] = this.#queue;
    if (head && head.ns === ns && head.saved.id !== place.checkpoint_id && this.#queue.some((entry) => entry.ns === ns && entry.saved.id === place.checkpoint_id)) {
      this.#track(this.#look(ns, head.saved.id).then(() => this.#drain())); // the graph is past it, so nobody else will describe it
    }
    this.#drain();
  }

  #see(ns, id, { values, next, tasks }) {
    const description = { values: asObject(values), next: [...(next ?? [])], tasks: (tasks ?? []).map(asTask) };
    const view = encode(description); // the graph goes on changing the state
    const names = new Set(Object.keys(description.values));
    const deltas = [...this.#deltas].filter((name) => Object.hasOwn(description.values, name));
    if (deltas.length === 0) {
      this.#described.set(keyOf(ns, id), { view, names, whole: new Map() });
      return;
    }
    this.#track(this.#wholeOf(deltas, description.values).then((whole) => {
      this.#described.set(keyOf(ns, id), { view, names, whole });
      this.#drain();
    }));
  }

  /**
   * The values of channels that the framework would make from checkpoints that the next invocation
   * does not have.
   */
  async #wholeOf(names, values) {
    // All is serialised before anything is awaited, as the graph goes on.
    const typed = names.map((name) => this.checkpointer.serde.dumpsTyped(new this.#framework.checkpoints.DeltaSnapshot(values[name])));
    return new Map(await Promise.all(typed.map(async (value, i) => [names[i], await value])));
  }

  #track(promise) {
    const tracked = promise.finally(() => this.#busy.delete(tracked));
    this.#busy.add(tracked);
    tracked.catch(() => {}); // finish hears of it
  }

  #drain() {
    while (this.#queue.length > 0) {
      const [{ ns, saved, taskID }] = this.#queue;
      if (taskID === undefined && !this.#described.has(keyOf(ns, saved.id))) return;
      this.#send(this.#queue.shift());
    }
  }

  #send({ ns, saved, taskID }) {
    if (taskID !== undefined) {
      const data = this.checkpointer.writesData(saved, taskID).toString("base64");
      this.#emit("writes", JSON.stringify({ checkpoint_id: saved.id, ns, task_id: taskID, data }));
      return;
    }
    const key = keyOf(ns, saved.id);
    const { view, names, whole } = this.#described.get(key);
    this.#described.delete(key);
    for (const [name, value] of whole) {
      if (name in saved.versions && !saved.channels.has(name)) saved.channels.set(name, { version: saved.versions[name], value });
    }
    const head = encode({
      id: saved.id, parent_id: saved.parentID ?? "", ns, metadata: saved.metadata,
      // A subgraph that keeps its state from call to call has no task in its namespace.
      persistent: ns !== "" && !ns.includes(":"),
    });
    const results = ns === "" ? `,"results":${this.checkpointer.results(saved, names)}` : "";
    this.hasSent ||= ns === "";
    this.#emit("checkpoint", `${head.slice(0, -1)}${results},${view.slice(1, -1)},"data":"${this.checkpointer.data(saved).toString("base64")}"}`);
  }

  // The end

  /**
   * Sends what is left, and once more the newest checkpoints whose tasks have stopped, now with
   * their questions and errors.
   */
  async finish() {
    await Promise.all(this.#busy);
    while (this.#queue.length > 0) {
      const [{ ns, saved }] = this.#queue;
      await this.#look(ns, saved.id);
      await Promise.all(this.#busy);
      this.#drain();
    }
    for (const ns of [...this.#stopped].sort()) {
      const saved = this.checkpointer.newest(ns);
      if (saved === undefined) continue;
      await this.#look(ns, saved.id, ns === "");
      await Promise.all(this.#busy);
      this.#send({ ns, saved });
    }
    this.#stopped.clear();
  }

  /**
   * Describes a checkpoint as the framework does on request: as it was, or as it stands now, with
   * what its tasks have done since.
   */
  async #look(ns, id, now = false) {
    const place = { thread_id: this.#thread, checkpoint_ns: ns, ...(now ? {} : { checkpoint_id: id }) };
    if (ns !== "" && !(await this.#isKnown(ns))) {
      const { checkpoint } = await this.checkpointer.getTuple({ configurable: place });
      const values = Object.entries(checkpoint.channel_values).filter(([name]) => !/^(__|branch:|join:)/.test(name));
      this.#see(ns, id, { values: Object.fromEntries(values) });
      return;
    }
    this.#see(ns, id, await this.#graph.getState({ configurable: place }));
  }

  /**
   * Whether the framework finds the graph of a namespace: not that of one that a node's code calls.
   */
  async #isKnown(ns) {
    const name = ns.split("|").filter((part) => !/^\d+$/.test(part)).map((part) => part.split(":")[0]).join("|");
    for (const [known] of subgraphsOf(this.#graph)) if (known === name) return true;
    return false;
  }
}

const keyOf = (ns, id) => `${JSON.stringify(ns)} ${id}`;

function asObject(values) {
  if (values === undefined || values === null) return {};
  return typeof values === "object" && !Array.isArray(values) ? values : { __root__: values };
}

/**
 * A task in the form of the agent server's interface. The state of a subgraph is where it is to be
 * found.
 */
export function asTask(task) {
  return {
    id: task.id, name: task.name, path: task.path,
    error: task.error === undefined || task.error === null ? null : errorText(task.error),
    interrupts: task.interrupts ?? [],
    checkpoint: placeIn(task.state), state: null, result: task.result ?? null,
  };
}

/**
 * An error as the framework's own server shows it. Its hooks make an error of an object in JSON,
 * and pages could not read the message of another text.
 */
function errorText(error) {
  if (typeof error === "string") return error;
  return JSON.stringify(error.message === undefined ? error : { message: error.message, name: error.name ?? "Error" });
}

/** @returns {object | null} the checkpoint that a configuration addresses */
export function placeIn(config) {
  const { thread_id, checkpoint_id, checkpoint_ns, checkpoint_map } = config?.configurable ?? {};
  if (!thread_id) return null;
  return { thread_id, checkpoint_id: checkpoint_id ?? null, checkpoint_ns: checkpoint_ns ?? "", checkpoint_map: checkpoint_map ?? null };
}

/**
 * Names of channels of which checkpoints do not hold the whole value, in the graph and those within
 * it.
 */
function deltaChannels(graph) {
  const names = new Set();
  const graphs = [graph, ...[...subgraphsOf(graph)].map(([, inner]) => inner)];
  for (const { channels } of graphs) {
    for (const [name, channel] of Object.entries(channels ?? {})) if (channel?.lc_graph_name === "DeltaChannel") names.add(name);
  }
  return names;
}
