import { Command, END, interrupt, START, StateGraph } from "@langchain/langgraph";
import { z } from "zod";

const State = z.object({
  request: z.string(),
  draft: z.string().optional(),
  sent: z.string().optional(),
});

function write({ request }: z.infer<typeof State>) {
  return { draft: `Dear all, ${request}.` };
}

/** Asks a person, who may approve, reject, or send another text. */
function approve({ draft }: z.infer<typeof State>) {
  const decision = interrupt<{ question: string; draft?: string }, { approved: boolean; text?: string }>({ question: "Shall this be sent?", draft });
  if (!decision.approved) return new Command({ goto: END });
  return new Command({ goto: "send", update: { draft: decision.text ?? draft } });
}

function send({ draft }: z.infer<typeof State>) {
  return { sent: draft };
}

export const graph = new StateGraph(State)
  .addNode("write", write)
  .addNode("approve", approve, { ends: ["send", END] })
  .addNode("send", send)
  .addEdge(START, "write")
  .addEdge("write", "approve")
  .addEdge("send", END)
  .compile();
