import { changeState, keepOptions, keepResults, Messages } from "./early.mjs";
import { encode } from "./encode.mjs";
import { CommandError, DataError, describeError } from "./errors.mjs";
import { placeOf } from "./load.mjs";
import { reaching } from "./loopback.mjs";
import { asTask, placeIn, Recorder } from "./recorder.mjs";
import { Transformers } from "./transformers.mjs";
import { Unfinished } from "./unfinished.mjs";

const INTERRUPTED = "__interrupt__";
const INPUT = "__input__";
const START = "__start__";
/** Writes of this task are those of a command. */
const NO_TASK = "00000000-0000-0000-0000-000000000000";
/** Modes that the framework streams by itself; events come from its callbacks. */
const MODES = ["values", "updates", "messages", "custom", "debug", "tasks", "checkpoints", "tools"];
/** Releases before 0.3 stream all of these in the mode "debug". */
const DEBUG = ["debug", "tasks", "checkpoints"];

/**
 * What a run writes its events to.
 * @typedef {object} Outlet
 * @property {(event: string, json: string) => void} emit
 * @property {() => Promise<void> | undefined} drain waits until the other side has taken enough
 */

/** One invocation of a graph. */
export class Run {
  /**
   * @param {import("./load.mjs").Source} source
   * @param {import("./invocation.mjs").Invocation} invocation
   * @param {(framework: import("./framework.mjs").Framework) => any} makeStore
   * @param {Outlet} outlet
   * @param {AbortSignal} signal
   */
  constructor(source, invocation, makeStore, outlet, signal) {
    this.source = source;
    this.invocation = invocation;
    this.makeStore = makeStore;
    this.outlet = outlet;
    this.signal = signal;
    this.paused = false;
    /** @type {Unfinished | undefined} of runs that show messages */
    this.unfinished = undefined;
  }

  /**
   * Answers the invocation. A graph that fails is an error event; of one that was stopped nobody
   * wants to hear.
   */
  execute() {
    return reaching(this.invocation.serverURL, this.invocation.user, () => this.#execute());
  }

  async #execute() {
    const { invocation } = this;
    try {
      const { graph, framework } = await this.source.open(invocation.runConfig(), (own) => this.#runtime(own));
      await (invocation.operation === "update_state" ? this.#update(graph, framework) : this.#run(graph, framework));
    } catch (error) {
      if (this.signal.aborted) return;
      // A filter by level or run finds this line only, so it also tells the place.
      const place = placeOf(process.cwd(), error);
      console.error(`ERROR: graph "${invocation.graph}", run ${invocation.runID}${place ? `, ${place}` : ""}:`, error);
      this.outlet.emit("error", encode(describeError(error)));
    }
  }

  /** What a factory is told of what it makes a graph for. Only a run has a context. */
  #runtime(framework) {
    const { operation, context, user } = this.invocation;
    const shared = { user: user ?? null, store: (framework && this.makeStore(framework)) ?? null };
    if (operation === "update_state") return { accessContext: "threads.update", ...shared, executionRuntime: null };
    return { accessContext: "threads.create_run", ...shared, executionRuntime: { ...shared, context } };
  }

  /**
   * Gives a copy of the graph the platform's checkpointer and store for this invocation, with the
   * state that the server keeps.
   */
  #attach(original, framework) {
    const { invocation } = this;
    const graph = Object.assign(Object.create(Object.getPrototypeOf(original)), original);
    const recorder = new Recorder(graph, framework, invocation.threadID, this.outlet.emit);
    try {
      for (const checkpoint of invocation.checkpoints) recorder.checkpointer.seed(checkpoint);
      for (const writes of invocation.writes) recorder.checkpointer.seedWrites(writes);
    } catch (error) {
      throw new DataError(`the stored checkpoint ${invocation.checkpointID} cannot be read: ${error.message}`);
    }
    const store = this.makeStore(framework);
    if (store) graph.store = store;
    graph.configKeys = undefined; // with these, releases before 0.2.9 would hide the thread from the graph
    return { graph, recorder };
  }

  async #run(original, framework) {
    const { invocation } = this;
    const { graph, recorder } = this.#attach(original, framework);
    let given = invocation.command ? commandOf(framework, invocation.command) : invocation.input;
    const isEarlier = ({ asNode }) => asNode === INPUT && !(START in graph.nodes) && !invocation.command && given !== null && typeof given === "object";
    await this.#applyPending(graph, recorder, framework, invocation.pending.filter((update) => !isEarlier(update)));
    given = withEarlierMessages(given, invocation.pending.filter(isEarlier));
    await this.#keepReturned(graph, recorder, framework);
    const { checkpointer } = recorder;
    checkpointer.extraMetadata = invocation.runMetadata;
    const config = invocation.runConfig();
    const newest = checkpointer.newest("");
    if (newest?.metadata.run_id === invocation.runID) {
      given = null; // an earlier attempt has taken it
      delete config.configurable.checkpoint_id;
    }
    checkpointer.behind = config.configurable.checkpoint_id !== undefined && invocation.superseded;
    const callbacks = await tracersOf(framework, invocation.tracer);
    if (invocation.streamModes.has("messages")) {
      this.unfinished = new Unfinished(graph, framework, this.outlet.emit);
      callbacks.push(this.unfinished.callbacks);
      if (!framework.abilities.messages) callbacks.push(new Messages((ns, payload) => this.#show(ns, "messages", payload, recorder)));
    }
    if (callbacks.length > 0) config.callbacks = callbacks;
    let failure, transformers;
    try {
      transformers = await Transformers.of(graph, framework, invocation.streamModes, this.outlet.emit, newest !== undefined);
      for await (const chunk of await this.#chunks(graph, given, config, framework)) {
        const [ns, mode, payload] = chunk.length === 2 ? [[], ...chunk] : chunk; // releases before 0.2.9 name no namespace
        await transformers?.take(ns ?? [], mode, payload);
        this.#show(ns ?? [], mode, payload, recorder);
        if (recorder.hasSent) transformers?.begin();
        const full = this.outlet.drain();
        if (full) await full;
      }
      await transformers?.end();
    } catch (error) {
      failure = { error };
      await transformers?.fail(error);
    }
    if (this.signal.aborted) return;
    await recorder.finish();
    transformers?.begin();
    if (failure) throw failure.error;
    if (!framework.abilities.pauses) await this.#tellPause(graph);
    if (this.paused === "inside") this.outlet.emit("interrupt", "[]");
  }

  /** Tells of a pause that the release does not stream. */
  async #tellPause(graph) {
    const { next, tasks } = await graph.getState({ configurable: { thread_id: this.invocation.threadID, checkpoint_ns: "" } });
    if (next.length > 0) this.outlet.emit("interrupt", encode(tasks.flatMap(({ interrupts }) => interrupts ?? [])));
  }

  #chunks(graph, given, config, framework) {
    const { invocation } = this;
    let modes = MODES.filter((mode) => mode === "checkpoints" || invocation.streamModes.has(mode));
    if (!modes.includes("updates")) modes.push("updates"); // tells of pauses
    if (this.unfinished && !modes.includes("tasks")) modes.push("tasks"); // tells when a step has finished
    this.abilities = framework.abilities;
    if (!this.abilities.tasks) modes = [...modes.filter((mode) => !DEBUG.includes(mode)), "debug"];
    modes = modes.filter((mode) => this.abilities[mode] ?? true);
    const options = defined({
      ...config, streamMode: modes, subgraphs: true, durability: invocation.durability, signal: this.signal, context: invocation.context,
      interruptBefore: invocation.interruptBefore, interruptAfter: invocation.interruptAfter,
    });
    if (!this.abilities.options) keepOptions(graph, options);
    return invocation.streamModes.has("events") ? this.#events(graph, given, options) : graph.stream(given, options);
  }

  /**
   * Streams the framework's callback events. Among those, the graph's own chunks are what it
   * streams without.
   */
  async *#events(graph, given, options) {
    for await (const event of graph.streamEvents(given, { ...options, version: "v2" })) {
      if (event.tags?.includes("langsmith:hidden")) continue;
      if (event.event === "on_chain_stream" && event.run_id === this.invocation.runID) yield event.data.chunk;
      else yield [[], "events", event];
    }
  }

  #show(ns, mode, payload, recorder) {
    const { invocation, outlet } = this;
    let data = payload;
    if (mode === "checkpoints") {
      if (payload.values === undefined || payload.config === undefined) return; // only says where the next values belong
      recorder.describe(payload);
      if (!invocation.streamModes.has(mode)) return;
      data = asCheckpoint(payload);
    } else if (mode === "debug") {
      if (!this.abilities.tasks) this.#show(ns, payload.type === "checkpoint" ? "checkpoints" : "tasks", payload.payload, recorder);
      data = { ...payload, payload: payload.type === "checkpoint" ? asCheckpoint(payload.payload) : payload.payload };
    } else if (mode === "updates" && payload?.[INTERRUPTED] !== undefined) {
      if (ns.length === 0) {
        this.paused = true;
        outlet.emit("interrupt", encode(payload[INTERRUPTED]));
        return;
      }
      this.paused ||= payload[INTERRUPTED].length === 0 && "inside"; // a breakpoint in a subgraph, which the graph itself does not tell of
    }
    if (mode === "tasks" && this.abilities.subgraphs) this.unfinished?.task(ns, payload); // else its ids are not those of the tasks
    if (mode === "messages") this.unfinished?.show(this.abilities.places ? speakerOf(payload) : ns, payload);
    this.#emit(ns, mode, data);
    if (mode === "updates") this.unfinished?.update(ns, payload);
  }

  #emit(ns, mode, data) {
    const { invocation, outlet } = this;
    if (!invocation.streamModes.has(mode)) return;
    const speaks = mode === "messages" || mode === "tools";
    // Without subgraphs, the framework still shows what their nodes say and write.
    if (ns.length > 0 && !invocation.streamSubgraphs && !speaks && mode !== "custom") return;
    const place = speaks && !this.abilities.places ? ns.slice(0, -1) : ns; // the last is the node that speaks
    outlet.emit([mode, ...(invocation.streamSubgraphs ? place : [])].join("|"), encode(data));
  }

  /** Brings what was shown and never saved into the graph's state, through its own reducers. */
  async #applyPending(graph, recorder, framework, pending) {
    const { invocation } = this;
    if (pending.length === 0) return;
    if (pending.some(({ asNode }) => asNode === INPUT)) await this.#forgetTaken(graph, recorder);
    await this.#keepResults(graph, recorder, framework);
    recorder.checkpointer.extraMetadata = invocation.stateMetadata;
    for (const update of pending) {
      if (!(await this.#try(graph, framework, update))) {
        console.warn(`run ${invocation.runID}: an update that was shown as that of node "${update.asNode}" is lost, because the graph takes it in no way`);
      }
    }
    await recorder.finish();
  }

  /** New input ends what a graph waits for. */
  async #keepReturned(graph, recorder, framework) {
    const { invocation } = this;
    const newest = recorder.checkpointer.newest("");
    if (invocation.command || invocation.input === null || newest === undefined || newest.metadata.run_id === invocation.runID) return;
    if (invocation.stateConfig().configurable.checkpoint_id === undefined) await this.#keepResults(graph, recorder, framework);
  }

  /**
   * Brings into the state what tasks have returned beside one that waits or was stopped. The
   * framework drops it with new input, and with a change of the state.
   */
  async #keepResults(graph, recorder, framework) {
    const newest = recorder.checkpointer.newest("");
    const returned = newest === undefined ? new Set() : returnedAt(newest);
    if (returned.size === 0) return;
    recorder.checkpointer.extraMetadata = this.invocation.stateMetadata;
    try {
      await keepResults(graph, framework, this.invocation.stateConfig(), returned, (taskID) => recorder.checkpointer.writesOf("", taskID));
    } catch (error) {
      this.#forgetReturned(recorder, error);
    }
    await recorder.finish();
  }

  /**
   * Forgets what tasks have returned at the newest checkpoint. If the graph itself refuses it, no
   * change of the state and no input would come past it.
   */
  #forgetReturned(recorder, error) {
    const newest = recorder.checkpointer.newest("");
    console.warn(`run ${this.invocation.runID}: what tasks have returned at checkpoint ${newest.id} is left out, because the graph does not take it: ${error.message}`);
    for (const taskID of returnedAt(newest)) recorder.checkpointer.forget("", taskID);
  }

  /**
   * An input that an interrupted run had spread over the state, but made no checkpoint of, would be
   * applied with the update that brings it again.
   */
  async #forgetTaken(graph, recorder) {
    if (recorder.checkpointer.newest("") === undefined) return;
    try {
      const { tasks } = await graph.getState(this.invocation.stateConfig());
      for (const { name, id } of tasks) if (name === START) recorder.checkpointer.forget("", id);
    } catch (error) {
      this.#forgetReturned(recorder, error);
    }
  }

  /**
   * A node that is no longer there, or refuses the update, leaves it to the graph to say whose it
   * is; else it counts as input.
   */
  async #try(graph, framework, update) {
    // An update as input would only wait for the node that takes it, and the run's own input would
    // replace it.
    const input = START in graph.nodes ? START : INPUT;
    for (const asNode of new Set([update.asNode === INPUT ? input : update.asNode, undefined, input])) {
      try {
        await updateState(graph, framework, this.invocation.stateConfig(), [[{ ...update, asNode }]]);
        return true;
      } catch (error) {
        console.info(`run ${this.invocation.runID}: update as "${asNode}": ${error.message}`);
      }
    }
    return false;
  }

  async #update(original, framework) {
    const { graph, recorder } = this.#attach(original, framework);
    await this.#applyPending(graph, recorder, framework, this.invocation.pending);
    recorder.checkpointer.extraMetadata = this.invocation.stateMetadata;
    try {
      await this.#change(graph, recorder, framework);
    } finally {
      await recorder.finish();
    }
  }

  /**
   * Changes the state, and with it what tasks have returned. If the graph does not take both, the
   * state is changed alone.
   */
  async #change(graph, recorder, framework) {
    const change = () => updateState(graph, framework, this.invocation.stateConfig(), this.invocation.supersteps);
    const newest = recorder.checkpointer.newest("");
    try {
      await change();
    } catch (error) {
      const isUnchanged = newest !== undefined && newest === recorder.checkpointer.newest("");
      if (!isUnchanged || returnedAt(newest).size === 0) throw error;
      this.#forgetReturned(recorder, error);
      await change();
    }
  }
}

/** The variables with which the framework is told to trace. */
const TRACING = ["LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING_V2", "LANGSMITH_TRACING", "LANGCHAIN_TRACING"];

/**
 * The tracer of a run whose client says where it is traced. Without one the framework makes its
 * own.
 */
async function tracersOf(framework, wanted) {
  if (wanted === undefined || !TRACING.some((name) => process.env[name] === "true")) return [];
  const { LangChainTracer } = await framework.tracers();
  return [new LangChainTracer(defined({ projectName: wanted.project_name ?? undefined, exampleId: wanted.example_id ?? undefined }))];
}

async function updateState(graph, framework, config, supersteps) {
  await changeState(graph, config, supersteps.map((updates) =>
    updates.map(({ values, command, asNode }) => ({ values: command ? commandOf(framework, command) : values, asNode }))));
}

/**
 * Returns an input with the messages of inputs before it that no run has answered. A function of
 * the functional API keeps only what it returns, so its next input is the one place for them.
 */
function withEarlierMessages(given, earlier) {
  if (earlier.length === 0 || !Array.isArray(given.messages)) return given;
  return { ...given, messages: [...earlier.map(({ values }) => values?.messages), given.messages].flatMap((messages) => (Array.isArray(messages) ? messages : [])) };
}

/**
 * Releases before 0.2.23 have no commands. They only go on, to which an answer is all that can be
 * said.
 */
function commandOf({ graphs: { Command, Send } }, { update, resume, goto }) {
  if (Command === undefined) {
    if (update === undefined && goto === undefined) return null;
    throw new CommandError("the repository's release of the framework has no commands: its graphs can only be resumed");
  }
  const targets = goto?.map((target) => (typeof target === "string" ? target : new Send(target.node, target.input)));
  return new Command(defined({ update, resume, goto: targets }));
}

/** The tasks that have returned at a checkpoint. */
function returnedAt({ writes }) {
  return new Set([...writes.values()].filter(({ taskID, index }) => taskID !== NO_TASK && index >= 0).map(({ taskID }) => taskID));
}

/**
 * The tasks that show a message, from the outermost. A release that names only the graph of the
 * last one still says them in the message's metadata.
 */
function speakerOf([, { langgraph_checkpoint_ns, checkpoint_ns }]) {
  return (langgraph_checkpoint_ns ?? checkpoint_ns ?? "").split("|");
}

/** A checkpoint for clients: without what the framework keeps in its configuration for itself. */
function asCheckpoint({ config, parentConfig, tasks, ...payload }) {
  return {
    ...payload, config: publicConfig(config), parent_config: publicConfig(parentConfig), checkpoint: placeIn(config), parent_checkpoint: placeIn(parentConfig),
    tasks: (tasks ?? []).map(asTask),
  };
}

function publicConfig(config) {
  if (!config) return null;
  const { callbacks, configurable, ...rest } = config;
  return { ...rest, configurable: Object.fromEntries(Object.entries(configurable ?? {}).filter(([key]) => !key.startsWith("__"))) };
}

/** An option that is there but undefined would hide what the graph was made with. */
function defined(options) {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
