// The framework's own suite for checkpointers. It is run by vitest, in a project that has the
// framework.
import { deltaChannelHistoryTests, validate } from "@langchain/langgraph-checkpoint-validation";
import * as checkpoints from "@langchain/langgraph-checkpoint";
import { pathToFileURL } from "node:url";

const { checkpointerOf } = await import(pathToFileURL(`${process.env.RUNTIME_DIR}/src/checkpointer.mjs`).href);
const Checkpointer = checkpointerOf({ checkpoints, abilities: { ends: true } });

const initializer = { checkpointerName: "Checkpointer", createCheckpointer: () => new Checkpointer() };
validate(initializer);
deltaChannelHistoryTests(initializer);
