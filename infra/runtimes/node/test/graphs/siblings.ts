import { appendFileSync } from "node:fs";
import { Annotation, Send, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
  subjects: Annotation<string[]>,
  done: Annotation<string[]>({ reducer: (all, more) => all.concat(more), default: () => [] }),
});

/** Writes down that it runs; the subject that the configuration names does not return. */
async function work({ subject }: { subject: string }, { configurable }: any) {
  appendFileSync(configurable.journal, `${subject}\n`);
  if (configurable.hang === subject) await new Promise(() => setInterval(() => {}, 1000));
  return { done: [subject] };
}

export const graph = new StateGraph(State)
  .addNode("work", work)
  .addNode("end", ({ done }) => ({ done: [`all ${done.length}`] }))
  .addConditionalEdges(START, ({ subjects }) => subjects.map((subject) => new Send("work", { subject })), ["work"])
  .addEdge("work", "end")
  .compile();
