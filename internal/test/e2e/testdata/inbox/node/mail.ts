import { AIMessage } from "@langchain/core/messages";
import { END, interrupt, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

type Values = typeof MessagesAnnotation.State;
type Answer = { type: "accept" | "ignore" } | { type: "response"; args: string } | { type: "edit"; args: { args: { mail: string } } };

/** Writes a mail to the person that the last message names. */
function draft({ messages }: Values) {
  return { messages: [new AIMessage(`A mail to ${messages.at(-1)!.content}`)] };
}

/** Asks a person before the mail is sent, in the form that Agent Chat shows. */
function review({ messages }: Values) {
  const [answer] = interrupt<unknown, Answer[]>([{
    action_request: { action: "send_mail", args: { mail: messages.at(-1)!.content } },
    config: { allow_accept: true, allow_edit: true, allow_respond: true, allow_ignore: true },
    description: "Send it?",
  }]);
  const said = answer.type === "edit" ? answer.args.args.mail : answer.type === "response" ? answer.args : "";
  return { messages: [new AIMessage(`The answer was ${answer.type} ${said}`.trim())] };
}

export const graph = new StateGraph(MessagesAnnotation)
  .addNode("draft", draft)
  .addNode("review", review)
  .addEdge(START, "draft")
  .addEdge("draft", "review")
  .addEdge("review", END)
  .compile();
