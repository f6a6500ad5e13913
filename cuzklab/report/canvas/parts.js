// Small parts of the view's page: elements, tables, the legend. Text is only ever text.
import { isQuiet, tile } from "./draw.js";
import { readable } from "./words.js";

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  // JupyterLab would take keys of what has the focus for its own: two d delete a cell. It asks this element only.
  if ("tabindex" in attributes || name === "button" || name === "summary") made.dataset.lmSuppressShortcuts = "true";
  made.append(...children);
  return made;
}

// {caption, columns: [{name, number}], rows: [[text]]} as a table; `choose`, where given, is called with a row's number.
export function table({ caption, columns, rows }) {
  const head = element("tr", {}, ...columns.map(({ name, number }) => (
    element("th", { scope: "col", class: number ? "number" : null }, readable(name)))));
  const body = rows.map((row) => element("tr", {}, ...row.map((cell, place) => (
    element("td", { class: columns[place]?.number ? "number" : null }, readable(cell, 400))))));
  return element("div", { class: "czt-table", tabindex: "0", role: "region", "aria-label": readable(caption) },
    element("table", {}, element("caption", {}, readable(caption, 600)), element("thead", {}, head), element("tbody", {}, ...body)));
}

// Swatches with the names of kinds; work first, as far as there is room for names that tell something.
export function legend(kinds, used) {
  const entries = kinds.filter((kind, place) => used.has(place)).map((kind) => {
    const swatch = element("canvas", { width: "14", height: "12", "aria-hidden": "true" });
    const context = swatch.getContext("2d");
    const quiet = isQuiet(kind);
    context.globalAlpha = quiet ? 0.25 : 1;
    context.fillStyle = kind.colour;
    context.fillRect(0, 0, 14, 12);
    context.globalAlpha = 1;
    if (kind.pattern) {
      context.fillStyle = tile(context, kind.pattern, quiet ? kind.colour : "#00000066");
      context.fillRect(0, 0, 14, 12);
    }
    return element("li", {}, swatch, readable(kind.name, 32));
  });
  return element("ul", { class: "czt-legend", "aria-label": "legend" }, ...entries);
}

// Colours of the page around: JupyterLab's, VS Code's, or the reader's preference.
export function colours(host) {
  const style = getComputedStyle(host);
  const of = (name) => style.getPropertyValue(`--czt-${name}`).trim();
  return {
    paper: of("paper"), ink: of("ink"), muted: of("muted"), rule: of("rule"), grid: of("grid"), accent: of("accent"),
    bad: of("bad"), edge: of("edge"), selection: of("selection"), font: style.fontFamily,
  };
}
