"use strict";

window.GMR = window.GMR || {};

/**
 * Charts: plotly with one look, drawn when they come into view, in the colours of the page's scheme, with the numbers
 * behind them as a table and downloads as PNG and SVG.
 */
(() => {
  const COLOURS = 8;
  // Pixels below which the legend stands under the chart.
  const NARROW = 700;
  const BELOW = {
    orientation: "h", y: -0.35, yanchor: "top", entrywidth: 0.45, entrywidthmode: "fraction", font: { size: 11 },
  };
  const PARTS = ["name", "text", "hovertext", "customdata"];
  const drawn = new Set();
  let library = null;

  /**
   * Draw a chart into an element, or draw it again with other data.
   *
   * @param {HTMLElement} element What is to hold it; `data-title` names it, and its files when they are saved.
   * @param {object[]} traces As plotly takes them. A colour may be `var(--NAME)` of style.css; those without one take
   *   the colours of series in turn. Names, texts and customdata are plain text, "\n" breaks a line. A trace with
   *   `hoverinfo: "skip"` is no data of its own and stays out of the table.
   * @param {object} layout As plotly takes it, without colours; `meta.columns` names the columns of the table where the
   *   titles of the axes do not.
   * @returns {Promise<void>} Settled when the table is there and, once the chart is in view, the chart.
   */
  GMR.chart = (element, traces, layout = {}) => {
    const state = element.gmrChart || frame(element);
    Object.assign(state, { traces, layout });
    state.table.replaceChildren(tableOf(traces, layout));
    return state.inView.then(plotly).then(() => draw(state));
  };

  /** The value that a variable of style.css has now, such as `GMR.colour("--ink")`. */
  GMR.colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  /** The variable of the colour of a series, by its number from 0. */
  GMR.series = (number) => `var(--series-${(number % COLOURS) + 1})`;

  function frame(element) {
    const plot = node("div", "plot waiting");
    const details = node("details", "data");
    const table = node("div", "scroll");
    table.tabIndex = 0;
    table.setAttribute("role", "region");
    table.setAttribute("aria-label", `The numbers of: ${title(element)}`);
    plot.setAttribute("role", "group");
    plot.setAttribute("aria-label", `Chart: ${title(element)}; its numbers are in the table below it`);
    details.append(node("summary", "", "The numbers of this chart"), table);
    element.replaceChildren(plot, details);
    element.gmrChart = { element, plot, table, inView: seen(plot) };
    return element.gmrChart;
  }

  const title = (element) => element.dataset.title || "chart";

  function node(tag, className = "", text = "") {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text) made.textContent = text;
    return made;
  }

  function seen(plot) {
    return new Promise((resolve) => {
      const observer = new IntersectionObserver((entries) => {
        if (!entries.some((entry) => entry.isIntersecting)) return;
        observer.disconnect();
        resolve();
      }, { rootMargin: "200px" });
      observer.observe(plot);
      window.addEventListener("beforeprint", () => resolve());
    });
  }

  function plotly() {
    library = library || new Promise((resolve, reject) => {
      const script = node("script");
      script.src = `${document.body.dataset.base}site/lib/plotly.min.js`;
      script.onload = resolve;
      script.onerror = () => reject(new Error(`${script.src} cannot be read`));
      document.head.append(script);
    });
    return library;
  }

  function draw(state) {
    drawn.add(state);
    state.plot.classList.remove("waiting");
    const traces = state.traces.map((trace, number) => coloured(trace, number)).map(plainTexts).map(resolved);
    return Plotly.react(state.plot, traces, resolved(dressed(state)), settings(state));
  }

  function coloured(trace, number) {
    const colour = GMR.series(number);
    const marker = { color: colour, ...trace.marker };
    const line = { color: colour, ...trace.line };
    return { ...trace, marker, line };
  }

  /** Plotly takes some markup in texts; what is data must not be any. */
  function plainTexts(trace) {
    const changed = Object.fromEntries(PARTS.filter((key) => key in trace).map((key) => [key, escaped(trace[key])]));
    return { ...trace, ...changed };
  }

  function escaped(value) {
    if (Array.isArray(value)) return value.map(escaped);
    if (typeof value !== "string") return value;
    return value.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("\n", "<br>");
  }

  /** The same with every `var(--NAME)` as the colour that it is now. */
  function resolved(value) {
    if (typeof value === "string") {
      const variable = /^var\((--[\w-]+)\)$/.exec(value);
      return variable ? GMR.colour(variable[1]) : value;
    }
    if (Array.isArray(value)) return value.map(resolved);
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, resolved(part)]));
  }

  function dressed({ element, plot, layout }) {
    const axes = Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key));
    const look = { gridcolor: "var(--line)", zerolinecolor: "var(--line)", linecolor: "var(--faint)", automargin: true };
    const dressedAxes = [...new Set(["xaxis", "yaxis", ...axes])].map((key) => [key, { ...look, ...layout[key] }]);
    return {
      paper_bgcolor: "var(--paper)",
      plot_bgcolor: "var(--paper)",
      font: { color: "var(--ink)", family: "system-ui, sans-serif", size: 13 },
      hoverlabel: { bgcolor: "var(--shade)", bordercolor: "var(--line)", font: { color: "var(--ink)" }, align: "left" },
      hovermode: "closest",
      margin: { t: 40, r: 20, b: 50, l: 60 },
      legend: plot.clientWidth < NARROW ? BELOW : {},
      ...layout,
      ...Object.fromEntries(dressedAxes),
      annotations: [...(layout.annotations || []), ...mark()],
      meta: { ...layout.meta, title: title(element) },
    };
  }

  /** What the picture says of its replies, wherever it is saved to. */
  function mark() {
    const words = document.body.dataset.mark;
    if (!words) return [];
    const place = { xref: "paper", yref: "paper", x: 0, y: 1, yshift: 6, xanchor: "left", yanchor: "bottom" };
    return [{ ...place, text: `<b>${words}</b>`, showarrow: false, font: { color: "var(--simulated)", size: 12 } }];
  }

  function settings({ element }) {
    const filename = title(element).replace(/[^\p{L}\p{N}]+/gu, "-").toLowerCase();
    const svg = {
      name: "Save as SVG",
      title: "Save as SVG",
      icon: Plotly.Icons.disk,
      click: (plot) => Plotly.downloadImage(plot, { format: "svg", filename }),
    };
    return {
      responsive: true,
      displaylogo: false,
      modeBarButtonsToRemove: ["lasso2d", "select2d"],
      modeBarButtonsToAdd: [svg],
      toImageButtonOptions: { format: "png", filename, scale: 2 },
    };
  }

  function tableOf(traces, layout) {
    const shown = traces.filter((trace) => trace.hoverinfo !== "skip");
    const table = node("table");
    const [x, y] = (layout.meta && layout.meta.columns) || ["x", "y"].map((axis) => axisTitle(layout[`${axis}axis`], axis));
    const hasNames = shown.some((trace) => trace.name);
    const hasTexts = shown.some((trace) => Array.isArray(trace.text));
    const hasBars = shown.some((trace) => trace.error_y && trace.error_y.array);
    const heads = [...(hasNames ? ["series"] : []), ...(hasTexts ? ["point"] : []), x, y, ...(hasBars ? ["low", "high"] : [])];
    const head = table.createTHead().insertRow();
    for (const text of heads) head.append(Object.assign(node("th", "", text), { scope: "col" }));
    const body = table.createTBody();
    for (const trace of shown) {
      for (const place of trace.y.keys()) {
        const row = body.insertRow();
        if (hasNames) row.append(node("td", "", String(trace.name || "")));
        if (hasTexts) row.append(node("td", "", String((trace.text || [])[place] || "")));
        for (const value of [(trace.x || [])[place], trace.y[place], ...(hasBars ? reach(trace, place) : [])]) {
          row.append(node("td", "number", number(value)));
        }
      }
    }
    return table;
  }

  function axisTitle(axis, otherwise) {
    const given = axis && axis.title;
    return (given && (given.text || given)) || otherwise;
  }

  function reach(trace, place) {
    const bars = trace.error_y;
    if (!bars || !bars.array) return ["", ""];
    const below = bars.arrayminus || bars.array;
    return [trace.y[place] - below[place], trace.y[place] + bars.array[place]];
  }

  const number = (value) => (typeof value === "number" ? String(Number(value.toPrecision(6))) : String(value ?? ""));

  document.addEventListener("gmr-theme", () => drawn.forEach((state) => draw(state)));
})();
