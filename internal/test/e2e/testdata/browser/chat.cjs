// Is a person in the example page of the newest hooks: talks to an agent, interrupts it, reloads
// the page in the middle of an answer, edits what they have said, and approves one of two tools.
// Arguments: the page's address, the agents' URLs (the weather's, and that of one that follows
// scripts), and an API key.
const { isDeepStrictEqual } = require("node:util");
const { client, tell } = require("./story.cjs");

const [pageURL, weather, scripted, key] = process.argv.slice(2);
const api = client(weather, key);
const updates = (...messages) => ({ event: "updates", data: { model: { messages } } });
const tools = ["delete", "send"];
const pauses = [
  updates({ type: "ai", id: "m1", content: "Two tools", tool_calls: tools.map((name) => ({ name, args: {}, id: `call-${name}`, type: "tool_call" })) }),
  { event: "interrupt", data: tools.map((tool) => ({ id: `q-${tool}`, value: { tool } })) },
];
const goesOn = [updates({ type: "ai", id: "m2", content: "Done" })];

tell(async (browser) => {
  const complaints = [];
  const seen = { complaints };

  /** opened is a page that is connected to an agent. */
  async function opened(apiUrl, configurable) {
    const page = await browser.newPage();
    page.on("console", (m) => ["error", "warning"].includes(m.type()) && complaints.push(m.text()));
    page.on("pageerror", (error) => complaints.push(String(error)));
    await page.goto(pageURL);
    await page.getByLabel("URL of the agent").fill(apiUrl);
    await page.getByLabel("API key").fill(key);
    await page.getByLabel("Configuration").fill(JSON.stringify(configurable));
    await page.getByRole("button", { name: "Connect" }).click();
    await page.getByLabel("Message").waitFor();
    return page;
  }
  const say = async (page, text) => {
    await page.getByLabel("Message").fill(text);
    await page.getByRole("button", { name: "Send" }).click();
  };
  const idle = (page) => page.locator('section[aria-busy="false"]').waitFor();
  const articles = (page) => page.getByRole("article").evaluateAll((all) => all.map((one) => [one.className, one.firstChild?.nodeType === 3 ? one.firstChild.data : ""]));
  /**
   * finished returns the articles when the page shows what its thread keeps: the hook hears that a
   * run has ended on another connection than the last words.
   */
  const finished = async (page) => {
    const thread = `/threads/${new URL(page.url()).hash.slice(1)}`;
    for (;;) {
      await idle(page);
      const { status } = await api("GET", thread);
      const { values } = await api("GET", `${thread}/state`);
      const shown = await articles(page);
      if (status === "idle" && isDeepStrictEqual(shown, values.messages.map(({ type, content }) => [type, content]))) return shown;
      await page.waitForTimeout(50);
    }
  };
  const answers = (page) => page.locator("article.ai").filter({ hasText: "I have looked it up" });
  /** writing returns when a part of an answer is shown, and what is. */
  const writing = async (page, n) => {
    await page.waitForFunction((at) => [...document.querySelectorAll("article.ai")].filter((a) => a.textContent.split(" ").length > 8).length > at, n);
    return answers(page).nth(n).textContent();
  };

  const page = await opened(weather, { token_delay_ms: 15, node_delay_ms: 10, answer_words: 300 });
  await say(page, "the weather in sf?");
  seen.shown = await writing(page, 0);
  await say(page, "and in nyc?"); // interrupts the answer
  await writing(page, 1);
  await page.reload(); // in the middle of the answer
  await writing(page, 1);
  seen.thread = new URL(page.url()).hash.slice(1);
  seen.talked = await finished(page);
  // Another thing is said in the place of the second question.
  await page.locator("article.human").nth(1).getByRole("button", { name: "Edit" }).click();
  await page.getByLabel("Edited message").fill("and in rome?");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Rome:").first().waitFor();
  await finished(page);
  await page.reload();
  seen.forked = await finished(page);

  const asked = await opened(scripted, { script: pauses });
  await say(asked, "go");
  await asked.getByRole("form", { name: "Questions" }).waitFor();
  await idle(asked);
  // The page is opened again, and the agent has another script for what follows the answers.
  await asked.evaluate((script) => {
    sessionStorage.setItem("agent", JSON.stringify({ ...JSON.parse(sessionStorage.getItem("agent")), configurable: { script } }));
  }, goesOn);
  await asked.reload();
  await asked.getByLabel('Approve {"tool":"send"}').check();
  await asked.getByRole("button", { name: "Answer" }).click();
  await asked.getByText("Done").waitFor();
  await asked.getByRole("form", { name: "Questions" }).waitFor({ state: "detached" });
  await idle(asked);
  seen.approved = new URL(asked.url()).hash.slice(1);
  return seen;
});
