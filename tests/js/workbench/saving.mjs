// What is saved with the notebook, and shown without a kernel: after an end, a restart, and a save of what is only read.
import { told } from "./drive.mjs";

const NOTEBOOK = "workbench.ipynb";

export async function saving({ page, report, open, save, endKernels, shot, sight, idle }) {
  report.saved = await save(NOTEBOOK);
  // A restart ends every model in the kernel; what is shown is saved all the same.
  await page.evaluate(() => window.jupyterapp.shell.currentWidget.sessionContext.restartKernel());
  await idle();
  await page.locator(".jupyter-widgets-disconnected").first().waitFor();
  report.saved_after_restart = await save(NOTEBOOK);
  await page.goto("about:blank");
  await endKernels();
  told("saved, kernel restarted, saved, ended");
  await open(NOTEBOOK);
  const again = page.locator(".jp-OutputArea .cz-design").first();
  await again.locator(".cz-card").first().waitFor();
  await page.waitForFunction(() => [...document.querySelectorAll(".czt")].filter((one) => one.dataset.spans).length >= 2);
  report.reopened = {
    policy: await again.locator("select").first().inputValue(), pw: await again.locator('input[data-knob="pw"]').inputValue(),
    cards: await again.locator(".cz-card").count(), errors: await page.getByText("Error displaying widget").count(),
  };
  await sight(again);
  await shot("reopened-1440");
  // Without a kernel nothing is silent.
  await again.getByRole("button", { name: "Run for real" }).click();
  report.without_kernel = await again.locator(".cz-actions [role=status]").innerText();
  const view = page.locator(".czt").last(), download = page.waitForEvent("download");
  await view.getByRole("button", { name: /^export/ }).click();
  report.browser_export = (await download).suggestedFilename();
  report.export_without_kernel = await view.locator(".czt-status").innerText();
  report.saved_when_read = await save(NOTEBOOK);
  told(`reopened without a kernel: ${report.without_kernel}`);
}
