import { Annotation, interrupt, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ log: Annotation({ reducer: (all, more) => all.concat(more), default: () => [] }) });
const Inner = Annotation.Root({ inner: Annotation({ reducer: (all, more) => all.concat(more), default: () => [] }), log: Annotation() });

const asking = new StateGraph(Inner)
  .addNode("prepare", () => ({ inner: ["prepared"] }))
  .addNode("ask", ({ inner }) => ({ log: [`inner: ${interrupt("inner?")} after ${inner}`] }))
  .addEdge(START, "prepare")
  .addEdge("prepare", "ask")
  .compile();

// Asks twice at a time, once in a subgraph, beside a node that does not ask.
export const builder = new StateGraph(State)
  .addNode("begin", () => ({ log: ["begin"] }))
  .addNode("ask", () => ({ log: [`outer: ${interrupt("first?")}, ${interrupt("second?")}`] }))
  .addNode("asking", asking)
  .addNode("beside", () => ({ log: ["beside"] }))
  .addNode("end", () => ({ log: ["end"] }))
  .addEdge(START, "begin")
  .addEdge("begin", "ask")
  .addEdge("begin", "asking")
  .addEdge("begin", "beside")
  .addEdge(["ask", "asking", "beside"], "end");
