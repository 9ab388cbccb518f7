// Opens a page that shows a component of the agent's own user interface with the SDK's React hook.
// Arguments: the agent's URL, the key.
const assert = require("node:assert/strict");
process.env.NODE_ENV = "production"; // the page is built as it is served
const modules = require("node:module").createRequire(process.env.SDK_MODULES); // the release of the SDK that the test names
const { JSDOM } = modules("jsdom");
const { window } = new JSDOM("", { url: "http://page.test/", runScripts: "outside-only" });
Object.assign(globalThis, { window, document: window.document });
const { createElement } = modules("react");
const { createRoot } = modules("react-dom/client");
const { useStream } = modules("@langchain/langgraph-sdk/react");
const { LoadExternalComponent, uiMessageReducer } = modules("@langchain/langgraph-sdk/react-ui");
const { apiKey, apiUrl, tell, until } = require("./story.cjs");

/**
 * Does what a browser does with the script of a component, because JSDOM runs no scripts in the
 * shadow of an element. Pages load scripts without the key.
 */
async function run(script) {
  const answer = await fetch(script.src);
  assert.equal(answer.status, 200);
  window.eval(await answer.text());
  window.eval(script.getAttribute("onload"));
}

async function shown() {
  let hook;
  createRoot(document.body.appendChild(document.createElement("main"))).render(createElement(() => {
    hook = useStream({
      apiUrl, apiKey, assistantId: "agent", onCustomEvent: (event, { mutate }) => mutate((values) => ({ ...values, ui: uiMessageReducer(values.ui ?? [], event) })),
    });
    return (hook.values.ui ?? []).map((message) => createElement(LoadExternalComponent, { key: message.id, stream: hook, message }));
  }));
  const submit = await until(() => hook?.submit);
  submit({ messages: [{ type: "human", content: "how is the weather?" }] });
  const inShadow = (tag) => until(() => [...document.querySelectorAll("main > div")].map((host) => host.shadowRoot?.querySelector(tag)).find(Boolean));
  await run(await inShadow("script"));
  const button = await inShadow("button");
  assert.equal(button.textContent, "Lund");
  await until(() => !hook.isLoading);
  button.click();
  await until(() => button.className === "weather open");
  assert.equal(button.textContent, "Lund: 21 °C. It is warm.");
  const style = button.getRootNode().querySelector("link");
  const css = await fetch(style.href);
  assert.deepEqual([css.status, (await css.text()).includes("teal")], [200, true]);
}

tell(shown);
