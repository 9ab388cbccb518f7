import * as framework from "@langchain/langgraph";

const { Annotation, interrupt, START, StateGraph } = framework;
const { DeltaChannel } = framework as any; // not in older versions

const list = DeltaChannel
  ? () => new DeltaChannel((all: string[], writes: string[][]) => all.concat(...writes), { initialValueFactory: () => [] })
  : Annotation<string[]>({ reducer: (all, more) => all.concat(more), default: () => [] });
const State = Annotation.Root({ plain: Annotation<number>, items: list, marks: list } as any);

/** The checkpoints of such channels do not hold their values. */
export const graph = new StateGraph(State as any)
  .addNode("one", () => ({ items: ["one"] }))
  .addNode("other", () => ({ plain: 1, marks: ["other"] }))
  .addNode("ask", () => ({ items: [interrupt("next?")] }))
  .addEdge(START, "one")
  .addEdge("one", "other")
  .addEdge("other", "ask")
  .compile();
