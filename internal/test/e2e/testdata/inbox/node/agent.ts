import { Command, END, interrupt, START, StateGraph } from "@langchain/langgraph";
import { z } from "zod";

const State = z.object({
  to: z.string(),
  text: z.string().optional(),
  sent: z.string().optional(),
  ignored: z.boolean().optional(),
});
type Values = z.infer<typeof State>;
type Answer = { type: "accept" | "ignore" } | { type: "response"; args: string } | { type: "edit"; args: { args: Partial<Values> } };

/** Asks a person before a mail is sent, in the form that the Agent Inbox shows. */
function review({ to, text }: Values) {
  const [answer] = interrupt<unknown, Answer[]>([{
    action_request: { action: "send_mail", args: { to, text } },
    config: { allow_accept: true, allow_edit: true, allow_respond: true, allow_ignore: true },
    description: `A mail to ${to}`,
  }]);
  if (answer.type === "ignore") return new Command({ goto: END, update: { ignored: true } });
  if (answer.type === "response") return new Command({ goto: "review", update: { text: `${text}, ${answer.args}` } });
  return new Command({ goto: "send", update: answer.type === "edit" ? answer.args.args : {} });
}

export const graph = new StateGraph(State)
  .addNode("draft", ({ to }: Values) => ({ text: `Dear ${to}` }))
  .addNode("review", review, { ends: ["review", "send", END] })
  .addNode("send", ({ to, text }: Values) => ({ sent: `${to}: ${text}` }))
  .addEdge(START, "draft")
  .addEdge("draft", "review")
  .addEdge("send", END)
  .compile();
