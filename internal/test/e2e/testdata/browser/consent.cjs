// Is an application and its user: asks for a token, goes to the provider in a browser, decides
// there, and waits for what comes of it.
// Arguments: the server's address, a key, the user, what the user decides ("Allow" or "Deny"), a
// file for a picture of the last page.
const { audit, client, tell } = require("./story.cjs");

const [base, key, user, decision, picture] = process.argv.slice(2);
const call = client(base, key);

tell(async (browser) => {
  const asked = await call("POST", "/v2/auth/authenticate", { provider: "calendar", scopes: ["read"], user_id: user });
  const waited = call("GET", `/v2/auth/wait/${asked.auth_id}?timeout=60`);
  const page = await browser.newPage();
  const complaints = [];
  // The provider's page has no icon; ours asks for none.
  const counts = (message) => ["error", "warning"].includes(message.type()) && !message.location().url.endsWith("/favicon.ico");
  page.on("console", (message) => counts(message) && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(asked.url);
  const asks = await page.locator("h1").innerText();
  // Presses a button, and returns the answer of the address to which it leads, when the browser
  // shows it.
  const press = async (name, leads) => {
    const [answer] = await Promise.all([
      page.waitForResponse((response) => response.url().startsWith(base + leads)),
      page.waitForURL((url) => url.href.startsWith(base + leads)),
      page.getByRole("button", { name }).click(),
    ]);
    return answer;
  };
  const findings = [], overflow = [];
  // look looks at a page in the light and in the dark, and on a narrow screen.
  const look = async (name) => {
    for (const colorScheme of ["dark", "light"]) {
      await page.emulateMedia({ colorScheme });
      findings.push(...await audit(page, `${name} ${colorScheme}`));
    }
    await page.setViewportSize({ width: 320, height: 600 });
    overflow.push(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth));
    await page.setViewportSize({ width: 1280, height: 800 });
  };
  let answer, question;
  if (decision === "Allow") {
    await press(decision, "/v2/auth/callback/");
    question = await page.locator("main").innerText();
    await look("question");
    if (picture) await page.screenshot({ path: picture.replace(/\.png$/, ".question.png") });
    answer = await press("Connect", "/v2/auth/setup/");
  } else {
    answer = await press(decision, "/v2/auth/callback/");
  }
  const shown = {
    asks,
    question,
    status: answer.status(),
    address: page.url(),
    title: await page.title(),
    text: await page.locator("main").innerText(),
    html: await page.content(),
    // The style applies only if the policy names it rightly, and a script that is written into the
    // page must not run.
    border: await page.locator("main").evaluate((main) => getComputedStyle(main).borderTopStyle),
    ran: await page.evaluate(() => {
      const script = document.createElement("script");
      script.textContent = "window.ran = true";
      document.body.append(script);
      return window.ran === true;
    }),
    complaints: [...complaints], // before the back button, which leads to a refusal
  };
  await look("end");
  if (picture) await page.screenshot({ path: picture });
  await page.goBack();
  const back = decision === "Allow" ? await page.locator("h1").innerText() : "";
  return { ...shown, findings, overflow, back, waited: await waited };
});
