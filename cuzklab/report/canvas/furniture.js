// What stands around the canvases: title, tools, legend, the line that tells, tables. It is made once.
import { KEYS, pressed } from "./keys.js";
import { element } from "./parts.js";
import { nextMatch } from "./sums.js";

const HINT = "Point at a bar for its exact times. Drag to select a stretch. Click, and the wheel zooms.";

export function furnish(view, onExport) {
  const button = (text, label, onclick) => element("button", { type: "button", title: label, "aria-label": label, onclick }, text);
  const canvas = (parent) => parent.appendChild(element("canvas", { "aria-hidden": "true" }));
  const { host } = view;
  host.replaceChildren();
  host.classList.add("czt");
  view.title = element("b");
  view.note = element("span");
  view.query = element("input", { type: "search", placeholder: "search names  ( / )", "aria-label": "search names",
    oninput: () => view.search(), onkeydown: (event) => searchKey(view, event) });
  view.found = element("span", { class: "czt-found", role: "status" });
  view.ofRange = element("div", { hidden: true },
    button("zoom to selection", "zoom to the selection (z)", () => view.zoomTo(...view.range)),
    button("clear", "clear the selection (Escape)", () => view.select(null)));
  view.exporter = onExport && button("export", "export the selection, or what is in view, for Perfetto",
    () => onExport(view.range ?? [view.left, view.right]));
  view.legend = element("div");
  view.axisBox = element("div", { title: "drag to zoom" });
  view.lanes = element("div", { class: "czt-lanes", tabindex: "0", role: "application",
    "aria-roledescription": "timeline", "aria-describedby": (view.statusId = `czt-${Math.random().toString(36).slice(2)}`) });
  view.tall = element("div");
  view.memoryBox = element("div");
  view.status = element("div", { class: "czt-status", id: view.statusId, role: "status", "aria-live": "polite" }, HINT);
  view.tables = element("div", { class: "czt-tables" });
  view.tip = element("div", { class: "czt-tip", hidden: true, "aria-hidden": "true" });
  const keys = element("dl", {}, ...KEYS.flatMap(([key, does]) => [element("dt", {}, key), element("dd", {}, does)]));
  host.append(
    element("div", { class: "czt-title" }, view.title, view.note),
    element("div", { class: "czt-tools" },
      element("div", {}, view.query, view.found),
      element("div", {},
        button("−", "zoom out (−)", () => view.zoom(2)), button("+", "zoom in (+)", () => view.zoom(0.5)),
        button("whole run", "show the whole run (Home)", () => view.zoomTo(0, view.picture.header.length))),
      view.ofRange, element("div", { class: "czt-push" }, ...(onExport ? [view.exporter] : []))),
    view.legend, view.axisBox, view.lanes, view.memoryBox, view.status, view.tables,
    element("details", { class: "czt-keys" }, element("summary", {}, "keys"), keys), view.tip);
  view.axisCanvas = canvas(view.axisBox);
  view.lanesCanvas = canvas(view.lanes);
  view.lanes.append(view.tall);
  view.memoryCanvas = canvas(view.memoryBox);
  view.lanes.addEventListener("keydown", (event) => pressed(view, event));
}

function searchKey(view, event) {
  event.stopPropagation();
  if (event.key === "Escape") {
    view.query.value = "";
    view.search();
    view.lanes.focus();
  } else if (event.key === "Enter" && view.mask) view.reveal(nextMatch(view.picture.columns, view.mask, view.chosen, event.shiftKey ? -1 : 1));
}
