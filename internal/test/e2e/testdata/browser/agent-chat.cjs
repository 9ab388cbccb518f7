// Is a person in the application Agent Chat: talks to a graph, stops an answer, opens the thread
// again from the history, edits what they have said, has an answer written again, and gives each
// answer to a graph that asks first: Agent Chat has the components of Agent Inbox for this.
// Arguments: the page's address, the agent's URL, and an API key.
const { client, tell } = require("./story.cjs");

const [pageURL, agent, key] = process.argv.slice(2);
const api = client(agent, key);

tell(async (browser) => {
  const complaints = [];
  const seen = { complaints };

  /** opened is a page that is connected to a graph. */
  async function opened(graph) {
    const page = await browser.newPage();
    // The built application names a file of its sources, which it does not have.
    page.on("console", (m) => m.type() === "error" && !m.text().includes("/src/styles.css") && complaints.push(m.text()));
    page.on("pageerror", (error) => complaints.push(String(error)));
    await page.goto(pageURL);
    await page.getByLabel("Deployment URL").fill(agent);
    await page.getByLabel("Assistant / Graph ID").fill(graph);
    await page.getByLabel("API Key").fill(key);
    await page.getByRole("button", { name: "Continue" }).click();
    return page;
  }
  const say = async (page, text) => {
    await page.getByPlaceholder("Type your message...").fill(text);
    await page.getByRole("button", { name: "Send", exact: true }).click();
  };
  const threadOf = (page) => new URL(page.url()).searchParams.get("threadId");
  /**
   * ended returns the types, contents and ids of the thread's messages when its runs have ended.
   */
  const ended = async (page) => {
    await page.getByRole("button", { name: "Send", exact: true }).waitFor();
    while ((await api("GET", `/threads/${threadOf(page)}`)).status === "busy") await page.waitForTimeout(50);
    const { values } = await api("GET", `/threads/${threadOf(page)}/state`);
    return values.messages.map(({ type, content, id }) => [type, content, id]);
  };
  /** settled returns them when the thread ends with a text and the page shows all of them. */
  const settled = async (page, last) => {
    for (;;) {
      const messages = await ended(page);
      const text = await page.locator("body").textContent();
      if (messages.at(-1)[1].startsWith(last) && messages.every(([, content]) => text.includes(content.trim()))) return messages;
      await page.waitForTimeout(50);
    }
  };
  /** command uses a button that a message shows when the pointer is there. */
  const command = async (page, beginning, button) => {
    const message = page.locator(".group", { hasText: beginning });
    await message.hover();
    await message.getByRole("button", { name: button, exact: true }).click();
  };

  const page = await opened("chat");
  await say(page, "tell me everything");
  const answer = page.getByText("You ask: tell me everything");
  await answer.waitFor();
  while ((await answer.textContent()).split(" ").length < 12) await page.waitForTimeout(20);
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  seen.stopped = await ended(page);
  seen.shown = await answer.textContent();
  seen.runs = (await api("GET", `/threads/${threadOf(page)}/runs`)).map(({ status }) => status);

  const thread = threadOf(page);
  await page.goto(`${pageURL}/?${new URLSearchParams({ apiUrl: agent, assistantId: "chat", chatHistoryOpen: "true" })}`);
  await page.getByRole("button", { name: "tell me everything" }).click();
  await page.waitForURL((url) => url.searchParams.get("threadId") === thread);
  await answer.waitFor();
  await say(page, "and Bern?");
  seen.talked = await settled(page, "You ask: and Bern?");
  await command(page, /^and Bern/, "Edit");
  await page.locator("textarea").first().fill("and Rome?");
  await page.getByRole("button", { name: "Submit", exact: true }).click();
  seen.edited = await settled(page, "You ask: and Rome?");
  await command(page, /^You ask: and Rome/, "Refresh");
  do seen.again = await settled(page, "You ask: and Rome?");
  while (seen.again.at(-1)[2] === seen.edited.at(-1)[2]);

  // "Mark as Resolved" has the graph ask again, which it does at the framework's own server, too.
  const asked = await opened("mail");
  await say(asked, "Ada");
  await asked.getByRole("button", { name: "Mark as Resolved" }).click();
  const runs = () => api("GET", `/threads/${threadOf(asked)}/runs`);
  while ((await runs()).filter(({ status }) => status === "success").length < 2) await asked.waitForTimeout(50);
  await ended(asked);
  seen.commands = (await runs()).map(({ kwargs }) => kwargs.command);
  await asked.getByRole("button", { name: "Accept" }).click();
  seen.answers = [await settled(asked, "The answer was")];
  for (const [name, answer] of Object.entries({
    Bob: (view) => view.getByRole("button", { name: "Ignore", exact: true }).click(),
    Cem: async (view) => {
      await view.getByPlaceholder("Your response here...").fill("Not now");
      await view.getByRole("button", { name: "Send Response" }).click();
    },
    Dan: async (view) => {
      await view.locator("textarea", { hasText: "A mail to Dan" }).fill("A mail to all");
      await view.getByRole("button", { name: "Submit", exact: true }).click();
    },
  })) {
    const view = await opened("mail");
    await say(view, name);
    await answer(view);
    seen.answers.push(await settled(view, "The answer was"));
  }
  return seen;
});
