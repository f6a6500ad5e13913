// The pointer: what the mouse, a pen or a finger does to a view.
import { spanAt } from "./bins.js";
import { GUTTER } from "./draw.js";
import { MEMORY_HEIGHT } from "./memory.js";
import { element } from "./parts.js";
import { heldAt, told } from "./tell.js";

export function listen(view) {
  const { lanes, axisBox, memoryBox } = view;
  lanes.addEventListener("scroll", () => view.redraw());
  for (const box of [lanes, axisBox, memoryBox]) {
    box.addEventListener("wheel", (event) => turned(view, event), { passive: false });
    box.addEventListener("pointerdown", (event) => held(view, event, box));
    box.addEventListener("pointermove", (event) => moved(view, event, box));
    box.addEventListener("pointerleave", () => gone(view));
  }
  lanes.addEventListener("dblclick", (event) => {
    const place = barUnder(view, event);
    if (place >= 0) view.zoomToBar(place);
  });
}

// The moment of the axis that an event is at.
function timeUnder(view, event) {
  const box = view.lanes.getBoundingClientRect();
  const share = (event.clientX - box.left - GUTTER) / (view.lanes.clientWidth - GUTTER);
  return view.left + Math.min(Math.max(share, 0), 1) * (view.right - view.left);
}

// The bar of the lanes that an event is at; -1 where there is none.
function barUnder(view, event) {
  const box = view.lanes.getBoundingClientRect();
  if (event.clientX - box.left < GUTTER) return -1;
  const y = event.clientY - box.top + view.lanes.scrollTop;
  const row = view.layout.rows.find((row) => y >= row.y && y < row.y + row.height + 1);
  if (!row) return -1;
  const reach = (3 * (view.right - view.left)) / (view.lanes.clientWidth - GUTTER);
  return spanAt(view.picture.columns, row.first, row.count, timeUnder(view, event), reach);
}

function turned(view, event) {
  const along = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
  if (!(event.ctrlKey || event.metaKey || view.host.contains(document.activeElement) || along)) return;
  event.preventDefault();
  if (along) {
    const pixels = (event.deltaX || event.deltaY) * (event.deltaMode === 1 ? 16 : 1);
    view.pan((pixels * (view.right - view.left)) / (view.lanes.clientWidth - GUTTER));
  } else {
    const lines = event.deltaMode === 1 ? event.deltaY * 33 : event.deltaY;
    view.zoom(Math.exp(Math.min(Math.max(lines, -240), 240) * 0.0022), timeUnder(view, event));
  }
}

// A press: a click asks, a drag selects, or moves along with Shift; on the axis it zooms.
function held(view, event, box) {
  if (event.button > 1 || (box === view.lanes && event.offsetX > view.lanes.clientWidth)) return;
  event.preventDefault();
  view.lanes.focus({ preventScroll: true });
  const from = timeUnder(view, event), at = event.clientX, shown = [view.left, view.right];
  const panning = event.shiftKey || event.button === 1, before = view.range;
  let dragged = false;
  const move = (now) => {
    if (!dragged && Math.abs(now.clientX - at) < 4) return;
    dragged = true;
    view.tip.hidden = true;
    if (panning) {
      const time = ((at - now.clientX) * (shown[1] - shown[0])) / (view.lanes.clientWidth - GUTTER);
      view.zoomTo(shown[0] + time, shown[1] + time);
    } else view.mark([Math.round(Math.min(from, timeUnder(view, now))), Math.round(Math.max(from, timeUnder(view, now)))]);
  };
  const release = (now) => {
    box.removeEventListener("pointermove", move);
    box.removeEventListener("pointerup", release);
    box.removeEventListener("pointercancel", release);
    if (now.type === "pointercancel" || (dragged && panning)) return;
    if (!dragged) {
      const place = box === view.lanes ? barUnder(view, now) : -1;
      if (place >= 0) view.choose(place, from);
    } else if (box === view.axisBox) {
      const [left, right] = view.range;
      view.mark(before);
      view.zoomTo(left, right);
    } else view.select(view.range);
  };
  box.setPointerCapture(event.pointerId);
  box.addEventListener("pointermove", move);
  box.addEventListener("pointerup", release);
  box.addEventListener("pointercancel", release);
}

function moved(view, event, box) {
  if (!view.picture) return;
  view.cursor = timeUnder(view, event);
  view.redraw();
  if (event.buttons) return;
  const place = box === view.lanes ? barUnder(view, event) : -1;
  const device = box === view.memoryBox ? Math.floor(event.offsetY / MEMORY_HEIGHT) : -1;
  const lines = place >= 0 ? told(view.picture, place) : view.picture.header.memory[device] ? heldAt(view.memory, device, view.cursor, view.picture.header.unit) : null;
  view.lanesCanvas.style.cursor = place >= 0 ? "pointer" : "crosshair";
  view.tip.hidden = !lines;
  if (!lines) return;
  view.tip.replaceChildren(element("b", {}, lines[0]), lines.slice(1).join("\n"));
  const frame = view.host.getBoundingClientRect(), x = event.clientX - frame.left, y = event.clientY - frame.top;
  const { offsetWidth, offsetHeight } = view.tip;
  view.tip.style.left = `${Math.max(0, x + 14 + offsetWidth > frame.width ? x - offsetWidth - 10 : x + 14)}px`;
  view.tip.style.top = `${y + 18 + offsetHeight > frame.height ? y - offsetHeight - 10 : y + 18}px`;
}

function gone(view) {
  view.cursor = null;
  view.tip.hidden = true;
  view.redraw();
}
