// Draws the pages of hook-threads.cjs with Svelte. An application compiles its pages and the hook
// when it is built: so does this. Needs a document.
const { readFileSync } = require("node:fs");
const { createRequire } = require("node:module");
const { dirname, join } = require("node:path");
const modules = createRequire(process.env.SDK_MODULES);
const { build } = modules("esbuild");
const { compile, compileModule } = modules("svelte/compiler");
const installed = join(dirname(process.env.SDK_MODULES), "node_modules");

for (const name of ["Comment", "Element", "HTMLElement", "HTMLMediaElement", "Node", "Text"]) globalThis[name] = window[name];
globalThis.navigator ??= window.navigator; // newer releases of Node have it

const svelte = {
  name: "svelte",
  setup({ onLoad }) {
    onLoad({ filter: /\.svelte(\.js)?$/ }, ({ path: filename }) => {
      const compiles = filename.endsWith(".js") ? compileModule : compile;
      return { contents: compiles(readFileSync(filename, "utf8"), { filename, generate: "client" }).js.code };
    });
  },
};

const built = (async () => {
  const entry = { contents: 'export { default as Page } from "./page.svelte"; export { mount, unmount } from "svelte";', resolveDir: __dirname };
  const { outputFiles } = await build({ stdin: entry, bundle: true, format: "cjs", write: false, nodePaths: [installed], plugins: [svelte] });
  const page = { exports: {} };
  new Function("module", "exports", outputFiles[0].text)(page, page.exports);
  return page.exports;
})();

/**
 * draw shows a page in an element, calls drawn with the hook whenever the page has been drawn, and
 * returns how to close the page.
 */
function draw(element, props) {
  const page = built.then(({ Page, mount, unmount }) => {
    const mounted = mount(Page, { target: element, props });
    return () => unmount(mounted);
  });
  return async () => { (await page)(); };
}

module.exports = { draw };
