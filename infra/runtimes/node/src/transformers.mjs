// The stream transformers that a graph was compiled with. A transformer observes the events of a
// run. What it pushes into a channel with a name, and the promises that it makes, are for clients,
// which subscribe to "custom:NAME"; the framework's own server shows them in the same form. As
// there, transformers run only for runs whose clients see all kinds of events.
import { encode } from "./encode.mjs";

/** The modes of runs whose clients subscribe to channels. */
const SHOWN = ["updates", "messages", "custom", "tasks", "tools"];
/** The modes of the events that transformers get. */
const MODES = [...SHOWN, "values"];

/** Runs the transformers of one run. */
export class Transformers {
  #convert;
  #emit;
  /** @type {Map<string, Message>} the open messages */
  #messages = new Map();
  #given = new WeakSet();
  /** What nothing may be shown before: the first checkpoint of a thread. */
  #held;
  #source = new Handover();
  #done;

  /**
   * @param {any} graph
   * @param {import("./framework.mjs").Framework} framework
   * @param {(event: string, json: string) => void} emit
   * @param {boolean} hasCheckpoint whether the thread has one
   * @returns {Promise<Transformers | undefined>} nothing if nothing of the graph's transformers is
   * for clients
   */
  static async of(graph, framework, streamModes, emit, hasCheckpoint) {
    const factories = graph.streamTransformers ?? [];
    if (factories.length === 0 || !SHOWN.every((mode) => streamModes.has(mode)) || !framework.graphs.createGraphRunStream) return undefined;
    const messages = await framework.messages();
    // From here on nothing waits: what a transformer pushes is heard once its channels are wired.
    const made = factories.map((factory) => begun(factory())).filter(({ transformer }) => !framework.graphs.isNativeTransformer(transformer));
    if (!made.some(({ projection }) => Object.values(projection).some(isForClients))) return undefined;
    return new Transformers(made, framework, messages, emit, hasCheckpoint);
  }

  constructor(made, framework, { convertChunksToEvents }, emit, hasCheckpoint) {
    this.#convert = convertChunksToEvents;
    this.#emit = emit;
    this.#held = hasCheckpoint ? undefined : [];
    const run = framework.graphs.createGraphRunStream(this.#source, made.map(({ transformer }) => () => transformer));
    // The framework would put what is pushed into its own list of events, which is read later.
    for (const channel of Object.values(run.extensions)) if (isNamed(channel)) channel._wire((item) => this.#show(channel.channelName, item));
    this.#done = this.#follow(run);
    this.#done.catch(() => {}); // who takes a chunk, or ends the run, hears of it
  }

  /** Shows the transformers a chunk of the graph. An error of a transformer is one of the run. */
  async take(ns, mode, payload) {
    for (const message of this.#messages.values()) if (hasReturned(message, ns, mode, payload)) await this.#finish(message);
    if (!MODES.includes(mode)) return;
    if (mode === "messages") await this.#takeMessage(...payload);
    else {
      if (mode === "custom" && Object(payload) === payload) this.#given.add(payload);
      await this.#push([ns, mode, payload]);
    }
  }

  /** Shows what was pushed before the first checkpoint. */
  begin() {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const json of held) this.#emit("custom", json);
  }

  /** Tells the transformers that the run has ended, and waits for what they make of it. */
  async end() {
    for (const message of this.#messages.values()) await this.#finish(message);
    this.#source.end();
    await this.#done;
  }

  /** Tells the transformers that the run has failed. */
  async fail(error) {
    this.#source.end({ error });
    await this.#done.catch(() => {});
  }

  async #takeMessage(message, metadata) {
    if (message.type === "tool") return;
    const key = `${metadata.langgraph_checkpoint_ns} ${message.id}`;
    if (!this.#messages.has(key)) this.#messages.set(key, new Message(key, { ...metadata, run_id: message.id }, this.#convert));
    const open = this.#messages.get(key);
    await this.#pushBlocks(open, await open.add(message));
    if (!("concat" in message)) await this.#finish(open); // it is no chunk
  }

  async #finish(message) {
    this.#messages.delete(message.key);
    await this.#pushBlocks(message, await message.end());
  }

  async #pushBlocks({ ns, metadata }, events) {
    for (const event of events) await this.#push([ns, "messages", [event, metadata]]);
  }

  async #push(chunk) {
    await Promise.race([this.#source.push(chunk), this.#done]);
  }

  /** Follows the framework's list of events, which has what promises came to at its end. */
  async #follow(run) {
    for await (const { method, params: { data } } of run) {
      if (method === "custom" && typeof data?.name === "string" && !this.#given.has(data)) this.#show(data.name, data.payload);
    }
  }

  #show(name, payload) {
    const json = encode({ name, payload: payload === undefined ? null : payload });
    if (this.#held === undefined) this.#emit("custom", json);
    else this.#held.push(json);
  }
}

/** Makes the events of a message's blocks from its chunks, with the framework's own generator. */
class Message {
  #chunks = new Handover();
  #events = [];
  #done;

  constructor(key, metadata, convert) {
    const ns = String(metadata.langgraph_checkpoint_ns ?? "").split("|"); // the last is the task
    Object.assign(this, { key, metadata, ns, place: ns.slice(0, -1).join("|"), task: ns.at(-1).split(":").at(-1) });
    this.#done = this.#convert(convert);
    this.#done.catch(() => {});
  }

  async #convert(convert) {
    for await (const event of convert(this.#chunks)) this.#events.push(event);
  }

  async add(message) {
    await Promise.race([this.#chunks.push({ message, text: "" }), this.#done]);
    return this.#events.splice(0);
  }

  async end() {
    this.#chunks.end();
    await this.#done;
    return this.#events.splice(0);
  }
}

/** Hands values to a reader, one at a time. */
class Handover {
  #values = [];
  #end;
  #wake = () => {};
  #taken = () => {};

  /** Resolves when the reader is done with the value, and asks for the next one. */
  push(value) {
    this.#values.push(value);
    const taken = new Promise((resolve) => (this.#taken = resolve));
    this.#wake();
    return taken;
  }

  end(end = {}) {
    this.#end = end;
    this.#wake();
  }

  async *[Symbol.asyncIterator]() {
    for (;;) {
      while (this.#values.length > 0) {
        yield this.#values.shift();
        this.#taken();
      }
      if (this.#end) {
        if ("error" in this.#end) throw this.#end.error;
        return;
      }
      await new Promise((resolve) => (this.#wake = resolve));
    }
  }
}

/** Has the framework get the projection of a transformer that has begun already. */
function begun(transformer) {
  const projection = transformer.init();
  transformer.init = () => projection;
  return { transformer, projection: projection ?? {} };
}

function isForClients(value) {
  return isNamed(value) || typeof value?.then === "function";
}

function isNamed(value) {
  return value?.[Symbol.for("langgraph.stream_channel")] === true && typeof value.channelName === "string";
}

/** Whether a chunk of the graph says that the task that makes a message has returned. */
function hasReturned({ task, place, metadata }, ns, mode, payload) {
  if (mode === "tasks") return "result" in payload && payload.id === task;
  return mode === "updates" && Object.hasOwn(payload, metadata.langgraph_node) && place === ns.join("|");
}
