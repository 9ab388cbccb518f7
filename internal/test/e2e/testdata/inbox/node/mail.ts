import { AIMessage } from "@langchain/core/messages";
import { END, interrupt, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

type Values = typeof MessagesAnnotation.State;

/** Writes a mail to the person that the last message names. */
function draft({ messages }: Values) {
  return { messages: [new AIMessage(`A mail to ${messages.at(-1)!.content}`)] };
}

/** Asks a person before the mail is sent, in the form that Agent Chat shows. */
function review({ messages }: Values) {
  const [answer] = interrupt<unknown, { type: string }[]>([{
    action_request: { action: "send_mail", args: { mail: messages.at(-1)!.content } },
    config: { allow_accept: true, allow_edit: false, allow_respond: false, allow_ignore: false },
    description: "Send it?",
  }]);
  return { messages: [new AIMessage(`The answer was ${answer.type}`)] };
}

export const graph = new StateGraph(MessagesAnnotation)
  .addNode("draft", draft)
  .addNode("review", review)
  .addEdge(START, "draft")
  .addEdge("draft", "review")
  .addEdge("review", END)
  .compile();
