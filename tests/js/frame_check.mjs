// Opens a page with a framed timeline in headless Chromium with the network cut; prints what the frame shows, as JSON.
//
//   node frame_check.mjs PAGE.html [--shot FILE.png]
import { launch, opened } from "./browser.mjs";

const [file, , shot] = process.argv.slice(2);
const browser = await launch();
const { page, requests, errors } = await opened(browser, file, { width: 1440, height: 900 });
const holder = page.locator("iframe.cz-timeline");
await holder.scrollIntoViewIfNeeded();
const frame = await (await holder.elementHandle()).contentFrame();
await frame.waitForSelector(".czt[data-spans]", { timeout: 30000 });
await frame.waitForSelector(".czt-table", { timeout: 30000 });
const seen = await frame.evaluate(() => ({
  spans: Number(document.querySelector(".czt").dataset.spans), text: document.body.innerText,
  elements: [...new Set([...document.querySelectorAll(".czt *")].map((one) => one.localName))].sort(),
  tall: document.documentElement.scrollHeight, view: document.documentElement.clientHeight,
}));
if (shot) await page.screenshot({ path: shot, fullPage: true });
console.log(JSON.stringify({ ...seen, requests, errors, title: await page.title() }));
await browser.close();
