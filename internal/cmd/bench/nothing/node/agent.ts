import { Annotation, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ n: Annotation<number> });

/** A graph that does nothing: what a run of it takes is what its server takes. */
export const graph = new StateGraph(State).addNode("nothing", async () => ({ n: 1 })).addEdge(START, "nothing").compile();
