// A stretch of a picture as trace events, which Perfetto opens: what the notebook holds, where no kernel can write more.
import { readable } from "./words.js";

// The document for bars and memory that reach into [from, to]; times are kept, in microseconds since the run's start.
export function traceEvents({ header, columns }, from, to) {
  const scale = header.unit === "step" ? 1 : 1e-3, events = [], sections = [...new Set(header.lanes.map(({ section }) => section))];
  const { start, end, row_first: firsts, row_count: counts, row_lane: lanes } = columns;
  sections.forEach((name, pid) => events.push({ ph: "M", name: "process_name", pid, args: { name: readable(name) } }));
  for (let row = 0; row < firsts.length; row++) {
    const { section, label } = header.lanes[lanes[row]], pid = sections.indexOf(section);
    events.push({ ph: "M", name: "thread_name", pid, tid: row, args: { name: readable(label) } });
    for (let place = firsts[row], last = place + counts[row]; place < last; place++) {
      if (end[place] < from || start[place] > to) continue;
      const of = (column) => header.strings[columns[column][place]];
      events.push({
        ph: "X", name: of("label"), cat: header.kinds[columns.kind[place]].name, pid, tid: row,
        ts: start[place] * scale, dur: (end[place] - start[place]) * scale,
        args: { worker: of("worker"), partition: of("partition"), ...(columns.merged[place] > 1 ? { spans: columns.merged[place] } : {}) },
      });
    }
  }
  header.memory.forEach(({ title }, device) => {
    for (let place = columns.device_first[device], last = place + columns.device_count[device]; place < last; place++) {
      const time = columns.live_time[place];
      if (time >= from && time <= to) events.push({ ph: "C", name: title, pid: sections.length, ts: time * scale, args: { bytes: columns.live[place] } });
    }
  });
  return { traceEvents: events, displayTimeUnit: "ns", metadata: { title: header.title, note: header.note, "time unit": header.unit } };
}

// Has the browser save a document.
export function download(content, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify(content)], { type: "application/json" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
