// Draws the pages of hook-threads.cjs with React. Needs a document.
const { createRequire } = require("node:module");
const modules = createRequire(process.env.SDK_MODULES);
const { createElement, useEffect } = modules("react");
const { createRoot } = modules("react-dom/client");
const { useMessages, useStream } = modules("@langchain/react");

/** used is the hook, and what the first subgraph says by itself. */
function used(options) {
  const stream = useStream(options);
  return { ...stream, inner: useMessages(stream, [...stream.subgraphs.values()][0]) };
}

/**
 * draw shows a page in an element, calls drawn with the hook whenever the page has been drawn, and
 * returns how to close the page.
 */
function draw(element, { options, answer, drawn, use = used }) {
  const root = createRoot(element);
  root.render(createElement(() => {
    const stream = use(options);
    useEffect(() => { drawn(stream); });
    const said = stream.messages.map((message, i) => createElement("p", { key: message.id ?? i }, message.text));
    const asked = stream.interrupts.map(({ id, value }) => createElement("label", { key: id }, createElement("input", { type: "checkbox", name: id }), value.tool));
    return [...said, ...asked, createElement("button", { key: "", onClick: answer }, "Answer")];
  }));
  return () => { root.unmount(); };
}

module.exports = { draw, useStream };
