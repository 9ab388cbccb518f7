import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { interrupt, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

/** Says whether messages that come out of a checkpoint are of the classes that this file knows. */
function check({ messages }: { messages: BaseMessage[] }) {
  const answer = interrupt("go on?");
  return { messages: [new AIMessage(`${answer}: ${messages.every((message) => message.constructor === AIMessage)}`)] };
}

export const graph = new StateGraph(MessagesAnnotation)
  .addNode("speak", () => ({ messages: [new AIMessage("hello")] }))
  .addNode("check", check)
  .addEdge(START, "speak")
  .addEdge("speak", "check")
  .compile();
