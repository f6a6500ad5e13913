// Opens a page with sampled stacks in headless Chromium with the network cut; prints what the frame shows, as JSON.
//
//   node stacks_check.mjs PAGE.html [--shot FILE.png]
import { launch, opened } from "./browser.mjs";

const [file, , shot] = process.argv.slice(2);
const browser = await launch();
const { page, requests, errors } = await opened(browser, file, { width: 1200, height: 900 });
const stacks = page.frames().find((frame) => frame !== page.mainFrame());
await stacks.waitForFunction(() => /Samples/.test(document.body.innerText), null, { timeout: 30000 });
const text = await stacks.evaluate(() => document.body.innerText);
const stages = await stacks.evaluate(() => [...document.querySelectorAll("#choice option")].map((it) => it.value));
await stacks.selectOption("#choice", { index: stages.length - 1 });
const other = await stacks.evaluate(() => document.body.innerText);
const injected = await stacks.evaluate(() => document.querySelectorAll("img[src=x], img[onerror]").length);
if (shot) await page.screenshot({ path: shot });
console.log(JSON.stringify({ requests, errors, text, other, stages, injected }));
await browser.close();
