import { useStream } from "@langchain/react";
import { useState } from "react";
import { Message } from "./message.jsx";
import { Questions } from "./questions.jsx";

/**
 * Chat is a conversation with an agent. The address names its thread, so that a reload shows it
 * again, also in the middle of an answer.
 */
export function Chat({ agent }) {
  const [threadId, setThreadId] = useState(() => location.hash.slice(1) || undefined);
  const stream = useStream({
    apiUrl: agent.apiUrl,
    apiKey: agent.apiKey,
    assistantId: "agent",
    threadId,
    onThreadId: (id) => {
      location.hash = id;
      setThreadId(id);
    },
  });
  const config = { configurable: agent.configurable };

  // A message that comes while the agent answers interrupts it: the words that were shown stay.
  const say = (content, options) => stream.submit({ messages: [{ type: "human", content }] }, { config, multitaskStrategy: "interrupt", ...options });

  // The conversation goes on from before the message, on a branch of its own. The hook's own
  // metadata names the last checkpoint that a message was seen at.
  const edit = async (message, text) => {
    const history = await stream.client.threads.getHistory(threadId, { limit: 1000 });
    const first = history.findLast(({ values }) => values.messages?.some(({ id }) => id === message.id));
    await say(text, { forkFrom: first.parent_checkpoint.checkpoint_id });
  };

  const send = (event) => {
    event.preventDefault();
    void say(new FormData(event.target).get("text"));
    event.target.reset();
  };

  return (
    <>
      <section aria-label="Conversation" aria-busy={stream.isLoading}>
        {stream.messages.map((message) => (
          <Message key={message.id} message={message} onEdit={(text) => edit(message, text)} />
        ))}
      </section>
      {stream.interrupts.length > 0 && <Questions interrupts={stream.interrupts} onAnswer={(answers) => stream.respondAll(answers, { config })} />}
      {stream.error != null && <p role="alert">{String(stream.error.message ?? stream.error)}</p>}
      <form onSubmit={send}>
        <label>Message <input name="text" autoComplete="off" required /></label>
        <button>Send</button>
        <button type="button" disabled={!stream.isLoading} onClick={() => void stream.stop()}>Stop</button>
      </form>
    </>
  );
}
