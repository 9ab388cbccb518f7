// Is a person at a page that fails and then hangs. The story must tell of the page's error first.
const { tell } = require("./story.cjs");

tell(async (browser) => {
  const page = await browser.newPage();
  await page.evaluate(() => {
    setTimeout(() => {
      setTimeout(() => { for (;;); });
      throw new Error("planted fault");
    });
  });
  await page.getByText("never shown").waitFor({ timeout: 2000 });
});
