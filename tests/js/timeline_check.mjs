// Drives the widget in headless Chromium with a stub of anywidget's model; prints what a person would see, as JSON.
//
//   node timeline_check.mjs CASE.json [--shots FOLDER] [--dark] [--width 1440 --height 900]
//
// CASE.json: {"module": text, "style": text, "traits": {...}, "picture": base64, "whole": base64 or null,
//             "steps": [...]}; a step is one of
//   {"point": [ms, y]}  {"click": [ms, y]}  {"drag": [ms, ms, y]}  {"keys": [...]}  {"search": text}  {"set": {trait: value}}
//   {"press": button}  {"disconnect": true}: from here on no kernel answers
import { readFileSync } from "node:fs";
import path from "node:path";
import { launch } from "./browser.mjs";

const [file, ...rest] = process.argv.slice(2);
const option = (name, fallback) => (rest.includes(name) ? rest[rest.indexOf(name) + 1] : fallback);
const shots = option("--shots", null), data = JSON.parse(readFileSync(file, "utf8"));
const browser = await launch();
const context = await browser.newContext({
  viewport: { width: Number(option("--width", 1440)), height: Number(option("--height", 900)) }, offline: true,
  colorScheme: rest.includes("--dark") ? "dark" : "light",
});
const page = await context.newPage();
const downloads = [];
page.on("download", (one) => downloads.push(one));
const requests = [], errors = [];
page.on("request", (request) => { if (!/^(blob|data|about):/.test(request.url())) requests.push(request.url()); });
page.on("console", (message) => { if (["error", "warning"].includes(message.type())) errors.push(message.text()); });
page.on("pageerror", (error) => errors.push(String(error)));
await page.goto("about:blank");
await page.evaluate(async ({ module, style, traits, picture, whole }) => {
  const bytes = (text) => new DataView(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
  const answer = () => { if (!document.querySelector(".jupyter-widgets-disconnected")) setTimeout(() => model.fire("msg:custom", { answered: true }, []), 0); };
  const listeners = new Map(), state = { ...traits, picture: bytes(picture) };
  const model = {
    sent: [], saved: 0,
    get: (name) => state[name],
    set: (name, value) => { state[name] = value; model.fire(`change:${name}`); },
    save_changes: () => { model.saved += 1; answer(); },
    on: (name, call) => listeners.set(name, [...(listeners.get(name) ?? []), call]),
    off: (name, call) => listeners.set(name, (listeners.get(name) ?? []).filter((one) => one !== call)),
    fire: (name, ...values) => (listeners.get(name) ?? []).forEach((call) => call(...values)),
    send: (content) => {
      model.sent.push(content);
      if (content.ask === "export") answer();
      if (content.ask === "whole" && whole) setTimeout(() => model.fire("msg:custom", { whole: true }, [bytes(whole)]), 0);
    },
  };
  window.model = model;
  document.body.style.cssText = "margin: 12px; background: Canvas; color-scheme: light dark";
  const sheet = document.head.appendChild(document.createElement("style"));
  sheet.textContent = style;
  const widget = await import(URL.createObjectURL(new Blob([module], { type: "text/javascript" })));
  window.stop = widget.default.render({ model, el: document.body });
}, data);
await page.waitForFunction((count) => document.querySelector(".czt")?.dataset.spans === String(count), data.spans, { timeout: 30000 });

const GUTTER = 140;
async function place([ms, y]) {
  const [box, wide] = await page.evaluate(() => {
    const lanes = document.querySelector(".czt-lanes"), { left, top } = lanes.getBoundingClientRect();
    return [{ left, top }, lanes.clientWidth];
  });
  const [from, to] = data.window;
  return [box.left + GUTTER + ((ms - from) / (to - from)) * (wide - GUTTER), box.top + y];
}
const settled = () => page.evaluate(() => new Promise((done) => setTimeout(() => requestAnimationFrame(done), 260)));

const seen = [];
for (const [number, step] of (data.steps ?? []).entries()) {
  if (step.point) await page.mouse.move(...await place(step.point));
  if (step.click) {
    await page.mouse.click(...await place(step.click));
    await page.mouse.move(2, 2);
  }
  if (step.drag) {
    const [from, to, y] = step.drag;
    await page.mouse.move(...await place([from, y]));
    await page.mouse.down();
    await page.mouse.move(...await place([(from + to) / 2, y]));
    await page.mouse.move(...await place([to, y]));
    await page.mouse.up();
    await page.mouse.move(2, 2);
  }
  if (step.keys) {
    await page.locator(".czt-lanes").focus();
    for (const key of step.keys) await page.keyboard.press(key);
  }
  if (step.search !== undefined) await page.locator(".czt input").fill(step.search);
  if (step.set) await page.evaluate((traits) => { for (const [name, value] of Object.entries(traits)) window.model.set(name, value); }, step.set);
  if (step.disconnect) await page.evaluate(() => document.body.classList.add("jupyter-widgets-disconnected"));
  if (step.press) await page.getByRole("button", { name: step.press }).click();
  await settled();
  if (shots) await page.screenshot({ path: path.join(shots, `step-${number}.png`) });
  seen.push(await page.evaluate(() => {
    const text = (of) => document.querySelector(of)?.innerText ?? "", tip = document.querySelector(".czt-tip");
    return {
      tip: tip.hidden ? "" : tip.innerText, status: text(".czt-status"), found: text(".czt-found"),
      tables: [...document.querySelectorAll(".czt-table")].map((table) => ({
        caption: table.querySelector("caption").innerText,
        rows: [...table.querySelectorAll("tbody tr")].map((row) => [...row.cells].map((cell) => cell.innerText)),
      })),
      selection: window.model.get("selection"), chosen: window.model.get("chosen"), saved: window.model.saved,
      sent: window.model.sent.length,
    };
  }));
}
const end = await page.evaluate(() => ({
  title: document.title, text: document.body.innerText,
  elements: [...new Set([...document.querySelectorAll(".czt *")].map((one) => one.localName))].sort(),
  wide: document.documentElement.scrollWidth, view: document.documentElement.clientWidth,
  spans: Number(document.querySelector(".czt").dataset.spans), note: document.querySelector(".czt-title span").innerText,
}));
const files = [];
for (const one of downloads) files.push({ name: one.suggestedFilename(), text: readFileSync(await one.path(), "utf8") });
await page.evaluate(() => window.stop());
console.log(JSON.stringify({ ...end, seen, requests, errors, files }));
await browser.close();
