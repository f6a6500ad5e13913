// The table under the picture: what is in a stretch of time, summed by kind and name.
import { bound } from "./bins.js";

// [{kind, label, group, count, time, longest}] of all spans in [left, right], cut at its edges; the longest sums first.
export function sums({ header, columns }, left, right, mask = null) {
  const { start, end, kind, label, merged, idle, row_first: firsts, row_count: counts, row_lane: lanes } = columns;
  const kinds = header.kinds.length, groups = ["worker", "lock", "device"];
  const found = new Map();
  for (let row = 0; row < firsts.length; row++) {
    const { group } = header.lanes[lanes[row]], base = groups.indexOf(group);
    const last = bound(start, right, firsts[row], firsts[row] + counts[row], true);
    for (let place = bound(end, left, firsts[row], last); place < last; place++) {
      if (mask && !mask[place]) continue;
      const from = start[place] < left ? left : start[place], to = end[place] > right ? right : end[place];
      const key = (label[place] * kinds + kind[place]) * groups.length + base;
      let sum = found.get(key);
      if (!sum) found.set(key, (sum = { kind: kind[place], label: label[place], group, count: 0, time: 0, longest: 0 }));
      sum.count += merged[place];
      // Of a bar that stands for several spans only their time counts, evenly spread over the bar.
      sum.time += idle[place] ? ((to - from) * (end[place] - start[place] - idle[place])) / (end[place] - start[place]) : to - from;
      if (end[place] - start[place] > sum.longest) sum.longest = end[place] - start[place];
    }
  }
  return [...found.values()].sort((a, b) => b.time - a.time || a.label - b.label);
}

// Spans whose own name, worker, partition or lane contains `text`, whatever the case: a mask and their number.
export function search({ header, columns }, text, lanes) {
  const wanted = text.toLowerCase();
  const hit = header.strings.map((name) => name.toLowerCase().includes(wanted));
  const mask = new Uint8Array(columns.start.length);
  let found = 0;
  columns.row_first.forEach((first, row) => {
    const { name, label } = lanes[columns.row_lane[row]];
    const whole = `${name}\n${label}`.toLowerCase().includes(wanted);
    for (let place = first, last = first + columns.row_count[row]; place < last; place++) {
      if (whole || hit[columns.label[place]] || hit[columns.worker[place]] || hit[columns.partition[place]]) {
        mask[place] = 1;
        found += 1;
      }
    }
  });
  return { mask, found };
}

// The match after (`direction` 1) or before (-1) a bar in order of time, and around the end; `chosen` is -1 for none.
export function nextMatch({ start }, mask, chosen, direction) {
  const here = chosen < 0 ? (direction > 0 ? -1 : Infinity) : start[chosen];
  const ahead = (one, other) => direction * (start[one] - (other === -1 ? here : start[other])) || direction * (one - (other === -1 ? chosen : other));
  let best = -1, first = -1;
  for (let place = 0; place < mask.length; place++) {
    if (!mask[place]) continue;
    if (first < 0 || ahead(place, first) < 0) first = place;
    if (ahead(place, -1) > 0 && (best < 0 || ahead(place, best) < 0)) best = place;
  }
  return best >= 0 ? best : first;
}
