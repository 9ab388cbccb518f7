// Writes which packages are installed below some directories, as a CycloneDX document:
// `node sbom.mjs directory...`. It looks at what is there, because only npm can be asked, and only
// for what npm has installed.

import { readdir, readFile } from "node:fs/promises";
import path from "node:path";

const components = new Map();

/** Notes the packages of a directory named node_modules, and of those within it. */
async function packages(directory) {
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const at = path.join(directory, entry.name);
    if (!entry.isDirectory()) continue; // links lead to what is elsewhere below the same directories
    if (entry.name.startsWith("@")) {
      await packages(at);
      continue;
    }
    if (!entry.name.startsWith(".")) await note(at);
    await search(at);
  }
}

/** Looks for directories named node_modules. */
async function search(directory) {
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    if (!entry.isDirectory()) continue;
    const at = path.join(directory, entry.name);
    await (entry.name === "node_modules" ? packages(at) : search(at));
  }
}

async function note(directory) {
  const { name, version, license } = await readManifest(directory);
  if (typeof name !== "string" || typeof version !== "string") return;
  const purl = `pkg:npm/${name.replace("@", "%40")}@${encodeURIComponent(version)}`;
  const [group, short] = name.startsWith("@") ? name.split("/") : [undefined, name];
  components.set(purl, {
    type: "library", "bom-ref": purl, ...(group && { group }), name: short, version, purl,
    ...(typeof license === "string" && { licenses: [{ license: { name: license } }] }),
  });
}

async function readManifest(directory) {
  try {
    return JSON.parse(await readFile(path.join(directory, "package.json"), "utf8")) ?? {};
  } catch {
    return {}; // a directory of another kind, as for scripts
  }
}

for (const directory of process.argv.slice(2)) await search(directory);
const sorted = [...components.keys()].sort().map((purl) => components.get(purl));
console.log(JSON.stringify({ bomFormat: "CycloneDX", specVersion: "1.6", version: 1, components: sorted }, null, 1));
