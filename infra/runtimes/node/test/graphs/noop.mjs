import { Annotation, START, StateGraph } from "@langchain/langgraph";

export const builder = new StateGraph(Annotation.Root({ n: Annotation() })).addNode("noop", () => ({})).addEdge(START, "noop");
