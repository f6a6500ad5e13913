"""The timeline as a canvas: a million spans in one picture, in a notebook and on the page of a report.

`picture` makes what is drawn out of a run, with `kinds` (colours, patterns), `memory` (device memory), `rows` (spans
that overlap) and `coded` (names as numbers); `merge` merges the shortest spans of a picture that is too large to keep.
`columns` is its binary.

The scripts are plain ES modules: `columns.js` reads the binary, `bins.js` chooses what is drawn at a zoom, `draw.js`
and `memory.js` draw, `timeline.js` is the view, with `furniture.js` (what stands around the canvases), `pointer.js`,
`keys.js`, `tell.js` (bars in words), `sums.js` (the table; search), `perfetto.js` (export by the browser), `parts.js`
and `words.js`. `scripts` joins them to one file, for widgets (`widget.js` speaks anywidget's contract, `keep.js` has
views saved without a kernel), and `frame` puts one picture into a page.
"""

from cuzklab.report.canvas.picture import Picture, picture_of

__all__ = ["Picture", "picture_of"]
