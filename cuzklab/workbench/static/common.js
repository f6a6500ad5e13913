// What all views share: elements made of text only (a name from a trace is never read as markup), tables, canvases.

const FOCUSABLE = ["button", "canvas", "input", "select", "summary", "textarea"];

function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  // JupyterLab's command mode would take arrows and letters for itself.
  if (FOCUSABLE.includes(tag)) made.setAttribute("data-lm-suppress-shortcuts", "true");
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") made.className = value;
    else if (name === "text") made.textContent = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled") made[name] = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) made.append(child);
  return made;
}

// Jupyter marks what has lost its kernel; other front ends do not tell, and a question to them may stay without answer.
const NO_KERNEL = "No kernel: this is what was saved. Run the cell to go on.";
const hasKernel = (place) => !place.closest(".jupyter-widgets-disconnected");

// rows: arrays of cells; a cell is text, or {text, class, title}.
function table(headings, rows, caption = "", rightFrom = 1) {
  const cell = (tag, value, column) => {
    const plain = typeof value !== "object" || value === null;
    const right = column >= rightFrom ? "cz-right" : "";
    return el(tag, {
      text: String(plain ? value ?? "" : value.text),
      class: [right, plain ? "" : value.class ?? ""].join(" ").trim() || undefined,
      title: plain ? undefined : value.title,
      scope: tag === "th" ? "col" : undefined,
    });
  };
  return el("div", { class: "cz-scroll" }, el("table", { class: "cz-wb-table" },
    caption ? el("caption", { text: caption }) : null,
    el("thead", {}, el("tr", {}, headings.map((heading, column) => cell("th", heading, column)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((value, column) => cell("td", value, column)))))));
}

// What is behind a line is made when it is opened: most moves of a slider are made with everything folded.
function fold(summary, make) {
  const place = el("div", {});
  const made = el("details", { class: "cz-fold", ontoggle: () => { if (made.open && !place.childNodes.length) place.append(...[make()].flat().filter(Boolean)); } },
    el("summary", { text: summary }), place);
  return made;
}

// Replaces what is in a place, but keeps open what the reader has opened.
function fill(place, ...content) {
  const open = [...place.querySelectorAll("details[open] > summary")].map((one) => one.textContent.split(" (")[0]);
  place.replaceChildren(...content.flat().filter(Boolean));
  for (const one of place.querySelectorAll("details > summary"))
    if (open.includes(one.textContent.split(" (")[0])) one.parentElement.open = true;
}

// A canvas as sharp as the screen; returns its context in CSS pixels.
function sharp(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

function ink(place) {
  const style = getComputedStyle(place);
  const of = (name, otherwise) => style.getPropertyValue(name).trim() || otherwise;
  return { ink: of("--cz-ink", "#222"), muted: of("--cz-muted", "#666"), rule: of("--cz-rule", "#ddd"),
    paper: of("--cz-paper", "#fff"), raised: of("--cz-raised", "#f4f6f8"), wait: "#9AA4AE", limit: "#D2463A", accent: of("--cz-accent", "#0072B2") };
}

// Has canvases drawn anew where the page's theme changes; returns what ends it.
function onTheme(redraw) {
  const watch = new MutationObserver(redraw), scheme = matchMedia("(prefers-color-scheme: dark)");
  watch.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name", "class"] });
  scheme.addEventListener("change", redraw);
  return () => { watch.disconnect(); scheme.removeEventListener("change", redraw); };
}

function hatch(context, colour) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const inside = tile.getContext("2d");
  inside.strokeStyle = colour;
  inside.lineWidth = 1.2;
  inside.beginPath();
  for (const shift of [-6, 0, 6]) { inside.moveTo(shift, 6); inside.lineTo(shift + 6, 0); }
  inside.stroke();
  return context.createPattern(tile, "repeat");
}

function seconds(value) {
  const size = Math.abs(value);
  if (size >= 100) return `${value.toFixed(0)} s`;
  if (size >= 1) return `${value.toPrecision(3)} s`;
  if (size >= 1e-3) return `${(value * 1e3).toPrecision(3)} ms`;
  return size === 0 ? "0 s" : `${(value * 1e6).toPrecision(3)} µs`;
}

function bytes(value) {
  for (const [name, unit] of [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]])
    if (Math.abs(value) >= unit) return `${(value / unit).toPrecision(3)} ${name}`;
  return `${Math.round(value)} B`;
}

function ticks(start, end, about) {
  const raw = (end - start) / Math.max(1, about);
  const power = 10 ** Math.floor(Math.log10(raw || 1));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= raw) ?? power * 10;
  const found = [];
  for (let at = Math.ceil(start / step) * step; at <= end + step * 1e-9; at += step) found.push(at);
  return found;
}

function cut(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let length = text.length;
  while (length > 1 && context.measureText(`${text.slice(0, length)}…`).width > width) length -= 1;
  return length > 1 ? `${text.slice(0, length)}…` : "";
}

// Ink for a label on a colour.
function readable(paint) {
  if (typeof paint !== "string" || !/^#[0-9a-f]{6}$/i.test(paint)) return "#000";
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(paint.slice(at, at + 2), 16));
  return red * 0.299 + green * 0.587 + blue * 0.114 > 140 ? "#111" : "#fff";
}
