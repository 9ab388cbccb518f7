// Bundles the components of a user interface that a configuration file names, with the framework's
// own bundler: `node bundle.mjs path/to/framework.json`. The packages of the repository must be
// installed. src/ui.mjs serves what this program writes.

import { readFile, rm } from "node:fs/promises";
import path from "node:path";
import { build } from "@langchain/langgraph-ui";

const file = path.resolve(process.argv[2]);
const cwd = path.dirname(file);
const output = path.join(cwd, ".slipway-ui");
const { ui, ui_config: config } = JSON.parse(await readFile(file, "utf8"));

await rm(output, { recursive: true, force: true }); // it is the repository's own, or an earlier build's
try {
  await build({ cwd, defs: ui, config: config ?? {}, output });
} catch (error) {
  console.error(`ui: the components cannot be bundled: ${error.message}`);
  process.exitCode = 1;
}
