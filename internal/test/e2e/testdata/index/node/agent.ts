import { Annotation, START, StateGraph } from "@langchain/langgraph";

const FACTS = ["the cat sleeps all day", "a dog barks at night", "fish are silent"];
const State = Annotation.Root({ question: Annotation<string>, found: Annotation<any[]> });

async function node({ question }: typeof State.State, { store }: any) {
  const at = ["facts", "ann"];
  await Promise.all(FACTS.map((text, n) => store.put(at, String(n), { text })));
  const failure = await store.put(at, "unreadable", { text: "unreadable" }).then(() => "", (error: Error) => error.message);
  const found = await store.search(["facts"], { query: question, limit: 10 });
  return { found: [...found.map(({ key, score }: any) => [key, score > 0]), found[0].key, failure] };
}

export const graph = new StateGraph(State).addNode("a", node).addEdge(START, "a").compile();
