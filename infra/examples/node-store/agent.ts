import { AIMessage } from "@langchain/core/messages";
import { END, type LangGraphRunnableConfig, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

/** Keeps what begins with "remember", and otherwise says what it knows of the user. */
async function answer({ messages }: typeof MessagesAnnotation.State, { store, configurable }: LangGraphRunnableConfig) {
  if (!store) throw new Error("there is no store");
  const namespace = ["memories", configurable?.user_id ?? "anyone"];
  const text = messages.at(-1)?.text ?? "";
  const fact = /^remember:?\s+(.*)/i.exec(text)?.[1];
  if (fact) {
    await store.put(namespace, `${Date.now()}-${messages.length}`, { fact });
    return { messages: [new AIMessage("I shall.")] };
  }
  const known = (await store.search(namespace, { limit: 10 })).map((item) => item.value.fact as string).sort();
  return { messages: [new AIMessage(known.length > 0 ? `I know: ${known.join("; ")}.` : "I know nothing yet.")] };
}

export const graph = new StateGraph(MessagesAnnotation)
  .addNode("answer", answer)
  .addEdge(START, "answer")
  .addEdge("answer", END)
  .compile();
