import { encode } from "./encode.mjs";

const CHANNEL = "messages";
const STRUCTURED = "ls_structured_output_format";

/**
 * Tells the server which of the messages that were shown are to be kept if the run ends now.
 *
 * A step that is interrupted has no result, so its graph keeps nothing of it. What a client has
 * read of such a step belongs to the thread all the same, where the step would have put it there:
 * into the graph's own channel `messages`, or into that of a subgraph which hands it to the same
 * channel of its parent. This class follows which message belongs to which task. It emits the whole
 * list as an `unfinished` event before a message's first chunk, and again when a task has finished.
 */
export class Unfinished {
  #graph;
  #Pregel;
  #emit;
  /**
   * @type {Map<string, string[]>} by message the tasks that show it, from the outermost, each
   * "node:task id"
   */
  #open = new Map();
  #seen = new Set();
  /**
   * Messages whose text is a structured output: it is data for the node that asks, and no answer.
   */
  #structured = new Set();
  /** Whether the framework's release streams tasks. They begin before anything is shown. */
  #streamsTasks = false;

  /**
   * @param {any} graph
   * @param {import("./framework.mjs").Framework} framework
   * @param {(event: string, json: string) => void} emit
   */
  constructor(graph, framework, emit) {
    this.#graph = graph;
    this.#Pregel = framework.pregel.Pregel;
    this.#emit = emit;
    this.#tell();
  }

  /** Callbacks that note model calls for structured outputs. */
  get callbacks() {
    const calls = new Set();
    const note = (runID, generation) => {
      if (calls.has(runID)) this.#structured.add(generation?.message?.id ?? `run-${runID}`);
    };
    return {
      awaitHandlers: true, // before the framework streams the chunk
      handleChatModelStart: (_model, _messages, runID, _parent, extra) => {
        if (extra?.options?.[STRUCTURED]) calls.add(runID);
      },
      handleLLMNewToken: (_token, _index, runID, _parent, _tags, fields) => note(runID, fields?.chunk),
      handleLLMEnd: (output, runID) => {
        note(runID, output?.generations?.[0]?.[0]);
        calls.delete(runID);
      },
      handleLLMError: (_error, runID) => calls.delete(runID),
    };
  }

  /**
   * Takes a chunk that a client is about to be shown.
   * @param {string[]} path the tasks that show it
   */
  show(path, [message]) {
    const id = message?.id;
    if (!id || this.#seen.has(id)) return;
    this.#seen.add(id);
    if (this.#structured.has(id) || !this.#belongs(path)) return;
    this.#open.set(id, path);
    this.#tell();
  }

  /** Takes an event of the stream mode "tasks". */
  task(ns, { id, name, result }) {
    this.#streamsTasks = true;
    if (result === undefined) return; // the task has begun
    const written = Array.isArray(result) ? result.filter(([channel]) => channel === CHANNEL).map(([, value]) => value) : result[CHANNEL];
    this.#finish(ns, (place) => place === `${name}:${id}`, written);
  }

  /**
   * Takes an event of the stream mode "updates", which is all that older releases tell of tasks
   * that have finished.
   */
  update(ns, payload) {
    if (this.#streamsTasks) return;
    for (const [name, update] of Object.entries(payload ?? {})) this.#finish(ns, (place) => nameOf(place) === name, update?.[CHANNEL]);
  }

  /**
   * What a step of a subgraph has put into the channel stays open until the subgraph has finished.
   */
  #finish(ns, isDone, written) {
    const within = [...this.#open].filter(([, path]) => path.length > ns.length && ns.every((place, i) => place === path[i]) && isDone(path[ns.length]));
    if (within.length === 0) return;
    const returned = ns.length > 0 ? new Set(idsIn(written)) : new Set();
    for (const [id, path] of within) {
      if (returned.has(id)) this.#open.set(id, path.slice(0, ns.length + 1));
      else this.#open.delete(id);
    }
    this.#tell();
  }

  #tell() {
    this.#emit("unfinished", encode([...this.#open].map(([id, path]) => ({ id, node: nameOf(path[0]) }))));
  }

  /**
   * Whether the text that a task's own code shows goes to the graph's channel. Of a graph that a
   * node's code calls nobody knows what becomes of its words.
   */
  #belongs(path) {
    let graph = this.#graph;
    for (const place of path.slice(0, -1)) {
      const inner = graph.nodes?.[nameOf(place)]?.bound;
      if (!addsMessages(graph) || !(inner instanceof this.#Pregel) || ![inner.outputChannels].flat().includes(CHANNEL)) return false;
      graph = inner;
    }
    const node = graph.nodes?.[nameOf(path.at(-1))];
    return node !== undefined && addsMessages(graph) && !Array.isArray(node.bound?.tools); // a tool's text is no answer
  }
}

const nameOf = (place) => place.split(":")[0];

/**
 * Whether the graph has the channel, and adds to it. One that replaces its value would lose what it
 * holds.
 */
function addsMessages(graph) {
  return ["BinaryOperatorAggregate", "DeltaChannel"].includes(graph.channels?.[CHANNEL]?.lc_graph_name);
}

function* idsIn(value) {
  if (Array.isArray(value)) for (const item of value) yield* idsIn(item);
  else if (value !== null && typeof value === "object") {
    if (typeof value.id === "string") yield value.id;
    if (Array.isArray(value.$writes)) yield* idsIn(value.$writes);
  }
}
