#!/usr/bin/env node
// Hosts the graphs that framework.json names: `node main.mjs [--config framework.json] [--check]`.
// Read src/server.mjs first (the contract), then src/run.mjs (what an invocation does).

import { parseArgs } from "node:util";
import { loadApplication } from "./src/app.mjs";
import { loadAuth } from "./src/auth.mjs";
import { readConfig } from "./src/config.mjs";
import { describeAll } from "./src/describe.mjs";
import { loadEmbeddings } from "./src/embeddings.mjs";
import { UserError } from "./src/errors.mjs";
import { loadGraphs } from "./src/load.mjs";
import { installLogger } from "./src/logger.mjs";
import { installLoopback } from "./src/loopback.mjs";
import { serve } from "./src/server.mjs";
import { loadComponents } from "./src/ui.mjs";

async function main() {
  const config = await readConfig(readArguments());
  process.chdir(config.directory);
  installLogger();
  installLoopback(process.env);
  const graphs = await loadGraphs(config);
  const own = { auth: await loadAuth(config), app: await loadApplication(config), embeddings: await loadEmbeddings(config), components: await loadComponents(config) };
  if (config.check) {
    process.stdout.write(`${JSON.stringify(await describeAll(graphs, { strict: true }))}\n`);
    process.exit(0); // whatever the graphs' modules have left running
  }
  keepAlive();
  await serve(graphs, own, process.env);
}

function readArguments() {
  try {
    return parseArgs({ options: { config: { type: "string" }, check: { type: "boolean", default: false } } }).values;
  } catch (error) {
    throw new UserError(`${error.message}; usage: main.mjs [--config framework.json] [--check]`);
  }
}

/** What a graph leaves unhandled, rejections too, ends none of the runs beside it. */
function keepAlive() {
  process.on("uncaughtException", (error) => console.error("ERROR: uncaught exception:", error));
}

main().catch((error) => {
  console.error(error instanceof UserError ? error.message : error);
  process.exit(1);
});
