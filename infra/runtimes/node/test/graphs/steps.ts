import { appendFileSync } from "node:fs";
import { Annotation, MemorySaver, START, StateGraph } from "@langchain/langgraph";

export const State = Annotation.Root({
  log: Annotation<string[]>({ reducer: (all, more) => all.concat(more), default: () => [] }),
  set: Annotation<unknown>,
});

/**
 * Three nodes, each of which tells what it sees; with `configurable.journal` also a file, so that a
 * test knows what has been run.
 */
const step = (name: string) => (state: typeof State.State, config: any) => {
  if (config.configurable?.journal) appendFileSync(config.configurable.journal, `${name}\n`);
  if (config.configurable?.fail === name) throw new TypeError(`${name} fails`);
  return { log: [`${name}${config.context?.greeting ? ` ${config.context.greeting}` : ""}`] };
};

export const builder = new StateGraph(State)
  .addNode("one", step("one"))
  .addNode("two", step("two"))
  .addNode("three", step("three"))
  .addEdge(START, "one")
  .addEdge("one", "two")
  .addEdge("two", "three");

export const graph = builder.compile();
export const own = builder.compile({ checkpointer: new MemorySaver() });

export async function factory(config: any) {
  const name = config?.configurable?.node_name ?? "unnamed";
  return new StateGraph(State).addNode(name, step(name)).addEdge(START, name);
}

const heard: string[] = [];
/** Keeps what it is told of what it makes a graph for. */
export async function told(_config: any, { accessContext, user, store, executionRuntime }: any) {
  heard.push([accessContext, user?.identity, store?.constructor.name, executionRuntime?.context?.language, executionRuntime?.user?.identity].join(" "));
  return new StateGraph(State).addNode("tell", () => ({ log: heard.filter((line) => line.startsWith("threads.")) })).addEdge(START, "tell");
}
