// Every control of a view is reached by Tab, in the order in which it is drawn, and shows that it has the focus.
import { told } from "./drive.mjs";

export async function keys({ page, report }, views) {
  report.unreachable = [];
  for (const [name, view] of Object.entries(views)) {
    const wanted = await view.evaluate((root) => {
      const all = [...root.querySelectorAll("button, select, input, textarea, summary, canvas[tabindex], [tabindex='0']")];
      return all.filter((one) => one.getClientRects().length && !one.disabled).map((one, number) => (one.dataset.reach = String(number)));
    });
    const first = view.locator('[data-reach="0"]');
    await first.focus();
    const reached = new Set(["0"]), unseen = [];
    for (let step = 0; step < wanted.length + 4; step += 1) {
      if (await page.evaluate(() => document.activeElement.localName === "textarea")) await page.keyboard.press("Escape"); // it lets go of Tab
      await page.keyboard.press("Tab");
      const at = await page.evaluate(() => { const one = document.activeElement, style = getComputedStyle(one); return { reach: one.dataset.reach, ring: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1 }; });
      if (at.reach === undefined) continue;
      reached.add(at.reach);
      if (!at.ring) unseen.push(at.reach);
    }
    const lacking = wanted.filter((one) => !reached.has(one));
    for (const one of [...lacking.map((reach) => [reach, "not reached"]), ...unseen.map((reach) => [reach, "no ring"])])
      report.unreachable.push(`${name}: ${one[1]}: ${await view.locator(`[data-reach="${one[0]}"]`).evaluate((each) => each.outerHTML.slice(0, 120))}`);
    await view.evaluate((root) => { for (const one of root.querySelectorAll("[data-reach]")) delete one.dataset.reach; });
  }
  told(`keys: ${report.unreachable.length} controls are not reached or do not show it ${report.unreachable.join("\n")}`);
}
