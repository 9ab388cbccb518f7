import { Client } from "@langchain/langgraph-sdk";
import { Hono } from "hono";
import { logger } from "hono/logger";
import { streamSSE } from "hono/streaming";

type Variables = { word: string };

export const app = new Hono<{ Variables: Variables }>();

app.use(logger());
app.use("/hello/*", async (c, next) => {
  c.set("word", "started");
  await next();
});

app.post("/hello/:name", async (c) =>
  c.json({ name: c.req.param("name"), word: c.get("word"), key: c.req.header("x-api-key") ?? null, body: await c.req.json() }));

app.get("/counts", (c) =>
  streamSSE(c, async (stream) => {
    for (let i = 0; i < 3; i++) {
      await stream.writeSSE({ data: String(i) });
      await stream.sleep(10);
    }
  }));

app.post("/echo/", (c) => new Response(c.req.raw.body));

app.get("/assistants/:name/graph", (c) => c.json({ mine: c.req.param("name") }));

app.post("/calls", async (c) => {
  const assistants = await new Client().assistants.search();
  return c.json({ assistants: assistants.map((assistant) => assistant.graph_id) });
});
