// The parts that the stories share: the questions for the weather agent, and the way to tell a
// story. Arguments of each script: the agent's URL, the key.
const { Client } = require("@langchain/langgraph-sdk");

const [apiUrl, apiKey] = process.argv.slice(2);
const client = new Client({ apiUrl, apiKey });

module.exports = {
  apiUrl,
  apiKey,
  client,
  slow: { configurable: { token_delay_ms: 1000, node_delay_ms: 20, answer_words: 10_000 } },
  fast: { configurable: { token_delay_ms: 1, node_delay_ms: 1 } },
  brisk: { configurable: { token_delay_ms: 20, node_delay_ms: 20 } },
  thinking: { configurable: { node_delay_ms: 60_000 } },
  answered: ["human", "ai", "tool", "ai"],
  ask: (city) => ({ messages: [{ role: "user", content: `what's the weather in ${city}?` }] }),
  types: (values) => (values?.messages ?? []).map((message) => message.type),
  create: async (options) => (await client.threads.create(options)).thread_id,

  async collect(stream) {
    const parts = [];
    for await (const part of stream) parts.push(part);
    return parts;
  },

  /** until waits for a condition, and returns what it has seen. */
  async until(look) {
    for (;;) {
      const seen = await look();
      if (seen) return seen;
      await new Promise((resume) => setTimeout(resume, 20));
    }
  },

  /**
   * tell tells stories beside each other. A story that waits for ever fails: Node ends when nothing
   * is left that could happen.
   */
  async tell(...stories) {
    const told = new Set();
    process.exitCode = 1;
    process.once("beforeExit", () => { console.log(`waiting for ever: ${stories.map(({ name }) => name).filter((name) => !told.has(name)).join()}`); });
    const results = await Promise.allSettled(stories.map((story) => story().finally(() => told.add(story.name))));
    results.forEach((result, i) => console.log(`${stories[i].name}: ${result.status === "fulfilled" ? "ok" : result.reason.stack}`));
    process.exit(results.every((result) => result.status === "fulfilled") ? 0 : 1);
  },
};
