// Draws the page's figures: inflates plotly.js, gives each figure the page's colours, and redraws them when the
// colour scheme changes or the page is printed.
(async () => {
  "use strict";
  const plots = [...document.querySelectorAll(".plot")];
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const PRINTED_WIDTH = 670; // of A4 and of letter, less margins, in CSS pixels
  let printing = false;

  // Before the figures: phones start with the list of contents closed.
  const contents = document.querySelector(".contents details");
  const wide = matchMedia("(min-width: 75rem)");
  const fold = () => {
    contents.open = wide.matches;
    contents.querySelector("summary").tabIndex = wide.matches ? -1 : 0; // beside the text there is nothing to fold
  };
  wide.addEventListener("change", fold);
  fold();
  followReading();
  reachByKeys();

  if (!plots.length) return;
  try {
    const packed = document.getElementById("plotly-bundle");
    const bytes = Uint8Array.from(atob(packed.textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
    packed.remove();
  } catch (error) {
    for (const plot of plots) fail(plot, "This browser cannot unpack the figures; the tables below them hold the numbers.");
    return;
  }

  const options = {
    responsive: true,
    displaylogo: false,
    modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"],
    toImageButtonOptions: { scale: 2 },
    scrollZoom: false,
  };
  const figures = new Map();
  for (const plot of plots) {
    const source = document.querySelector(`script[data-figure="${plot.id}"]`);
    figures.set(plot, JSON.parse(source.textContent));
    try {
      const { data, layout } = dressed(plot);
      await Plotly.newPlot(plot, data, layout, options);
      plot.style.minHeight = "";
    } catch (error) {
      console.error(error);
      fail(plot, "This figure could not be drawn; the table below it holds the numbers.");
    }
  }
  document.body.dataset.scheme = dark.matches ? "dark" : "light";
  document.body.dataset.drawn = plots.filter((plot) => plot.querySelector(".main-svg")).length;

  dark.addEventListener("change", redraw);
  let narrow = innerWidth < 640;
  addEventListener("resize", () => {
    if (narrow !== innerWidth < 640) { narrow = innerWidth < 640; redraw(); }
  });
  addEventListener("beforeprint", () => { printing = true; redraw(); });
  addEventListener("afterprint", () => { printing = false; redraw(); });

  async function redraw() {
    // All are begun before the first is awaited: a printer does not wait.
    await Promise.all(plots.map((plot) => {
      const { data, layout } = dressed(plot);
      return Plotly.react(plot, data, layout, options);
    }));
    document.body.dataset.scheme = dark.matches ? "dark" : "light";
  }

  // A copy of the figure in the page's ink: figures carry a middling grey that both schemes can show.
  function dressed(plot) {
    const figure = structuredClone(figures.get(plot));
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const ink = printing ? "#1c2127" : colour("--ink");
    const muted = printing ? "#5c6670" : colour("--muted");
    const paper = printing ? "#ffffff" : colour("--paper");
    const raised = printing ? "#f6f7f9" : colour("--raised");
    const small = innerWidth < 640;
    for (const trace of figure.data) {
      // A scale with a middle of its own keeps it.
      if (trace.type === "heatmap" && trace.colorscale.length === 2) trace.colorscale = [[0, raised], [1, trace.colorscale.at(-1)[1]]];
    }
    const layout = figure.layout;
    layout.font = { ...layout.font, color: muted, size: small ? 11 : layout.font?.size ?? 13 };
    layout.hoverlabel = { ...layout.hoverlabel, bgcolor: paper, bordercolor: muted, font: { ...layout.hoverlabel?.font, color: ink } };
    if (printing) Object.assign(layout, { autosize: false, width: PRINTED_WIDTH });
    layout.legend = { ...layout.legend, orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom" };
    layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: muted, activecolor: ink, orientation: "h" };
    for (const note of layout.annotations ?? []) {
      note.font = { color: ink, ...note.font };
      if (note.bgcolor) note.bgcolor = paper;
    }
    if (small) {
      layout.dragmode = false;
      const longest = Math.max(0, ...figure.data.map((trace) => trace.name?.length ?? 0));
      const columns = layout.meta?.narrow && longest < 20 ? { entrywidth: 0.5, entrywidthmode: "fraction" } : {};
      Object.assign(layout.legend, { ...columns, font: { ...layout.legend.font, size: 10 } });
      layout.annotations = (layout.annotations ?? []).filter((note) => note.name !== "wide");
      const entries = figure.data.filter((trace) => trace.showlegend !== false).length;
      if (entries > 1 && layout.height) layout.height += 20 * Math.ceil(entries / 2);
      Object.assign(layout, layout.meta?.narrow ?? {});
    }
    return figure;
  }

  function fail(plot, message) {
    plot.classList.add("undrawn");
    plot.style.minHeight = "";
    plot.textContent = message;
    const table = plot.closest(".cz-figure")?.querySelector("details");
    if (table) table.open = true;
  }

  // What scrolls sideways can be scrolled by keys, and what a link leads to is opened first.
  function reachByKeys() {
    const mark = () => {
      for (const box of document.querySelectorAll(".cz-table, pre")) {
        if (box.checkVisibility() && box.scrollWidth > box.clientWidth + 1) {
          box.tabIndex = 0;
          box.setAttribute("role", "region");
          box.setAttribute("aria-label", box.querySelector("caption")?.textContent ?? "wide text");
        } else for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
      }
    };
    const show = () => {
      const place = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
      if (!place) return;
      const closed = [];
      for (let box = place.closest("details"); box; box = box.parentElement.closest("details")) if (!box.open) closed.push(box);
      for (const box of closed) box.open = true;
      if (closed.length) place.scrollIntoView();
    };
    addEventListener("resize", mark);
    addEventListener("hashchange", show);
    document.addEventListener("toggle", mark, true);
    mark();
    show();
  }

  // Marks in the list of contents which section is being read.
  function followReading() {
    const links = new Map([...document.querySelectorAll(".contents a")].map((a) => [a.hash.slice(1), a]));
    const headings = [...links.keys()].map((id) => document.getElementById(id)).filter(Boolean);
    const mark = () => {
      const passed = headings.filter((heading) => heading.getBoundingClientRect().top < innerHeight * 0.3);
      const current = passed.at(-1) ?? headings[0];
      for (const [id, link] of links) {
        if (id === current?.id) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    };
    addEventListener("scroll", mark, { passive: true });
    mark();
  }
})();
