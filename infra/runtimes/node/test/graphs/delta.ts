import * as framework from "@langchain/langgraph";

const { Annotation, interrupt, START, StateGraph } = framework;
const { DeltaChannel } = framework as any; // not in older versions

const State = Annotation.Root({
  plain: Annotation<number>,
  items: DeltaChannel
    ? () => new DeltaChannel((all: string[], writes: string[][]) => all.concat(...writes), { initialValueFactory: () => [] })
    : Annotation<string[]>({ reducer: (all, more) => all.concat(more), default: () => [] }),
} as any);

/** The checkpoints of such a channel do not hold its value. */
export const graph = new StateGraph(State as any)
  .addNode("one", () => ({ items: ["one"] }))
  .addNode("other", () => ({ plain: 1 }))
  .addNode("ask", () => ({ items: [interrupt("next?")] }))
  .addEdge(START, "one")
  .addEdge("one", "other")
  .addEdge("other", "ask")
  .compile();
