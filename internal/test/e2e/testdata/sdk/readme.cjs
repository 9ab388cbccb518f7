// Runs a program that the README shows. Arguments: the agent's URL, the key, the transport, the
// program's file.
const { readFileSync } = require("node:fs");
const { client } = require("./threads-v3.cjs");
const { tell } = require("./story.cjs");

const AsyncFunction = (async () => {}).constructor;
const program = new AsyncFunction("client", readFileSync(process.argv[5], "utf8"));

tell(function readme() { return program(client); });
