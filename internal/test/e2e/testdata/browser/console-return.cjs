// Is a person who goes through long lists and conversations and comes back, in two tabs.
// Arguments: the server's address, an API key, and a deployment's id.
const { client, tell } = require("./story.cjs");

const [base, key, deployment] = process.argv.slice(2);
const call = client(base, key);
const arabic = "ما هو الطقس اليوم!";

tell(async (browser) => {
  const page = await browser.newPage();
  const seen = {};
  const go = (at) => page.goto(`${base}/console/#/deployments/${deployment}${at}`);
  const focused = () => page.evaluate(() => document.activeElement.localName);
  await page.goto((await call("POST", "/console/codes")).url);
  await page.getByRole("heading", { name: "Deployments" }).waitFor();

  // The back button leads to the same place in the list that the person had chosen.
  const many = Array.from({ length: 70 }, (_, i) => ({ type: i % 2 ? "ai" : "human", content: `message ${i}`, id: `m${i}` }));
  many.splice(69, 0, { type: "ai", content: "", id: "call", tool_calls: [{ name: "long".repeat(99), args: {}, id: "call" }] }, { type: "tool", content: "", tool_call_id: "call", id: "result" });
  for (let i = 0; i < 60; i++) await call("POST", `/d/${deployment}/threads`, {});
  const { thread_id: thread } = await call("POST", `/d/${deployment}/threads`, {});
  await call("POST", `/d/${deployment}/threads/${thread}/state`, { values: { messages: many } });
  await go("/threads");
  await page.getByLabel("Status").selectOption("idle");
  await page.getByRole("button", { name: "show more" }).click();
  const rows = page.locator("tbody tr");
  await rows.nth(60).waitFor();
  await rows.nth(55).scrollIntoViewIfNeeded();
  const place = () => page.evaluate(() => scrollY);
  const left = await place();
  const link = rows.nth(55).getByRole("link");
  await link.focus();
  await link.press("Enter");
  await page.getByText("Write the first message.").waitFor();
  seen.title = await page.title();
  seen.focused = await focused();
  await page.goBack();
  await rows.nth(60).waitFor();
  await page.waitForFunction((y) => scrollY === y, left);
  seen.chosen = await page.getByLabel("Status").inputValue();
  // A read that is one too many for the limits is repeated.
  await page.route("**/v2/deployments?limit=100", (route) => route.fulfill({ status: 429, headers: { "Retry-After": "1" }, json: { detail: "Planted limit." } }), { times: 1 });
  await page.goto(`${base}/console/#/`);
  await rows.first().waitFor();
  seen.rows = await rows.count();
  await page.getByRole("searchbox").fill("nothing has this name");
  await page.getByText("No deployment has such a name.").waitFor();
  await page.getByRole("link", { name: "Keys" }).click();
  await page.getByRole("heading", { name: "API keys" }).waitFor();
  await page.goBack();
  await page.getByText("No deployment has such a name.").waitFor();
  seen.sought = await page.getByRole("searchbox").inputValue();

  // A long conversation begins at its end, and stays there while it grows, unless the person has
  // scrolled up. What the person says is shown.
  await go(`/threads/${thread}`);
  const last = (text) => page.locator(".message").filter({ hasText: text }).last();
  const atEnd = () => page.waitForFunction(() => {
    const box = document.querySelector(".talk");
    return box.scrollTop > 0 && box.scrollHeight - box.scrollTop - box.clientHeight < 2;
  });
  await last("message 69").waitFor();
  await atEnd();
  await page.locator(".talk").evaluate((box) => { box.scrollTop = 0; });
  const box = page.getByLabel("Message", { exact: true });
  await box.fill(arabic);
  await box.press("Enter");
  await last(arabic).waitFor();
  await last("ok").waitFor();
  await atEnd();
  seen.wide = await page.locator(".talk").evaluate((talk) => talk.scrollWidth - talk.clientWidth);
  // A text in a script that is written from the right ends at the left.
  seen.endsLeft = await last(arabic).locator(".text").evaluate((text) => {
    const range = document.createRange(), node = [...text.childNodes].find((part) => part.data?.endsWith("!"));
    range.setStart(node, node.length - 1);
    range.setEnd(node, node.length);
    return range.getBoundingClientRect().right < text.getBoundingClientRect().left + text.clientWidth / 2;
  });

  // Without a server, the page says so in its own words, and once.
  await page.route(`**/d/${deployment}/**`, (route) => route.abort());
  await box.fill("nobody hears this");
  await box.press("Enter");
  await page.locator(".trouble").first().waitFor();
  await page.waitForFunction(() => document.querySelector(".composer textarea").value !== "");
  seen.troubles = await page.locator(".trouble").allInnerTexts();
  await page.unroute(`**/d/${deployment}/**`);

  // A sign-out in one tab signs out the other tab, and a sign-in signs in the other tab, too.
  const other = await browser.newPage();
  await other.goto(`${base}/console/#/keys`);
  await other.getByRole("button", { name: "Sign out" }).click();
  await page.getByText("slipway open").waitFor();
  await other.goto((await call("POST", "/console/codes")).url);
  await last("ok").waitFor();

  // A session that ends says so.
  await browser.clearCookies();
  await go("");
  await page.getByText("The session has ended. Sign in again.").waitFor();
  return seen;
});
