// The view as a widget: anywidget's contract, nothing of any one notebook.
import { TimelineView } from "./timeline.js";

// Traits may come as DataView or as an array of bytes, by front end.
const bytesOf = (value) => (value instanceof DataView ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength) : new Uint8Array(value));

function render({ model, el }) {
  const host = el.appendChild(document.createElement("div"));
  const tell = (name, value) => {
    model.set(name, value);
    model.save_changes();
  };
  const view = new TimelineView(host, {
    onSelect: (range) => tell("selection", range ?? []),
    onChoose: (place, time) => tell("chosen", { place, time, whole }),
    onExport: model.get("exports") ? (range) => model.send({ ask: "export", range }) : null,
  });
  let whole = model.get("complete"); // whether the picture in view is all of it
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
    view.destroy();
  };
}

export default { render };
