import { encode } from "./encode.mjs";
import { join, split } from "./parts.mjs";

/**
 * @typedef {object} Write
 * @property {string} taskID
 * @property {number} index
 * @property {string} channel
 * @property {string} path the task's, by which newer versions of the framework order writes; "" in
 * older ones
 * @property {import("./parts.mjs").Typed} value
 * @property {string} [shown] the value as clients see it, of a write to the graph's own state
 */

/**
 * One checkpoint.
 * @typedef {object} Saved
 * @property {string} id
 * @property {string | undefined} parentID
 * @property {import("./parts.mjs").Typed} checkpoint the framework's, without its channel values
 * @property {object} metadata
 * @property {Map<string, {version: unknown, value: import("./parts.mjs").Typed}>} channels
 * @property {Map<string, Write>} writes
 * @property {Record<string, unknown>} versions of all its channels, also of those whose values are
 * made from what came before
 */

/**
 * Hears of the invocation's own thread.
 * @typedef {object} Listener
 * @property {(ns: string, saved: Saved) => void} onCheckpoint
 * @property {(ns: string, saved: Saved, taskID: string) => void} onWrites
 */

/** @type {WeakMap<object, any>} */
const classes = new WeakMap();

/**
 * Returns the class of checkpointers of a framework.
 *
 * They are of the framework's own interface and live for one invocation: seeded with what the
 * server kept, they tell a listener of everything that they are given, in a form that seeds the
 * next one. Values are serialised as soon as they come, because a graph goes on changing them; each
 * version of a channel only once.
 * @param {import("./framework.mjs").Framework} framework
 */
export function checkpointerOf(framework) {
  if (!classes.has(framework)) classes.set(framework, define(framework.checkpoints, framework.abilities));
  return classes.get(framework);
}

/**
 * What the framework writes for itself about a task has a place of its own. Early releases have no
 * table of these places.
 */
const PLACES = { __error__: -1, __scheduled__: -2, __interrupt__: -3, __resume__: -4 };

function define({ BaseCheckpointSaver, WRITES_IDX_MAP = PLACES, TASKS, maxChannelVersion, compareWritesSortKeys, emptyCheckpoint }, abilities) {
  const keepsSends = "pending_sends" in emptyCheckpoint(); // as a member of checkpoints, in releases before 0.4
  const inOrder = (writes) => {
    const all = [...writes.values()];
    return compareWritesSortKeys ? all.sort((a, b) => compareWritesSortKeys([a.path, a.taskID, a.index], [b.path, b.taskID, b.index])) : all;
  };
  return class Checkpointer extends BaseCheckpointSaver {
    /** What each checkpoint of the invocation's thread says besides what the framework does. */
    extraMetadata = {};
    /**
     * True while the thread's newest checkpoint is not here, because the run begins a branch at an
     * older checkpoint.
     */
    behind = false;
    #thread;
    #listener;
    /**
     * @type {Map<string, Map<string, Map<string, Saved>>>} by thread, namespace and id; the last
     * one put is the newest
     */
    #threads = new Map();
    /**
     * @type {Map<string, Map<string, Write>>} by place; writes can come before their checkpoint,
     * which is saved in the background
     */
    #writes = new Map();

    /**
     * @param {string} [thread] the invocation's
     * @param {Listener} [listener]
     */
    constructor(thread, listener) {
      super();
      this.serde = withoutGaps(this.serde);
      this.#thread = thread;
      this.#listener = listener;
    }

    // What the server keeps

    seed({ ns, id, parentID, data }) {
      const { head, values: [checkpoint, ...values] } = split(data);
      this.#of(this.#thread, ns).set(id, {
        id, parentID, checkpoint, metadata: head.metadata,
        channels: new Map(head.channels.map(([name, version], i) => [name, { version, value: values[i] }])),
        writes: this.#writesOf(this.#thread, ns, id), versions: {},
      });
    }

    seedWrites({ ns, checkpointID, taskID, data }) {
      const { head, values } = split(data);
      const stored = this.#writesOf(this.#thread, ns, checkpointID);
      head.writes.forEach(([index, channel, path], i) => stored.set(`${taskID} ${index}`, { taskID, index, channel, path, value: values[i] }));
    }

    /**
     * The checkpoint for seed, by itself.
     * @param {Saved} saved
     */
    data(saved) {
      const channels = [...saved.channels].sort(([a], [b]) => (a < b ? -1 : 1));
      const head = { metadata: saved.metadata, channels: channels.map(([name, { version }]) => [name, version]) };
      return join(head, [saved.checkpoint, ...channels.map(([, { value }]) => value)]);
    }

    /**
     * All that a task has written so far, for seedWrites.
     * @param {Saved} saved
     * @param {string} taskID
     */
    writesData(saved, taskID) {
      const writes = [...saved.writes.values()].filter((write) => write.taskID === taskID);
      return join({ writes: writes.map(({ index, channel, path }) => [index, channel, path]) }, writes.map(({ value }) => value));
    }

    /** @returns {Saved | undefined} */
    newest(ns) {
      return [...this.#of(this.#thread, ns).values()].at(-1);
    }

    /**
     * What a task has written at the newest checkpoint.
     * @returns {Promise<[channel: string, value: unknown][]>}
     */
    writesOf(ns, taskID) {
      const writes = [...(this.newest(ns)?.writes.values() ?? [])].filter((write) => write.taskID === taskID && write.index >= 0);
      return Promise.all(writes.map(async ({ channel, value }) => [channel, await this.serde.loadsTyped(...value)]));
    }

    /**
     * What the tasks of the step that led to a checkpoint of the graph itself have returned, by
     * task: what they have written to channels, as clients see it.
     * @param {Saved} saved
     * @param {Set<string>} channels
     * @returns {string} JSON
     */
    results(saved, channels) {
      const before = this.#of(this.#thread, "").get(saved.parentID);
      /** @type {Map<string, Map<string, string[]>>} */
      const tasks = new Map();
      for (const { taskID, index, channel, shown } of before === undefined ? [] : inOrder(before.writes)) {
        if (index < 0 || shown === undefined || !(channels.has(channel) || WHOLE.includes(channel))) continue;
        within(within(tasks, taskID), channel, () => []).push(shown);
      }
      return object([...tasks].map(([taskID, written]) => {
        const whole = WHOLE.find((channel) => written.has(channel));
        if (whole !== undefined) return [taskID, written.get(whole)[0]];
        return [taskID, object([...written].map(([channel, values]) => [channel, values.length === 1 ? values[0] : `{"$writes":[${values.join()}]}`]))];
      }));
    }

    /** Forgets what a task has written at the newest checkpoint. */
    forget(ns, taskID) {
      const writes = this.newest(ns)?.writes ?? new Map();
      for (const [key, write] of writes) if (write.taskID === taskID) writes.delete(key);
    }

    // The framework's interface

    async getTuple(config) {
      if (config.configurable?.thread_id === undefined) return undefined;
      const { thread, ns, id } = placeOf(config);
      if (id === undefined && ns === "" && this.behind && thread === this.#thread) return this.#elsewhere(thread);
      const checkpoints = this.#of(thread, ns);
      const saved = id === undefined ? [...checkpoints.values()].at(-1) : checkpoints.get(id);
      return saved && this.#tuple(thread, ns, saved);
    }

    async *list(config, { before, limit, filter } = {}) {
      const wanted = config?.configurable ?? {};
      const end = before?.configurable?.checkpoint_id;
      let left = limit ?? Infinity;
      for (const [thread, namespaces] of this.#threads) {
        if (wanted.thread_id !== undefined && wanted.thread_id !== thread) continue;
        for (const [ns, checkpoints] of namespaces) {
          if (wanted.checkpoint_ns !== undefined && wanted.checkpoint_ns !== ns) continue;
          for (const saved of [...checkpoints.values()].reverse()) {
            if (left <= 0) return;
            if (wanted.checkpoint_id && wanted.checkpoint_id !== saved.id) continue;
            if (end && saved.id >= end) continue;
            if (filter && !Object.entries(filter).every(([key, value]) => saved.metadata[key] === value)) continue;
            left--;
            yield this.#tuple(thread, ns, saved);
          }
        }
      }
    }

    async put(config, checkpoint, metadata, newVersions = {}) {
      const { thread, ns, id: parentID } = placeOf(config);
      const checkpoints = this.#of(thread, ns);
      const parent = parentID === undefined ? undefined : checkpoints.get(parentID);
      const { channel_values: values, ...bare } = checkpoint;
      const own = thread === this.#thread;
      const isQuiet = metadata.source === "update" && !abilities.ends; // early releases merge what tasks have returned without a new version
      // All is serialised before anything is awaited, as the graph goes on.
      const pairs = Object.keys(values ?? {}).map((name) => {
        const version = checkpoint.channel_versions?.[name];
        const known = isQuiet || name in newVersions ? undefined : parent?.channels.get(name);
        return { name, version, value: known && known.version === version ? known.value : this.serde.dumpsTyped(values[name]) };
      });
      const [typed, said] = [this.serde.dumpsTyped(bare), this.serde.dumpsTyped({ ...(own ? this.extraMetadata : {}), ...metadata })];
      const saved = {
        id: checkpoint.id, parentID, checkpoint: await typed, metadata: await this.serde.loadsTyped(...(await said)),
        channels: new Map(),
        writes: this.#writesOf(thread, ns, checkpoint.id), versions: { ...checkpoint.channel_versions },
      };
      for (const { name, version, value } of pairs) saved.channels.set(name, { version, value: await value });
      checkpoints.delete(saved.id);
      checkpoints.set(saved.id, saved);
      if (own) {
        this.behind = false;
        this.#listener?.onCheckpoint(ns, saved);
        for (const taskID of new Set([...saved.writes.values()].map((write) => write.taskID))) this.#listener?.onWrites(ns, saved, taskID);
      }
      return { configurable: { thread_id: thread, checkpoint_ns: ns, checkpoint_id: saved.id } };
    }

    async putWrites(config, writes, taskID, path = "") {
      const { thread, ns, id } = placeOf(config);
      if (id === undefined) throw new Error("the configuration of the writes has no checkpoint_id");
      const values = writes.map(([, value]) => this.serde.dumpsTyped(value));
      const shown = writes.map(([channel, value]) => (ns === "" && isReturned(channel) ? encode(value) : undefined));
      const stored = this.#writesOf(thread, ns, id);
      const there = new Set(stored.keys());
      for (const [position, [channel]] of writes.entries()) {
        const index = WRITES_IDX_MAP[channel] ?? position;
        const key = `${taskID} ${index}`;
        if (index < 0 || !there.has(key)) stored.set(key, { taskID, index, channel, path, value: await values[position], shown: shown[position] });
      }
      const saved = this.#of(thread, ns).get(id);
      if (saved && thread === this.#thread) this.#listener?.onWrites(ns, saved, taskID);
    }

    async deleteThread(thread) {
      this.#threads.delete(thread);
      for (const key of [...this.#writes.keys()]) if (JSON.parse(key)[0] === thread) this.#writes.delete(key);
    }

    /** Older versions of the framework kept what is to be sent beside the parent. */
    async #migrate(checkpoint, parent) {
      if (parent === undefined) return;
      const sends = [...parent.writes.values()].filter((write) => write.channel === TASKS);
      checkpoint.channel_values[TASKS] = await Promise.all(sends.map(({ value }) => this.serde.loadsTyped(...value)));
      const versions = Object.values(checkpoint.channel_versions);
      checkpoint.channel_versions[TASKS] = versions.length > 0 ? maxChannelVersion(...versions) : this.getNextVersion(undefined);
    }

    #of(thread, ns) {
      return within(within(this.#threads, thread), ns);
    }

    #writesOf(thread, ns, id) {
      return within(this.#writes, JSON.stringify([thread, ns, id]));
    }

    /**
     * Stands for the thread's newest checkpoint where that is not here: its id shows that the
     * thread has gone on.
     */
    #elsewhere(thread) {
      const checkpoint = emptyCheckpoint();
      return { config: { configurable: { thread_id: thread, checkpoint_ns: "", checkpoint_id: checkpoint.id } }, checkpoint, metadata: { source: "loop", step: -1, parents: {} }, pendingWrites: [] };
    }

    async #tuple(thread, ns, saved) {
      const at = (id) => ({ configurable: { thread_id: thread, checkpoint_ns: ns, checkpoint_id: id } });
      const load = ([type, bytes]) => this.serde.loadsTyped(type, bytes);
      const values = {};
      for (const [name, { value }] of saved.channels) values[name] = await load(value);
      const pendingWrites = [];
      for (const write of inOrder(saved.writes)) {
        const value = await load(write.value);
        if (ns === "" && isReturned(write.channel)) write.shown ??= encode(value); // of an earlier invocation
        pendingWrites.push([write.taskID, write.channel, value]);
      }
      const checkpoint = { ...(await load(saved.checkpoint)), channel_values: values };
      if (checkpoint.v < 4 && !keepsSends) await this.#migrate(checkpoint, this.#of(thread, ns).get(saved.parentID));
      return {
        config: at(saved.id),
        checkpoint,
        metadata: structuredClone(saved.metadata),
        pendingWrites,
        ...(saved.parentID === undefined ? {} : { parentConfig: at(saved.parentID) }),
      };
    }
  };
}

const NULL = Buffer.from("null");

/**
 * The framework's serialiser makes nothing of a function or a symbol, and cannot read that again.
 * Here such a value is null.
 */
function withoutGaps(serde) {
  const filled = (type, bytes) => (type === "json" && bytes.length === 0 ? NULL : bytes);
  return {
    dumpsTyped: async (value) => {
      const [type, bytes] = await serde.dumpsTyped(value);
      return [type, filled(type, bytes)];
    },
    loadsTyped: async (type, bytes) => serde.loadsTyped(type, filled(type, bytes)),
  };
}

function within(map, key, make = () => new Map()) {
  if (!map.has(key)) map.set(key, make());
  return map.get(key);
}

/**
 * The channels whose value is all that a task returns: of the functional API, for a task and for
 * the entrypoint, and of a state that is no object.
 */
const WHOLE = ["__return__", "__end__", "__root__"];

/** Whether a channel can be one of the state, and not one by which the framework starts nodes. */
const isReturned = (channel) => WHOLE.includes(channel) || !/^(__|branch:|join:)/.test(channel);

/** An object of values that are JSON already. */
const object = (members) => `{${members.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join()}}`;

function placeOf(config) {
  const { thread_id: thread, checkpoint_ns: ns, checkpoint_id: id } = config.configurable ?? {};
  if (thread === undefined) throw new Error('the configuration has no "thread_id" in "configurable"');
  return { thread, ns: ns ?? "", id: id || undefined };
}
