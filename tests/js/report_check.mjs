// Opens reports in one headless Chromium with the network cut and reports what a reader would see, as JSON: a list of
// views, each with the file that it is of.
//
//   node report_check.mjs REPORT.html… [--no-dark] [--shots FOLDER]
//
import path from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { launch } from "./browser.mjs";

const { positionals: files, values: options } = parseArgs({
  allowPositionals: true, options: { "no-dark": { type: "boolean" }, shots: { type: "string" } },
});
// A loaded machine is slow, not wrong: what draws nothing at all is still found.
const PATIENCE_MS = 300000;

const browser = await launch();

// The same page in the dark is a change of scheme while it is open; a phone opens it anew.
const found = [];
const desktop = [["desktop", "light"], ...(options["no-dark"] ? [] : [["dark", "dark"]])];
for (const file of files) {
  await look(file, { width: 1440, height: 900 }, desktop);
  await look(file, { width: 390, height: 844 }, [["phone", "light"]]);
}

async function look(file, viewport, views) {
  const address = pathToFileURL(path.resolve(file)).href;
  const context = await browser.newContext({ viewport, colorScheme: views[0][1], offline: true });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const requests = [], errors = [];
  page.on("request", (request) => {
    const url = request.url();
    if (url !== address && !url.startsWith("data:") && !url.startsWith("blob:")) requests.push(url);
  });
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) errors.push(message.text()); });
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.goto(address);
  const expected = Number(await page.getAttribute("body", "data-figures"));
  for (const [view, scheme] of views) {
    await page.emulateMedia({ colorScheme: scheme });
    if (expected) {
      await page.waitForFunction(
        (scheme) => document.body.dataset.drawn !== undefined && document.body.dataset.scheme === scheme,
        scheme, { timeout: PATIENCE_MS },
      );
    }
    found.push({ file, view, requests: [...requests], errors: [...errors], expected, ...(await page.evaluate(inspect)) });
    if (options.shots) await take(page, view, options.shots);
  }
  if (viewport.width < 700) {
    // As wide as the text of a printed A4 page: on paper nothing can be scrolled.
    await page.setViewportSize({ width: 673, height: 950 });
    await page.emulateMedia({ media: "print" });
    found.push({ file, view: "print", requests, errors, expected, ...(await page.evaluate(inspect)) });
  }
  await context.close();
}

async function take(page, view, shots) {
  await page.evaluate(() => scrollTo({ top: 0, behavior: "instant" }));
  await page.screenshot({ path: path.join(shots, `${view}-top.png`) });
  await page.screenshot({ path: path.join(shots, `${view}.png`), fullPage: true });
  const sections = await page.$$eval("h2", (headings) => headings.map((heading) => heading.id));
  for (const [number, id] of sections.entries()) {
    await page.evaluate((id) => document.getElementById(id).scrollIntoView({ behavior: "instant" }), id);
    await page.waitForTimeout(60);
    await page.screenshot({ path: path.join(shots, `${view}-${String(number + 1).padStart(2, "0")}-${id}.png`) });
  }
}

await browser.close();
console.log(JSON.stringify(found, null, 1));

// Runs in the page.
function inspect() {
  const figures = [...document.querySelectorAll(".plot")].map((plot) => {
    const box = plot.getBoundingClientRect();
    const drawing = plot.querySelector(".main-svg");
    const area = drawing?.getBoundingClientRect();
    // Marks of data: bars, lines and areas, heat map cells, points; axes and legends do not count.
    const drawn = plot.querySelectorAll(
      ".plot .points path, .scatterlayer path, .barlayer path, .heatmaplayer image, .annotation",
    ).length;
    const labels = [...plot.querySelectorAll(".main-svg text")].filter((text) => text.textContent.trim());
    const cut = labels
      .map((text) => [text, text.getBoundingClientRect()])
      .filter(([text, r]) => r.width && !text.closest(".barlayer") && (r.left < box.left - 1 || r.right > box.right + 1))
      .map(([text]) => text.textContent);
    return { id: plot.id, marks: drawn, width: area?.width ?? 0, height: area?.height ?? 0, cut };
  });
  const width = document.documentElement.clientWidth;
  const scrolls = (element) => {
    for (let at = element.parentElement; at; at = at.parentElement) {
      if (/(auto|scroll|hidden)/.test(getComputedStyle(at).overflowX)) return true;
    }
    return false;
  };
  const overflowing = [...document.querySelectorAll("body *")]
    .filter((element) => {
      const box = element.getBoundingClientRect();
      return box.width && element.checkVisibility() && box.right > width + 1 && !element.closest(".skip, svg") && !scrolls(element);
    })
    .map((element) => `${element.tagName.toLowerCase()}.${element.className} ${element.textContent.trim().slice(0, 60)}`);
  const unreachable = [...document.querySelectorAll(".cz-table, pre")]
    .filter((box) => box.checkVisibility() && box.scrollWidth > box.clientWidth + 1 && box.tabIndex !== 0)
    .map((box) => box.textContent.trim().slice(0, 60));
  return {
    figures, overflowing, unreachable, pageWidth: document.documentElement.scrollWidth, viewWidth: width,
    title: document.title, injected: document.querySelectorAll("img[onerror], script[src], iframe, object").length,
    text: document.querySelector("main").innerText,
  };
}
