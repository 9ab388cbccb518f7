import { Annotation, type LangGraphRunnableConfig, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ found: Annotation<unknown> });

async function node(_state: unknown, { store }: LangGraphRunnableConfig) {
  const ns = ["users", "ann"];
  await store!.put(ns, "k", { a: 1 });
  await store!.put(ns, "other", { b: 2 });
  const item = await store!.get(ns, "k");
  const found: any = {
    value: item?.value, dated: item?.createdAt instanceof Date, absent: await store!.get(ns, "absent"),
    searched: (await store!.search(["users"])).map((other) => other.key), namespaces: await (store as any).store.listNamespaces({ prefix: ["users"] }),
  };
  await store!.delete(ns, "k");
  return { found: { ...found, gone: await store!.get(ns, "k") } };
}

export const graph = new StateGraph(State).addNode("node", node).addEdge(START, "node").compile();
