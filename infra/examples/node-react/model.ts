import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { BaseChatModel, type BaseChatModelCallOptions } from "@langchain/core/language_models/chat_models";
import { AIMessage, AIMessageChunk, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";

/**
 * A scripted model, so that the example runs without a network or a key: it looks a city up, and
 * then says what the tool said.
 */
export class ScriptedModel extends BaseChatModel<BaseChatModelCallOptions & { delay?: number }> {
  constructor() {
    super({});
  }

  _llmType(): string {
    return "scripted";
  }

  override bindTools() {
    return this;
  }

  async _generate(messages: BaseMessage[], options: this["ParsedCallOptions"]): Promise<ChatResult> {
    const message = new AIMessage(answer(messages));
    await new Promise((resolve) => setTimeout(resolve, (options.delay ?? 0) * message.text.split(" ").length));
    return { generations: [{ text: message.text, message }] };
  }

  /** Streams the answer word by word, as models do. */
  override async *_streamResponseChunks(messages: BaseMessage[], options: this["ParsedCallOptions"], run?: CallbackManagerForLLMRun) {
    const { content, tool_calls: calls } = answer(messages);
    const chunks = calls.length > 0
      ? calls.map((call, index) => new AIMessageChunk({
        content: "", tool_call_chunks: [{ index, name: call.name, id: call.id, args: JSON.stringify(call.args), type: "tool_call_chunk" }],
      }))
      : content.split(/(?<= )/).map((word) => new AIMessageChunk({ content: word }));
    for (const message of chunks) {
      options.signal?.throwIfAborted();
      await new Promise((resolve) => setTimeout(resolve, options.delay ?? 0));
      const chunk = new ChatGenerationChunk({ text: message.text, message });
      yield chunk;
      await run?.handleLLMNewToken(chunk.text, undefined, undefined, undefined, undefined, { chunk });
    }
  }
}

function answer(messages: BaseMessage[]) {
  const last = messages.at(-1);
  if (last?.getType() === "tool") return { content: `I have looked it up: ${last.text}`, tool_calls: [] };
  const city = /\bin ([\w ]+)/i.exec(last?.text ?? "")?.[1] ?? "nowhere";
  const id = `call_${messages.length}`;
  return { content: "", tool_calls: [{ name: "weather", args: { city }, id, type: "tool_call" as const }] };
}
