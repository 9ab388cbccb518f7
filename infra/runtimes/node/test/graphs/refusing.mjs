import { Annotation, START, StateGraph } from "@langchain/langgraph";

const add = (all, more) => {
  if (more.includes("refused")) throw new RangeError("the reducer refuses it");
  return all.concat(more);
};

/**
 * The channel takes no "refused", neither as input nor from a node, which returns it for the input
 * "bad".
 */
export const graph = new StateGraph(Annotation.Root({ log: Annotation({ reducer: add, default: () => [] }), last: Annotation() }))
  .addNode("echo", ({ last }) => ({ log: [last === "bad" ? "refused" : `echo ${last}`] }))
  .addEdge(START, "echo")
  .compile();
