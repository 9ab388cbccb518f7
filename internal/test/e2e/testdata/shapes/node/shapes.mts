// Graphs in the shapes that repositories have, with a model that records what it is given.
// internal/test/e2e/shapes_test.go says what is wanted of each.
import { setTimeout as sleep } from "node:timers/promises";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, AIMessageChunk, HumanMessage, SystemMessage } from "@langchain/core/messages";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import { tool } from "@langchain/core/tools";
import * as framework from "@langchain/langgraph";
import { Annotation, MessagesAnnotation, messagesStateReducer, START, StateGraph } from "@langchain/langgraph";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { z } from "zod";

const SLOW = 100_000;

/**
 * Answers in words. A question with "slow-ROLE" makes it go on for long, "fail-ROLE" fail after
 * some, "tool-ROLE" call a tool.
 */
class Recorder extends BaseChatModel {
  constructor(private role: string) {
    super({});
  }

  _llmType() {
    return "recorder";
  }

  bindTools() {
    return this;
  }

  async _generate(messages: any[], options: any, manager: any): Promise<any> {
    let message: any;
    for await (const chunk of this._streamResponseChunks(messages, options, manager)) message = message ? message.concat(chunk.message) : chunk.message;
    return { generations: [{ text: message.content, message: new AIMessage({ content: message.content, tool_calls: message.tool_calls }) }] };
  }

  async *_streamResponseChunks(messages: any[], _options: any, manager: any): AsyncGenerator<any> {
    const given = messages.map((m) => [m.getType?.() ?? m._getType(), m.content]);
    await fetch(process.env.RECORD!, { method: "POST", body: JSON.stringify({ role: this.role, given }) + "\n" });
    const asked = given.filter(([type]) => type === "human").at(-1)![1];
    const wants = (what: string) => new RegExp(`${what}-${this.role}\\b`).test(asked);
    if (wants("tool") && given.at(-1)![0] === "human") {
      const call = { name: "look", args: "{}", id: "call", index: 0, type: "tool_call_chunk" as const };
      yield new ChatGenerationChunk({ text: "", message: new AIMessageChunk({ content: "", tool_call_chunks: [call] }) });
      return;
    }
    for (let i = 0; i < (wants("slow") ? SLOW : 3); i++) {
      const text = `${this.role}${i} `;
      yield new ChatGenerationChunk({ text, message: new AIMessageChunk({ content: text }) });
      await manager?.handleLLMNewToken(text, undefined, undefined, undefined, undefined, { chunk: new ChatGenerationChunk({ text, message: new AIMessageChunk({ content: text }) }) });
      if (wants("slow")) await sleep(20);
    }
    if (wants("fail")) throw new Error(`${this.role} fails`);
  }
}

const say = async (role: string, messages: any[], config: any, options = {}) => new Recorder(role).invoke(messages, { ...config, ...options } as any);
const talk = async ({ messages }: any, config: any) => ({ messages: [await say("talk", messages, config)] });
const alone = (node: any = talk, name = "talk") => new StateGraph(MessagesAnnotation).addNode(name, node).addEdge(START, name as any);

export const compiled = alone().compile();
export const builder = alone();
export const factory = () => alone().compile();
export const bound = (config: any) => alone().compile().withConfig(config);
export const bound_async = async (config: any) => bound(config);

// Early releases have no functional API.
export const functional = framework.entrypoint?.("functional", async (inputs: any, config: any): Promise<any> => {
  const previous: any = framework.getPreviousState();
  const messages = messagesStateReducer(previous?.messages ?? [], inputs.messages);
  return { messages: messagesStateReducer(messages, [await say("talk", messages, config)]) };
});

export const same = alone(compiled, "inner").compile();
export const nested = alone(same, "outer").compile();
export const called = alone(async ({ messages }: any, config: any) => ({ messages: [(await compiled.invoke({ messages }, config)).messages.at(-1)] }), "call").compile();

const notes = Annotation<any[], any>({ reducer: messagesStateReducer, default: () => [] });
const Notes = Annotation.Root({ notes });
const WithNotes = Annotation.Root({ ...MessagesAnnotation.spec, notes });
const thinking = new StateGraph(Notes)
  .addNode("think", async ({ notes }: any, config: any) => ({ notes: [await say("think", notes, config)] }))
  .addEdge(START, "think")
  .compile();
export const other = new StateGraph(WithNotes)
  .addNode("brief", ({ messages }: any) => ({ notes: [new SystemMessage("Think."), new HumanMessage(`About: ${messages.at(-1).content}`)] }))
  .addNode("research", thinking)
  .addNode("talk", talk)
  .addEdge(START, "brief").addEdge("brief", "research").addEdge("research", "talk")
  .compile();

const WithPlan = Annotation.Root({ ...MessagesAnnotation.spec, plan: Annotation<any>, title: Annotation<any> });
const structured = { ls_structured_output_format: { kwargs: { method: "json_schema" }, schema: { title: "Plan", type: "object" } } };
export const planner = new StateGraph(WithPlan)
  .addNode("make_plan", async ({ messages }: any, config: any) => ({ plan: (await say("plan", messages, config, structured)).content }))
  .addNode("talk", talk)
  .addEdge(START, "make_plan").addEdge("make_plan", "talk")
  .compile();
export const parallel = new StateGraph(WithPlan)
  .addNode("greet", async () => ({ messages: [new AIMessage("Hello!")] }))
  .addNode("entitle", async ({ messages }: any, config: any) => ({ title: (await say("title", messages, config)).content }))
  .addNode("talk", async (state: any, config: any) => {
    await sleep(300); // the neighbours have finished
    return talk(state, config);
  })
  .addEdge(START, "greet").addEdge(START, "entitle").addEdge(START, "talk")
  .compile();

const Topic = Annotation.Root({ topic: Annotation<string>, answer: Annotation<any> });
export const topic = new StateGraph(Topic)
  .addNode("write", async ({ topic }: any, config: any) => ({ answer: (await say("talk", [new HumanMessage(topic)], config)).content }))
  .addEdge(START, "write")
  .compile();

const Replaced = Annotation.Root({ messages: Annotation<any[]> });
export const replaced = new StateGraph(Replaced)
  .addNode("replace", async ({ messages }: any, config: any) => ({ messages: [...messages, await say("talk", messages, config)] }))
  .addEdge(START, "replace")
  .compile();

const look = tool(async () => "It is there.", { name: "look", description: "Looks.", schema: z.object({}) });
export const prebuilt = () => createReactAgent({ llm: new Recorder("talk") as any, tools: [look] });
