import { Annotation, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ n: Annotation() });

// All kinds of values that JSON has no form for.
const odd = () => {
  const circle = { name: "circle" };
  circle.self = circle;
  return { n: { set: new Set([1]), map: new Map([["a", 1]]), bytes: new Uint8Array([104, 105]), error: new RangeError("far"), circle: "", big: 12 } };
};

export const graph = new StateGraph(State).addNode("odd", odd).addEdge(START, "odd").compile();

// Values that are nothing at all in JSON, by the name that the input has.
const nothing = { function: () => 1, symbol: Symbol("nothing"), undefined };

export const gaps = new StateGraph(State).addNode("gap", ({ n }) => ({ n: nothing[n] })).addEdge(START, "gap").compile();
