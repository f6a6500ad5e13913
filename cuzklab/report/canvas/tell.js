// What a bar is, and what memory holds, in lines of text: the exact figures that pointing at them shows.
import { duration, exact, readable, size, whole } from "./words.js";

// The bar at a place of a picture.
export function told({ header, columns }, place) {
  const { unit } = header, kind = header.kinds[columns.kind[place]];
  const name = (column) => readable(header.strings[columns[column][place]]);
  const what = kind.role === "wait" ? `${kind.name}: ${name("label")}` : kind.role === "hold" ? kind.name : name("label");
  const whose = [name("worker"), name("partition")].filter(Boolean).join(" · ");
  return [
    readable(what), ...(whose ? [whose] : []),
    `${exact(columns.length[place], unit)}`, `from ${exact(columns.start[place], unit)}`, `to ${exact(columns.end[place], unit)}`,
    ...(columns.open[place] ? ["not ended when the recording was"] : []),
    ...(columns.merged[place] > 1 ? [`stands for ${whole(columns.merged[place])} spans of its row`] : []),
  ];
}

// A device's memory at a moment.
export function heldAt(memory, device, time, unit) {
  const { live, layers } = memory.at(device, time);
  return [`${size(live)} live at ${duration(time, unit)}`, ...layers.reverse().map(([name, bytes]) => `${name}: ${size(bytes)}`)];
}
