// Is a person who signs in to the console at the server's issuer, coming from a page of the
// console.
// Arguments: the server's address, and the text that ends the sign-in: of the page or of a refusal.
const { audit, tell } = require("./story.cjs");

const [base, end] = process.argv.slice(2);

tell(async (browser) => {
  const page = await browser.newPage();
  const seen = { complaints: [] };
  page.on("pageerror", (error) => seen.complaints.push(String(error)));
  page.on("console", (m) => ["error", "warning"].includes(m.type()) && seen.complaints.push(m.text()));

  // A link that this browser has not asked for signs nobody in.
  await page.goto(base + "/sign-in/callback?state=planted&code=planted");
  await page.getByRole("alert").waitFor();
  seen.planted = await page.getByRole("alert").innerText();

  // Who has to name a workspace and misspells it stays at the door.
  await page.goto(base + "/console/#/sign-in/refused/several");
  const name = page.getByLabel("Workspace");
  await name.fill("my team");
  await name.press("Enter");
  seen.refused = await name.evaluate((field) => field.validity.patternMismatch);
  await name.fill(" my-team.2 ");
  seen.taken = await name.evaluate((field) => field.validity.valid);
  seen.findings = [];
  for (const colorScheme of ["dark", "light"]) {
    await page.emulateMedia({ colorScheme });
    seen.findings.push(...await audit(page, colorScheme));
  }
  await page.setViewportSize({ width: 320, height: 600 });
  seen.overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  await page.setViewportSize({ width: 1280, height: 800 });

  await page.goto(base + "/console/#/members");
  await page.reload();
  const button = page.getByRole("button", { name: "Sign in with" });
  await button.waitFor();
  seen.button = await button.innerText();
  await button.click();
  await page.getByText(end).first().waitFor();
  seen.address = page.url().slice(base.length);
  seen.cookies = (await browser.cookies()).map((c) => `${c.name} ${c.sameSite} ${c.httpOnly}`);
  seen.inPage = await page.evaluate(() => document.cookie + JSON.stringify({ ...localStorage, ...sessionStorage }));
  if (seen.cookies.length === 0) return seen;
  await page.getByRole("button", { name: "Sign out" }).click();
  await button.waitFor();
  return seen;
});
