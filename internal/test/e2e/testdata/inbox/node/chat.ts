import { FakeListChatModel } from "@langchain/core/utils/testing";
import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

type Values = typeof MessagesAnnotation.State;

/** Answers the last question: for ever if it is about everything. */
async function answer({ messages }: Values) {
  const question = messages.at(-1)!.content as string;
  const endless = question.includes("everything");
  const text = `You ask: ${question} ${"word ".repeat(endless ? 100_000 : 20)}.`;
  return { messages: [await new FakeListChatModel({ responses: [text], sleep: endless ? 10 : 1 }).invoke(messages)] };
}

export const graph = new StateGraph(MessagesAnnotation).addNode("answer", answer).addEdge(START, "answer").compile();
