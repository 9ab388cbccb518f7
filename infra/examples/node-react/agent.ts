import { AIMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { tool } from "@langchain/core/tools";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { z } from "zod";
import { ScriptedModel } from "./model.js";

const degrees: Record<string, number> = { sf: 15, nyc: 21, oslo: 4 };

const weather = tool(({ city }) => {
  const found = degrees[city.toLowerCase()];
  return found === undefined ? `nobody knows a city called ${city}.` : `it is ${found} degrees in ${city}.`;
}, {
  name: "weather",
  description: "What the weather is like in a city.",
  schema: z.object({ city: z.string() }),
});

const model = new ScriptedModel().bindTools();

async function callModel({ messages }: typeof MessagesAnnotation.State, config: RunnableConfig) {
  return { messages: [await model.invoke(messages, { ...config, delay: config.configurable?.token_delay_ms })] };
}

function next({ messages }: typeof MessagesAnnotation.State) {
  return (messages.at(-1) as AIMessage).tool_calls?.length ? "tools" : END;
}

export const graph = new StateGraph(MessagesAnnotation)
  .addNode("model", callModel)
  .addNode("tools", new ToolNode([weather]))
  .addEdge(START, "model")
  .addConditionalEdges("model", next, ["tools", END])
  .addEdge("tools", "model")
  .compile();
