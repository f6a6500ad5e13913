// Drives the workbench in a real JupyterLab, in headless Chromium, as a person would, and reports what it saw as JSON.
//
//   node workbench_check.mjs URL SHOTS_FOLDER
//
// URL is what `cuzklab lab` prints. playwright-core is taken from $CUZKLAB_NODE_MODULES or from the nearest node_modules.
import { drive, told } from "./workbench/drive.mjs";
import { author, kernels } from "./workbench/editors.mjs";
import { explorer, nasty } from "./workbench/explorer.mjs";
import { keys } from "./workbench/keys.mjs";
import { large } from "./workbench/large.mjs";
import { live } from "./workbench/live.mjs";
import { saving } from "./workbench/saving.mjs";
import { sliders } from "./workbench/sliders.mjs";

const [url, shots] = process.argv.slice(2);
const lab = await drive(url, shots), { browser, page, report, command, open, shot, sight, sized } = lab;

try {
  await open("workbench.ipynb");
  told("JupyterLab is open");
  await command("notebook:run-all-cells");
  const views = { bench: await sliders(lab) };
  views.live = await live(lab, views.bench);
  views.explorer = await explorer(lab);
  views.author = await author(lab);
  views.kernels = await kernels(lab);
  views.compare = page.locator(".czt").last();
  await sight(views.compare);
  await shot("compare-1440");
  await keys(lab, views);

  await page.emulateMedia({ colorScheme: "dark" }); // the theme follows the system
  await page.waitForFunction(() => document.body.dataset.jpThemeLight === "false" && !document.getElementById("jupyterlab-splash"));
  for (const name of ["bench", "live", "explorer", "author", "kernels"]) {
    await sight(views[name]);
    await shot(`${name}-dark-1440`);
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.waitForFunction(() => document.body.dataset.jpThemeLight === "true" && !document.getElementById("jupyterlab-splash"));
  await sized(1024, 768);
  for (const [name, one] of Object.entries(views)) {
    await sight(one);
    await shot(`${name}-1024`);
  }
  told("pictures in the dark and at 1024×768 are taken");
  await command("launcher:create");
  await page.locator(".jp-LauncherCard", { hasText: "cuzklab: workbench" }).first().waitFor();
  report.launcher = await page.locator(".jp-LauncherCard-label").allInnerTexts();
  await shot("launcher-1024");
  await page.locator(".lm-TabBar-tab", { hasText: "workbench.ipynb" }).first().click();
  await sized(1440, 900);

  await saving(lab);
  await nasty(lab);
  await lab.endKernels();
  await large(lab);
} catch (error) {
  report.failure = error.message;
  await shot("failure");
} finally {
  console.log(JSON.stringify(report));
  await browser.close();
}
