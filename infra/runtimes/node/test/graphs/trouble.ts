import { appendFileSync } from "node:fs";
import { Annotation, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ what: Annotation<string>, n: Annotation<number> });

async function node({ what }: { what: string }, config: any) {
  switch (what) {
    case "rejection":
      Promise.reject(new Error("nobody waits for this"));
      setTimeout(() => { throw new Error("nobody hears this"); }, 0);
      await new Promise((resolve) => setTimeout(resolve, 20));
      return { n: 1 };
    case "wait": // until the run is stopped
      config.writer?.("waiting");
      await new Promise((_resolve, reject) => config.signal.addEventListener("abort", () => {
        appendFileSync(config.configurable.journal, "stopped\n");
        reject(new Error("stopped"));
      }));
      return {};
    case "text":
      throw "a text"; // eslint-disable-line
    case "nothing":
      throw Object.create(null); // eslint-disable-line
    case "speechless":
      throw { toString() { throw new Error("no text"); } }; // eslint-disable-line
    case "odd":
      throw Object.assign(new Error(), { name: 7, message: { a: 1 } });
    case "finish":
      config.writer?.("begun");
      await new Promise((resolve) => setTimeout(resolve, 1500));
      return { n: 2 };
    default:
      return { n: 0 };
  }
}

export const graph = new StateGraph(State).addNode("node", node).addEdge(START, "node").compile();
