import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { Client } from "@langchain/langgraph-sdk";

const State = Annotation.Root({ user: Annotation<string[]>, permissions: Annotation<string[]>, owners: Annotation<string[]> });

export const graph = new StateGraph(State)
  .addNode("a", async (_state, { configurable = {} }) => {
    const user = configurable.langgraph_auth_user;
    const threads = await new Client().threads.search({ limit: 100 });
    return {
      user: [user.identity, user.role, configurable.langgraph_auth_user_id],
      permissions: configurable.langgraph_auth_permissions,
      owners: [...new Set(threads.map((thread) => String(thread.metadata?.owner ?? "nobody")))].sort(),
    };
  })
  .addEdge(START, "a")
  .compile();
