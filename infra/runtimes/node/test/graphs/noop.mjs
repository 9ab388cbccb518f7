import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { Client } from "@langchain/langgraph-sdk";

export const builder = new StateGraph(Annotation.Root({ n: Annotation() })).addNode("noop", () => ({})).addEdge(START, "noop");

const see = (_state, { configurable, metadata, context }) => ({
  n: { configurable: Object.fromEntries(Object.entries(configurable).filter(([key]) => !key.startsWith("__"))), metadata, context },
});

/** Tells what a node sees beside the state. */
export const seeing = new StateGraph(Annotation.Root({ n: Annotation() })).addNode("see", see).addEdge(START, "see");

/** Names the tracers of the run. */
const nameTracers = (_, { callbacks }) => ({
  n: (callbacks?.handlers ?? []).filter(({ name }) => name === "langchain_tracer").map(({ projectName, exampleId }) => [projectName, exampleId]),
});
export const traced = new StateGraph(Annotation.Root({ n: Annotation() })).addNode("name", nameTracers).addEdge(START, "name");

const own = new Client();

/** Makes a thread at its own server. */
export const calling = new StateGraph(Annotation.Root({ n: Annotation() })).addNode("call", async () => ({ n: await own.threads.create() })).addEdge(START, "call");

// The client package's getLogger() throws at import where no server has put a logger here.
if (!globalThis[Symbol.for("langgraph.api.sdk-logger")]) throw new Error("Logger not available in current environment");
