import { tool } from "@langchain/core/tools";
import { FakeListChatModel } from "@langchain/core/utils/testing";
import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

const look = tool(({ city }) => `sunny in ${city}`, { name: "look", description: "The weather.", schema: { type: "object", properties: { city: { type: "string" } } } });

const speaking = (name) => async (_state, config) => {
  config.writer?.(`${name} `);
  await look.invoke({ city: name }, config);
  return { messages: [await new FakeListChatModel({ responses: [`of ${name}`] }).invoke("a question", config)] };
};

const within = new StateGraph(MessagesAnnotation).addNode("talk", speaking("within")).addEdge(START, "talk").compile();

/**
 * A node, a graph that is a node, and a graph that a node's code calls write, use a tool and speak,
 * in this order.
 */
export const graph = new StateGraph(MessagesAnnotation)
  .addNode("talk", speaking("outside"))
  .addNode("inner", within)
  .addNode("call", async (_state, config) => ({ messages: (await within.invoke({ messages: [] }, config)).messages }))
  .addEdge(START, "talk")
  .addEdge("talk", "inner")
  .addEdge("inner", "call")
  .compile();
