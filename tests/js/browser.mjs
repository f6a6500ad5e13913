// What the checks of pages share: a headless Chromium, of playwright-core from $CUZKLAB_NODE_MODULES or from the
// nearest node_modules above this file.
import { createRequire } from "node:module";
import { existsSync } from "node:fs";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));

function nodeModules() {
  if (process.env.CUZKLAB_NODE_MODULES) return process.env.CUZKLAB_NODE_MODULES;
  for (let folder = here; ; folder = path.dirname(folder)) {
    if (existsSync(path.join(folder, "node_modules", "playwright-core"))) return path.join(folder, "node_modules");
    if (folder === path.dirname(folder)) throw new Error("playwright-core not found; set CUZKLAB_NODE_MODULES");
  }
}

export function launch() {
  const { chromium } = createRequire(path.join(nodeModules(), "x.js"))("playwright-core");
  return chromium.launch({
    executablePath: process.env.CUZKLAB_CHROMIUM ?? "/usr/bin/chromium",
    args: [
      "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync",
    ],
  });
}

// A page opened with the network cut, and what it asked for and complained of.
export async function opened(browser, file, viewport) {
  const address = pathToFileURL(path.resolve(file)).href;
  const context = await browser.newContext({ viewport, offline: true });
  const page = await context.newPage();
  const requests = [], errors = [];
  page.on("request", (request) => {
    if (request.url() !== address && !/^(data|blob):/.test(request.url())) requests.push(request.url());
  });
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) errors.push(message.text()); });
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.goto(address);
  return { page, requests, errors };
}
