// Streams an answer and interrupts it with a second question. Arguments: the agent's URL, an API
// key. Needs the framework's own client package: npm install @langchain/langgraph-sdk
const { Client } = require("@langchain/langgraph-sdk");

const question = (text) => ({ messages: [{ role: "user", content: text }] });

async function main(apiUrl, apiKey) {
  const client = new Client({ apiUrl, apiKey });
  const { thread_id: threadID } = await client.threads.create();

  let second;
  const input = question("what is the weather in sf?");
  for await (const part of client.runs.stream(threadID, "agent", { input, streamMode: "messages-tuple" })) {
    if (part.event !== "messages") continue;
    const [message] = part.data;
    process.stdout.write(message.content);
    // The first words are shown: now the user asks something else.
    if (message.content && !second) {
      second = await client.runs.create(threadID, "agent", {
        input: question("and in nyc?"), multitaskStrategy: "interrupt",
      });
    }
  }
  console.log();

  // The thread keeps the words that were shown, and the second answer follows.
  const values = await client.runs.join(threadID, second.run_id);
  for (const message of values.messages) console.log(`${message.type.padStart(6)}: ${message.content}`);
}

main(...process.argv.slice(2));
