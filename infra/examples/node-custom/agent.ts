import { Annotation, END, type LangGraphRunnableConfig, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
  files: Annotation<string[]>,
  done: Annotation<number>,
});

/** Tells how far it is while it works. */
async function convert({ files }: typeof State.State, config: LangGraphRunnableConfig) {
  for (const [i, file] of files.entries()) {
    config.writer?.({ converting: file, progress: i / files.length });
  }
  config.writer?.({ progress: 1 });
  return { done: files.length };
}

export const graph = new StateGraph(State)
  .addNode("convert", convert)
  .addEdge(START, "convert")
  .addEdge("convert", END)
  .compile();
