// Replacements for parts that early releases of the framework lack. All other modules here may rely
// on them.

const INPUT = "__input__";
const START = "__start__";
const END = "__end__";
const HIDDEN = "langsmith:hidden";
const STEP = "graph:step:";
const UNSTREAMED = ["langsmith:nostream", "nostream"];

/** The first release that does something itself. */
const FIRST = {
  subgraphs: [0, 2, 9], custom: [0, 2, 20], merges: [0, 2, 32], pauses: [0, 2, 39], options: [0, 2, 42], messages: [0, 2, 46], tasks: [0, 3, 0], ends: [0, 3, 12],
  places: [1, 7, 0],
};

/**
 * Says what a release does itself: it streams steps of subgraphs, custom data, that it pauses,
 * messages whose chunks have one id, and tasks and checkpoints by themselves; a change of the state
 * merges what tasks have returned; it takes all options of a run; it ends what tasks wait for, with
 * what they have returned; and the namespace of messages and tools is the graph that the node
 * belongs to, and no longer the node.
 * @param {string} version
 * @returns {Record<keyof typeof FIRST, boolean>}
 */
export function abilitiesOf(version) {
  const numbers = version.split(/[.-]/).slice(0, 3).map(Number);
  const has = (first) => {
    const i = first.findIndex((number, at) => number !== numbers[at]);
    return i < 0 || numbers[i] > first[i];
  };
  return Object.fromEntries(Object.entries(FIRST).map(([name, first]) => [name, has(first)]));
}

/**
 * Has a graph take options that releases before 0.2.42 drop on their way, such as the signal that
 * stops a run.
 * @param {any} graph a copy for one invocation
 */
export function keepOptions(graph, { signal, interruptBefore, interruptAfter }) {
  const defaults = graph._defaults;
  graph._defaults = (config) => defaults.call(graph, { interruptBefore, interruptAfter, ...config, signal: config.signal ?? signal });
}

/**
 * The graphs within a graph, at all depths. What is within a graph of another server is left out:
 * it has no nodes here, and the framework does not look for them at that server.
 * @returns {Generator<[name: string, graph: any]>}
 */
export function* subgraphsOf(graph) {
  for (const [name, inner] of graph.getSubgraphs?.() ?? []) {
    yield [name, inner];
    if (!inner.nodes) continue;
    for (const [deeper, found] of subgraphsOf(inner)) yield [`${name}|${deeper}`, found];
  }
}

/**
 * The graph as it is drawn.
 * @param {boolean | number} [depth] to which graphs within are drawn, too
 */
export async function drawingOf(graph, depth) {
  return (await (graph.getGraphAsync?.({ xray: depth }) ?? graph.getGraph({ xray: depth }))).toJSON();
}

/**
 * Changes the state as nodes would. Releases before 0.2.56 know only one update at a time, so there
 * those of one step follow each other.
 * @param {{values: unknown, asNode: string | undefined}[][]} supersteps
 */
export async function changeState(graph, config, supersteps) {
  if (graph.bulkUpdateState) {
    await graph.bulkUpdateState(config, supersteps.map((updates) => ({ updates })));
    return;
  }
  let at = config;
  for (const { values, asNode } of supersteps.flat()) {
    const { configurable } = await graph.updateState(at, values, asNode === INPUT && START in graph.nodes ? START : asNode);
    at = { ...config, configurable: { ...config.configurable, ...configurable } };
  }
}

/**
 * Brings into the state what tasks have returned at a checkpoint. Early releases do it with an
 * update of one of the tasks' nodes, however small; the first ones do not do it, so there what each
 * task has returned is that update.
 * @param {import("./framework.mjs").Framework} framework
 * @param {Set<string>} returned the tasks
 * @param {(taskID: string) => Promise<[channel: string, value: unknown][]>} writesOf
 */
export async function keepResults(graph, { abilities }, config, returned, writesOf) {
  if (abilities.ends) {
    await changeState(graph, config, [[{ values: null, asNode: END }]]);
    return;
  }
  const finished = (await graph.getState(config)).tasks.filter(({ id }) => returned.has(id));
  for (const { id, name } of abilities.merges ? finished.slice(0, 1) : finished) {
    const values = abilities.merges ? [] : (await writesOf(id)).filter(([channel]) => graph.streamChannelsList.includes(channel) && channel !== START);
    await changeState(graph, config, [[{ values: Object.fromEntries(values), asNode: name }]]);
  }
}

/**
 * A handler of callbacks that makes the events of the stream mode "messages": the chunks of models
 * as they come, and the messages that nodes return.
 * @param {(path: string[], payload: [message: object, metadata: object]) => void} show
 */
export class Messages {
  // Models stream if a handler asks for it. In early releases of the framework's core, the handler
  // must have this name.
  name = "log_stream_tracer";
  lc_prefer_streaming = true;
  awaitHandlers = true;
  #show;
  /** @type {Map<string, string[]>} by run, the tasks that it belongs to, from the outermost */
  #paths = new Map();
  /**
   * @type {Map<string, {path: string[], metadata: object, id?: string}>} models that answer, and
   * nodes that run
   */
  #open = new Map();
  #seen = new Set();

  constructor(show) {
    this.#show = show;
  }

  async *tapOutputIterable(_runID, output) {
    yield* output;
  }

  handleChainStart(_chain, inputs, runID, parentID, tags, metadata, _type, name) {
    // A runnable within a node has the node's metadata, too, and may have its name; only the node
    // itself has the tag of its step.
    const isNode = metadata?.langgraph_node === name && tags?.some((tag) => tag.startsWith(STEP)) && !tags.includes(HIDDEN);
    this.#place(runID, parentID, isNode ? metadata : undefined);
    if (!isNode) return;
    for (const message of messagesIn(inputs)) if (message.id !== undefined) this.#seen.add(message.id);
    this.#open.set(runID, { path: this.#paths.get(runID), metadata: { tags, name, ...metadata } });
  }

  handleToolStart(_tool, _input, runID, parentID) {
    this.#place(runID, parentID);
  }

  handleChatModelStart(_model, _messages, runID, parentID, _extra, tags, metadata, name) {
    const path = this.#paths.get(parentID);
    if (!path?.length || UNSTREAMED.some((tag) => tags?.includes(tag))) return;
    this.#open.set(runID, { path, metadata: { tags, name, ...metadata } });
  }

  handleLLMNewToken(token, _index, runID, _parentID, _tags, fields) {
    const model = this.#open.get(runID);
    if (model === undefined) return;
    // Early packages of models tell only the text of a chunk.
    const message = fields?.chunk?.message ?? { type: "ai", content: token, additional_kwargs: {}, response_metadata: {} };
    // Some models name only the first of an answer's chunks; the others are named for the run.
    model.id ??= message.id ?? `run-${runID}`;
    if (message.id !== model.id) {
      message.id = model.id;
      if (message.lc_kwargs) message.lc_kwargs.id = model.id;
    }
    this.#emit(model, message);
  }

  handleLLMEnd(output, runID) {
    const model = this.#open.get(runID);
    this.#open.delete(runID);
    const message = output?.generations?.[0]?.[0]?.message;
    if (model === undefined || message === undefined) return;
    if (model.id !== undefined) {
      this.#seen.add(message.id); // it has been shown, perhaps under the run's name
      return;
    }
    message.id ??= message.lc_kwargs.id = `run-${runID}`;
    this.#emit(model, message);
  }

  handleLLMError(_error, runID) {
    this.#open.delete(runID);
  }

  handleChainEnd(outputs, runID) {
    const node = this.#open.get(runID);
    this.handleChainError(undefined, runID);
    if (node === undefined) return;
    for (const message of messagesIn(outputs)) if (message.id === undefined || !this.#seen.has(message.id)) this.#emit(node, message);
  }

  handleChainError(_error, runID) {
    this.#open.delete(runID);
    this.#paths.delete(runID);
  }

  handleToolEnd(_output, runID) {
    this.#paths.delete(runID);
  }

  handleToolError(_error, runID) {
    this.#paths.delete(runID);
  }

  #place(runID, parentID, node) {
    const above = this.#paths.get(parentID) ?? [];
    const own = node?.langgraph_checkpoint_ns?.split("|") ?? (node ? [...above, `${node.langgraph_node}:${runID}`] : above);
    this.#paths.set(runID, own);
  }

  #emit({ path, metadata }, message) {
    if (message.id !== undefined) this.#seen.add(message.id);
    this.#show(path, [message, metadata]);
  }
}

function messagesIn(value) {
  const isMessage = (item) => typeof item?._getType === "function";
  if (isMessage(value)) return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap((item) => (Array.isArray(item) ? item.filter(isMessage) : isMessage(item) ? [item] : []));
}
