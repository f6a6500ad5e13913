// The author's and the kernel bench: what is wrong at its line, what the checker finds, a kernel tried.
import { told } from "./drive.mjs";

export async function author({ page, report, shot, sight }) {
  const view = page.locator(".cz-author").first(), editor = view.locator("textarea");
  const good = await editor.inputValue();
  await editor.fill(good.replace("yield Free(d_bc)", "yield Fre(d_bc)"));
  await page.waitForFunction(() => document.querySelector(".cz-author .cz-line-error"));
  report.author_error = await view.locator(".cz-marks li").first().textContent();
  await sight(view);
  await shot("author-error-1440");
  await editor.fill(good.replace("    yield Release(gpu.lock)\n", ""));
  await page.waitForFunction(() => document.querySelector(".cz-author .cz-line-finding"));
  report.author_finding = await view.locator(".cz-marks li").first().textContent();
  await shot("author-finding-1440");
  await editor.fill(good);
  await page.waitForFunction(() => document.querySelector(".cz-author").dataset.marks === "0");
  told(`author: ${report.author_error} / ${report.author_finding}`);
  return view;
}

export async function kernels({ page, report, shot, sight }) {
  const view = page.locator(".cz-kernels").first(), source = view.locator("textarea");
  const idle = () => page.waitForFunction(() => document.querySelector(".cz-kernels").dataset.state === "idle");
  const attempt = view.getByRole("button", { name: "Build, test, time" });
  report.kernels_offered = await view.locator("select").nth(1).locator("option").allInnerTexts();
  await view.locator("input[type=number]").first().fill("8");
  await view.locator("input[type=number]").nth(1).fill("9");
  await view.locator("select").nth(1).selectOption("ntt");
  await page.waitForFunction(() => /^ntt\//.test([...document.querySelectorAll(".cz-kernels select")].pop().value));
  await page.waitForFunction(() => document.querySelector(".cz-kernels textarea").value.includes("ransform") || document.querySelector(".cz-kernels textarea").value.includes("utterfl"));
  const shipped = await source.inputValue();
  // A slip comes back at its line.
  const lines = shipped.split("\n"), wrong = lines.findIndex((line) => line.startsWith("#include")) + 1;
  await source.fill([...lines.slice(0, wrong), "unknown_word x;", ...lines.slice(wrong)].join("\n"));
  await attempt.click();
  await view.locator(".cz-line-error").first().waitFor({ timeout: 60000 });
  report.slip = { line: wrong + 1, said: await view.locator(".cz-worse").first().innerText(), place: await view.locator(".cz-small").first().innerText(), marked: await view.locator(".cz-line-error").first().innerText() };
  await sight(view);
  await shot("kernels-slip-1440");
  // A change that is none but in name is timed, and right.
  await idle();
  await source.fill(`${shipped}\n// changed`);
  await attempt.click();
  await view.locator("table tbody tr").first().waitFor({ timeout: 90000 });
  report.kernel_rows = await view.locator("table tbody tr").count();
  report.kernel_verdict = await view.locator(".cz-verdict").first().textContent();
  await idle();
  await view.getByRole("button", { name: "Roofline" }).click();
  await page.waitForFunction(() => document.querySelector(".cz-kernels").innerText.includes("of the roof"));
  await sight(view.locator(".cz-actions"));
  await shot("kernels-1440");
  told(`kernels: ${report.slip.place}:${report.slip.said} / ${report.kernel_verdict}`);
  return view;
}
