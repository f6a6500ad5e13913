// The keyboard: what each key does to a view.
import { spanAt } from "./bins.js";

export const KEYS = [
  ["wheel, + −", "zoom (the wheel once the timeline has the focus, or with Ctrl)"],
  ["drag, Shift+drag", "select a stretch of time; move along. A drag on the axis zooms to it"],
  ["← → Home", "move along; the whole run"],
  ["↑ ↓ [ ]", "to another lane; to the bar before and after"],
  ["Enter, double click", "ask about the bar (a wait: who is to blame); zoom to it"],
  ["r z Esc", "select the bar's time; zoom to the selection; clear"],
  ["/", "search; Enter goes from match to match"],
];

export function pressed(view, event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !view.picture) return;
  const page = (view.right - view.left) * (event.shiftKey ? 0.5 : 0.1), { columns, header } = view.picture;
  const bar = view.chosen, actions = {
    "+": () => view.zoom(0.6), "=": () => view.zoom(0.6), "-": () => view.zoom(1 / 0.6),
    ArrowLeft: () => view.pan(-page), ArrowRight: () => view.pan(page), Home: () => view.zoomTo(0, header.length),
    0: () => view.zoomTo(0, header.length), ArrowUp: () => step(view, -1, 0), ArrowDown: () => step(view, 1, 0),
    "[": () => step(view, 0, -1), "]": () => step(view, 0, 1),
    Enter: () => bar >= 0 && view.choose(bar), r: () => bar >= 0 && view.select([columns.start[bar], columns.end[bar]]),
    z: () => view.range ? view.zoomTo(...view.range) : bar >= 0 && view.zoomToBar(bar),
    Escape: () => view.select(null), "/": () => view.query.focus(),
  };
  if (!actions[event.key]) return;
  event.preventDefault();
  event.stopPropagation();
  actions[event.key]();
}

// From the chosen bar to one of another row, or to the one before or after it.
function step(view, rows, bars) {
  const { rows: all } = view.layout, { columns } = view.picture, middle = (view.left + view.right) / 2;
  if (view.chosen < 0) return view.reveal(spanAt(columns, all[0].first, all[0].count, middle, Infinity));
  const here = all.indexOf(view.rowOf(view.chosen));
  const row = all[Math.min(Math.max(here + rows, 0), all.length - 1)];
  const time = (Math.max(columns.start[view.chosen], view.left) + Math.min(columns.end[view.chosen], view.right)) / 2;
  const place = rows ? spanAt(columns, row.first, row.count, time, Infinity) : view.chosen + bars;
  return view.reveal(Math.min(Math.max(place, row.first), row.first + row.count - 1));
}
