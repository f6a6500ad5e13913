// What all parts of the check share: a browser on JupyterLab, and what it saw.
import path from "node:path";
import { launch } from "../browser.mjs";

// What JupyterLab itself is known to print as an error, by exact text, and why. Nothing else is forgiven.
// A restart of the kernel cuts off what its debugger panel had asked.
const KNOWN = [/^Could not restore the debugger state: Canceled future for debug_request message before replies were done$/];
const began = Date.now();

export const told = (words) => process.stderr.write(`${((Date.now() - began) / 1000).toFixed(1)} s  ${words}\n`);
export const quantile = (values, share) => [...values].sort((one, other) => one - other)[Math.floor(share * (values.length - 1))];

// A browser on a server of `cuzklab lab`, with what a person would do there; `report` is what the check prints.
export async function drive(url, shots) {
  const report = { errors: [], foreign: [] };
  const browser = await launch();
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  page.setDefaultTimeout(45000);
  page.on("pageerror", (error) => report.errors.push(`page: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error" && !KNOWN.some((one) => one.test(message.text()))) report.errors.push(`console: ${message.text()} (${message.location().url})`);
  });
  page.on("request", (request) => {
    if (!["127.0.0.1", ""].includes(new URL(request.url()).hostname)) report.foreign.push(request.url());
  });
  const { origin, searchParams } = new URL(url), headers = { Authorization: `token ${searchParams.get("token")}` };
  const get = async (place) => (await fetch(`${origin}/api/${place}`, { headers })).json();
  const kernel = () => page.waitForFunction(() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === "idle");
  return {
    browser, page, report, get,
    shot: (name) => page.screenshot({ path: path.join(shots, `${name}.png`) }),
    async sized(width, height) {
      await page.setViewportSize({ width, height });
      await page.waitForFunction(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true)))));
    },
    sight: (locator) => locator.evaluate((one) => one.scrollIntoView({ block: "start" })),
    command: (name, args = {}) => page.evaluate(async ([one, given]) => { await window.jupyterapp.commands.execute(one, given); }, [name, args]),
    // Opens a notebook, and waits for its kernel.
    async open(notebook) {
      const address = new URL(url);
      address.pathname = `/lab/tree/${notebook}`;
      await page.goto(`${address.href}&reset`);
      await page.waitForSelector(".jp-Notebook .jp-Cell");
      await kernel();
    },
    idle: kernel,
    // Runs code in the kernel of the notebook that is open, and returns what it printed.
    execute: (code) => page.evaluate(async (text) => {
      const { kernel: one } = window.jupyterapp.shell.currentWidget.sessionContext.session;
      const future = one.requestExecute({ code: text, silent: false, store_history: false });
      let printed = "";
      future.onIOPub = ({ header, content }) => {
        if (header.msg_type === "stream" && content.name === "stdout") printed += content.text;
        if (header.msg_type === "error") printed += `${content.ename}: ${content.evalue}`;
      };
      await future.done;
      return printed;
    }, code),
    // Saves the notebook that is open; the states of views that are saved with it, by class.
    async save(notebook) {
      await page.evaluate(async () => { await window.jupyterapp.commands.execute("docmanager:save"); });
      await page.waitForFunction(() => !window.jupyterapp.shell.currentWidget.model.dirty);
      const saved = (await get(`contents/${notebook}`)).content;
      const states = Object.values(saved.metadata.widgets?.["application/vnd.jupyter.widget-state+json"]?.state ?? {});
      return states.map((one) => one.state._anywidget_id?.split(".").pop()).filter(Boolean);
    },
    async endKernels() {
      for (const { id } of await get("sessions")) await fetch(`${origin}/api/sessions/${id}`, { method: "DELETE", headers });
    },
  };
}
