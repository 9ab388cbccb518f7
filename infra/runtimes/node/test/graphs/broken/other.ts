import { Annotation, StateGraph } from "@langchain/langgraph";

export const other = { graph: "not one" };
export const dangling = new StateGraph(Annotation.Root({})).addEdge("__start__", "nowhere" as any);
export const failing = () => { throw new Error("no key"); };
