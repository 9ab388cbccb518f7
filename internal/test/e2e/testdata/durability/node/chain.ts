/**
 * A graph whose state has a reducer that only the graph knows. internal/test/e2e/durability_test.go
 * says what is wanted of it.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
  x: Annotation<string>,
  log: Annotation<string[]>({ reducer: (before, after) => [...before, ...after], default: () => [] }),
});

async function b(_: typeof State.State, config: RunnableConfig) {
  await new Promise((resolve) => setTimeout(resolve, config.configurable?.hold_ms ?? 0));
  return { log: ["b"] };
}

export const graph = new StateGraph(State)
  .addNode("a", ({ x }) => ({ log: [`a:${x}`] }))
  .addNode("b", b)
  .addNode("c", () => ({ log: ["c"] }))
  .addEdge(START, "a").addEdge("a", "b").addEdge("b", "c").addEdge("c", END)
  .compile();
