// An agent that answers with a component of its user interface.
import { Annotation, type LangGraphRunnableConfig, MessagesAnnotation, StateGraph } from "@langchain/langgraph";
import { typedUi, uiMessageReducer } from "@langchain/langgraph-sdk/react-ui/server";
import type components from "./ui.js";

const State = Annotation.Root({ ...MessagesAnnotation.spec, ui: Annotation({ reducer: uiMessageReducer, default: () => [] }) });

async function report(_state: typeof State.State, config: LangGraphRunnableConfig) {
  const ui = typedUi<typeof components>(config);
  ui.push({ name: "weather", props: { city: "Lund", celsius: 21 } });
  return { messages: [{ type: "ai", content: "It is warm." }] };
}

export const graph = new StateGraph(State).addNode("report", report).addEdge("__start__", "report").compile();
