// What every check of a page shares: one headless Chromium, of playwright-core from $CUZKLAB_NODE_MODULES or from the
// nearest node_modules above this file.
import { createRequire } from "node:module";
import { existsSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

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
