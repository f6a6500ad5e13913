// The view alone in a document: the picture is text in an inert element.
import { TimelineView } from "./timeline.js";

const host = document.getElementById("timeline");
const packed = document.getElementById("picture").textContent;
new TimelineView(host).show(Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0)))
  .catch((error) => { host.textContent = `The timeline cannot be shown: ${error.message}`; });
