import { Annotation, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ text: Annotation<string> });

export const graph = new StateGraph(State)
  .addNode("a", (_state, { configurable }) => ({ text: configurable?.["accept-language"] ?? "no header" }))
  .addEdge(START, "a")
  .compile();
