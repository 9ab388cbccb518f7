import { Annotation, interrupt, START, StateGraph } from "@langchain/langgraph";

const Outer = Annotation.Root({ total: Annotation<number>, note: Annotation<string> });
const Inner = Annotation.Root({
  total: Annotation<number>,
  calls: Annotation<number>({ reducer: (a, b) => a + b, default: () => 0 }),
  note: Annotation<string>,
});

const counter = (checkpointer?: true) => new StateGraph(Inner)
  .addNode("count", () => ({ calls: 1 }))
  .addNode("tell", ({ calls }) => ({ total: calls }))
  .addEdge(START, "count")
  .addEdge("count", "tell")
  .compile({ checkpointer });

/** The inner graph keeps its state from run to run. */
export const lasting = new StateGraph(Outer).addNode("counter", counter(true)).addEdge(START, "counter").compile();

const asking = new StateGraph(Inner)
  .addNode("first", () => ({ calls: 1 }))
  .addNode("ask", () => ({ note: interrupt<string, string>("what?") }))
  .addEdge(START, "first")
  .addEdge("first", "ask")
  .compile();

/** The inner graph is called by a node's code. */
export const inner = new StateGraph(Outer)
  .addNode("caller", async ({ total }) => {
    const { calls, note } = await asking.invoke({ total });
    return { total: calls, note };
  })
  .addEdge(START, "caller")
  .compile();

/** The inner graph stops before its last node. */
export const breakpoint = new StateGraph(Outer)
  .addNode("stopping", new StateGraph(Inner)
    .addNode("first", () => ({ calls: 1 }))
    .addNode("last", ({ calls }) => ({ total: calls }))
    .addEdge(START, "first")
    .addEdge("first", "last")
    .compile({ interruptBefore: ["last"] }))
  .addEdge(START, "stopping")
  .compile();
