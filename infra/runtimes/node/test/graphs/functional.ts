import { appendFileSync } from "node:fs";
import { entrypoint, getPreviousState, interrupt, task } from "@langchain/langgraph";

const draft = task("draft", async ({ topic, journal }: { topic: string; journal: string }) => {
  appendFileSync(journal, "draft\n");
  return `about ${topic}`;
});

export const graph = entrypoint("functional", async (input: { topic: string; journal: string }) => {
  const before = getPreviousState<{ text: string }>();
  const text = await draft(input);
  const decision = interrupt({ text });
  return { text, decision, before: before?.text ?? null };
});
