// Graphs that all releases of the framework from 0.2.0 on know, with a model that says its words
// one after the other.
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, AIMessageChunk } from "@langchain/core/messages";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import { RunnableLambda } from "@langchain/core/runnables";
import * as framework from "@langchain/langgraph";

const { Annotation, END, messagesStateReducer, NodeInterrupt, Send, START, StateGraph } = framework;

/**
 * "slow" in the last message makes it go on until it is stopped, and with "bare" its handlers are
 * told only the text of a chunk, as by early packages of models.
 */
class Model extends BaseChatModel {
  _llmType() {
    return "words";
  }

  async *_streamResponseChunks(messages, options, manager) {
    const asked = messages.at(-1).content;
    for (let i = 0; i < (asked.includes("slow") ? 100_000 : 2); i++) {
      const chunk = new ChatGenerationChunk({ text: `word${i} `, message: new AIMessageChunk({ content: `word${i} ` }) });
      yield chunk;
      await manager?.handleLLMNewToken(chunk.text, undefined, undefined, undefined, undefined, asked.includes("bare") ? undefined : { chunk });
      if (asked.includes("slow")) await sleep(20, undefined, { signal: options.signal });
    }
  }

  async _generate(messages, options, manager) {
    let text = "";
    for await (const chunk of this._streamResponseChunks(messages, options, manager)) text += chunk.text;
    return { generations: [{ text, message: new AIMessage(text) }] };
  }
}

const model = new Model({});
const messages = Annotation({ reducer: messagesStateReducer, default: () => [] });
const log = Annotation({ reducer: (a, b) => a.concat(b), default: () => [] });
const State = Annotation.Root({ messages, log });
const Config = Annotation.Root({ model: Annotation });
const note = (config, line) => config.configurable?.journal && appendFileSync(config.configurable.journal, `${line}\n`);
const talk = async (state, config) => ({ messages: [await model.invoke(state.messages, config)], log: [config.configurable.model ?? "no model"] });

/**
 * As the prebuilt agents of these releases have it: what runs within the node has the node's name.
 */
const named = new RunnableLambda({ func: talk }).withConfig({ runName: "talk" });
export const agent = new StateGraph(State, Config).addNode("talk", named).addEdge(START, "talk").addEdge("talk", END).compile();

const plan = async (state, config) => ({ log: [(await model.invoke(state.messages, { ...config, ls_structured_output_format: { schema: {} } })).content] });
export const planner = new StateGraph(State).addNode("plan", plan).addNode("talk", talk).addEdge(START, "plan").addEdge("plan", "talk").compile();

export const outer = new StateGraph(State).addNode("inner", agent).addNode("end", () => ({ log: ["end"] })).addEdge(START, "inner").addEdge("inner", "end").compile();

const step = (name) => async (_state, config) => {
  note(config, name);
  if (config.configurable?.fail === name) throw new TypeError(`${name} fails`);
  return { log: [name] };
};
export const steps = new StateGraph(State)
  .addNode("one", step("one")).addNode("two", step("two")).addNode("three", step("three"))
  .addEdge(START, "one").addEdge("one", "two").addEdge("two", "three").addEdge("three", END)
  .compile();

export const asking = new StateGraph(State)
  .addNode("prepare", () => ({ log: ["prepared"] }))
  .addNode("ask", ({ log }) => {
    if (!log.includes("told")) throw new NodeInterrupt("what?");
    return { log: ["asked"] };
  })
  .addEdge(START, "prepare").addEdge("prepare", "ask")
  .compile();

/** Asks with the function that later ones of these releases have. */
export const answering = new StateGraph(State)
  .addNode("ask", () => ({ log: [framework.interrupt?.("what?") ?? "no answer"] }))
  .addEdge(START, "ask")
  .compile();

const greet = () => ({ messages: [new AIMessage("Hello!")] });
const late = async (state, config) => {
  await sleep(200); // the other node has finished
  return talk(state, config);
};
export const parallel = new StateGraph(State).addNode("greet", greet).addNode("talk", late).addEdge(START, "greet").addEdge(START, "talk").compile();

export const spread = new StateGraph(State)
  .addNode("begin", () => ({}))
  .addNode("work", ({ subject }) => ({ log: [subject] }))
  .addNode("collect", ({ log }) => ({ log: [`all ${log.length}`] }))
  .addEdge(START, "begin")
  .addConditionalEdges("begin", ({ log }) => log.map((subject) => new Send("work", { subject: `${subject}!` })), ["work"])
  .addEdge("work", "collect")
  .compile();
