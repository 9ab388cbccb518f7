import { Annotation, END, Send, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
  subjects: Annotation<string[]>,
  jokes: Annotation<string[]>({ reducer: (all, more) => all.concat(more), default: () => [] }),
  best: Annotation<string>,
});

/** One of these runs for each subject. */
function joke({ subject }: { subject: string }) {
  return { jokes: [`Why did the ${subject} cross the road?`] };
}

export const graph = new StateGraph(State)
  .addNode("joke", joke)
  .addNode("choose", ({ jokes }) => ({ best: jokes.reduce((a, b) => (b.length > a.length ? b : a)) }))
  .addConditionalEdges(START, ({ subjects }) => subjects.map((subject) => new Send("joke", { subject })), ["joke"])
  .addEdge("joke", "choose")
  .addEdge("choose", END)
  .compile();
