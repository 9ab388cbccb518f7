import { Annotation, StateGraph } from "@langchain/langgraph";

export const other = { graph: "not one" };
export const dangling = new StateGraph(Annotation.Root({})).addEdge("__start__", "nowhere" as any);
export const failing = () => { throw new Error("no key"); };

/** As graphs of releases before 0.2.20 are. */
export const early = { lc_namespace: ["langgraph", "pregel"], updateState() {} };
