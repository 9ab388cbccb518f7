import { FakeListChatModel } from "@langchain/core/utils/testing";
import { MessagesAnnotation, START, StateGraph, StreamChannel, interrupt } from "@langchain/langgraph";

/** Pushes what it sees into a channel, and counts it in a promise. */
const seeing = () => {
  const [early, seen, inside] = [StreamChannel.remote("early"), StreamChannel.remote("seen"), StreamChannel.local()];
  let [resolve, reject, count] = [undefined, undefined, 0];
  const total = new Promise((...both) => ([resolve, reject] = both));
  total.catch(() => {});
  return {
    init() {
      queueMicrotask(() => early.push("at once"));
      return { early, seen, inside, total };
    },
    process({ method, params: { namespace, data } }) {
      if (data?.payload === "fail") throw new Error("a transformer fails");
      count += method === "updates" ? 1 : 0;
      const { event, delta, content } = data ?? {};
      if (["messages", "updates", "custom"].includes(method)) seen.push([method, namespace.length, method === "messages" ? { event, delta, content } : Object.keys(data)]);
      inside.push(method);
      return true;
    },
    async finalize() {
      await new Promise((resolve) => setTimeout(resolve, 10));
      seen.push("the end");
      resolve({ count });
    },
    fail(error) {
      seen.push(String(error));
      reject(error);
    },
  };
};

const native = () => ({ __native: true, init: () => ({ native: StreamChannel.remote("native") }), process: () => true });

const speak = async (_state, config) => {
  config.writer?.({ name: "own", payload: 1 });
  return { messages: [await new FakeListChatModel({ responses: ["one two"] }).invoke("a question", config)] };
};

const ask = ({ messages }, config) => {
  if (messages[0].content === "fail") config.writer?.("fail");
  return { messages: [{ role: "ai", content: interrupt("?") }] };
};

const inner = new StateGraph(MessagesAnnotation).addNode("speak", speak).addEdge(START, "speak").compile();
const builder = new StateGraph(MessagesAnnotation).addNode("inner", inner).addNode("ask", ask).addEdge(START, "inner").addEdge("inner", "ask");

export const graph = builder.compile({ transformers: [seeing, native] });
export const natively = builder.compile({ transformers: [native] });
