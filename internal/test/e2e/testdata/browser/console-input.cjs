// Is a person who starts runs with an input: by the fields that the graph's schema makes, and by
// JSON.
// Arguments: the server's address, an API key, the id of a deployment whose graph has a schema, and
// a directory for pictures or "".
const { audit, client, tell } = require("./story.cjs");
const path = require("node:path");

const [base, key, deployment, pictures] = process.argv.slice(2);
const call = client(base, key);
const agent = `/d/${deployment}`;

tell(async (browser) => {
  const page = await browser.newPage();
  const seen = { findings: [], complaints: [] };
  page.on("console", (m) => ["error", "warning"].includes(m.type()) && seen.complaints.push(m.text()));
  page.on("pageerror", (error) => seen.complaints.push(String(error)));
  await page.goto((await call("POST", "/console/codes")).url);
  await page.getByRole("heading", { name: "Deployments" }).waitFor();
  const { thread_id: thread } = await call("POST", `${agent}/threads`, {});
  const runs = () => call("GET", `${agent}/threads/${thread}/runs`);
  await page.goto(`${base}/console/#/deployments/${deployment}/threads/${thread}`);
  await page.getByText("Run with an input").click();
  const form = page.getByRole("form", { name: "Run with an input" });
  const whole = form.getByLabel("Input, as JSON");
  await whole.waitFor();
  seen.defaults = JSON.parse(await whole.inputValue());

  // Each kind of member has its field. What the fields hold is shown as JSON.
  await form.getByLabel("Subject").fill("rain");
  await form.getByLabel("tone").selectOption("long");
  await form.getByLabel("words").fill("12");
  await form.getByLabel("draft").check();
  const place = form.getByRole("group", { name: "Place" });
  await place.getByLabel("city").fill("Oslo");
  await place.getByLabel("height").fill("2.5");
  await form.getByLabel("messages").fill('[{"role": "user", "content": "write"}]');
  await form.getByLabel("draft").focus();
  seen.filled = JSON.parse(await whole.inputValue());
  seen.hint = await form.getByLabel("Subject").evaluate((e) => e.labels[0].innerText);
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    seen.findings.push(...await audit(page, `input, ${colorScheme}`));
  }
  if (pictures) await page.screenshot({ path: path.join(pictures, "input.png"), fullPage: true });
  await form.getByRole("button", { name: "Run" }).click();
  await page.locator(".message.ai").waitFor();
  seen.sent = (await runs())[0].kwargs.input;

  // Input that is written as JSON fills the fields, and an emptied field takes its member away.
  await whole.fill('{"subject": "snow", "tone": "short", "place": {"city": "Rome"}, "beside": [1]}');
  await form.getByLabel("words").focus();
  seen.fields = [await form.getByLabel("Subject").inputValue(), await form.getByLabel("tone").inputValue(), await place.getByLabel("city").inputValue(), await form.getByLabel("words").inputValue()];
  await form.getByLabel("Subject").fill("");
  await form.getByLabel("tone").selectOption("not set");
  await form.getByLabel("words").focus();
  seen.emptied = JSON.parse(await whole.inputValue());

  // A text that is no JSON, or no object, is not sent.
  const before = (await runs()).length;
  const invalid = async (box, text) => {
    await box.fill(text);
    await form.getByRole("button", { name: "Run" }).click();
    return box.evaluate((e) => e.validationMessage);
  };
  seen.invalid = [await invalid(form.getByLabel("messages"), "[{"), await invalid(whole, "[]"), await invalid(whole, "{")];
  await whole.fill('{"messages": [{"role": "user", "content": "by JSON"}]}');
  await form.getByRole("button", { name: "Run" }).click();
  await page.locator(".message.human").getByText("by JSON").waitFor();
  const after = await runs();
  seen.more = after.length - before;
  seen.byJSON = after[0].kwargs.input;

  // In a narrow window.
  await page.setViewportSize({ width: 390, height: 800 });
  seen.findings.push(...await audit(page, "input, narrow"));
  seen.overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  return seen;
});
