// The view as a widget: anywidget's contract, nothing of any one notebook.
import { keepWhenSaved } from "./keep.js";
import { download, traceEvents } from "./perfetto.js";
import { TimelineView } from "./timeline.js";

const PATIENCE_MS = 3000; // until a kernel that does not answer is taken for none
const NOBODY = "No kernel answers: this is what was saved with the notebook. Run its cell to ask about a bar or a stretch.";

// Traits may come as DataView or as an array of bytes, by front end.
const bytesOf = (value) => (value instanceof DataView ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength) : new Uint8Array(value));

function render({ model, el }) {
  keepWhenSaved(model.widget_manager);
  const host = el.appendChild(document.createElement("div"));
  const tell = (name, value) => {
    model.set(name, value);
    model.save_changes();
  };
  const asks = model.get("exports"); // whether there is somebody in the kernel who answers
  let silence = 0, whole = model.get("complete"); // whether the picture in view is all of it
  // JupyterLab and Notebook mark what has lost its kernel; elsewhere only silence tells.
  const ask = (otherwise) => {
    if (!asks) return;
    clearTimeout(silence);
    silence = setTimeout(otherwise, host.closest(".jupyter-widgets-disconnected") ? 0 : PATIENCE_MS);
  };
  const exportHere = (why) => ([from, to]) => {
    const name = `stretch-${Math.round(from)}-${Math.round(to)}.perfetto.json`, found = traceEvents(view.picture, from, to);
    download(found, name);
    view.say(`${why}${whole ? "" : "Bars, as they are kept in the notebook, "}${whole ? "S" : "s"}aved by the browser: ${name}, ${found.traceEvents.length} events.`);
  };
  const view = new TimelineView(host, {
    onSelect: (range) => { tell("selection", range ?? []); if (range) ask(() => view.say(NOBODY)); },
    onChoose: (place, time) => { tell("chosen", { place, time, whole }); ask(() => view.say(NOBODY)); },
    onExport: asks ? (range) => { model.send({ ask: "export", range }); ask(() => exportHere("No kernel answers. ")(range)); } : exportHere(""),
  });
  const show = async (bytes, stay) => {
    try {
      await view.show(bytes, { stay });
      view.mark(model.get("selection").length ? model.get("selection") : null);
      view.answer(model.get("tables"));
    } catch (error) {
      host.textContent = `The timeline cannot be shown: ${error.message}`;
    }
  };
  const saved = () => show(bytesOf(model.get("picture")), false);
  const mark = () => view.picture && view.mark(model.get("selection").length ? model.get("selection") : null);
  const answer = () => view.answer(model.get("tables"));
  const receive = (content, buffers) => {
    if (content.answered) clearTimeout(silence);
    if (content.whole !== true || !buffers?.length) return;
    whole = true;
    show(bytesOf(buffers[0]), true);
  };
  const renewed = () => {
    whole = model.get("complete");
    saved().then(askWhole);
  };
  // The whole of a large run is not kept in the notebook: a running kernel sends it when somebody looks.
  const askWhole = () => { if (!model.get("complete")) model.send({ ask: "whole" }); };
  model.on("change:picture", renewed);
  model.on("change:selection", mark);
  model.on("change:tables", answer);
  model.on("msg:custom", receive);
  saved().then(askWhole);
  return () => {
    model.off("change:picture", renewed);
    model.off("change:selection", mark);
    model.off("change:tables", answer);
    model.off("msg:custom", receive);
    clearTimeout(silence);
    view.destroy();
  };
}

export default { render };
