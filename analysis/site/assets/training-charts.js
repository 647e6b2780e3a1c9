"use strict";

/** The charts of the training page: what the data of a row become for plotly. */
window.GMR = window.GMR || {};

(() => {
  const HEIGHT = 340;
  const LEGEND = { orientation: "h", y: -0.3, yanchor: "top", traceorder: "normal" };
  const THIN = { width: 1 };
  const THICK = { width: 2.5 };

  /**
   * A chart of measures: every seed as a thin line, their mean as a thick one.
   *
   * @param {object} chart One of `lines` of a row.
   * @param {object} row The row.
   * @param {{seed: string, points: string}} choice The seed, or "all"; and "updates" or "epochs".
   * @returns {{traces: object[], layout: object}} For GMR.chart.
   */
  GMR.trainingLines = (chart, row, choice) => {
    const drawn = chart.lines.flatMap((line, number) => {
      const curves = chart.stacked ? whole(line[choice.points], choice.seed) : chosen(line[choice.points], choice.seed);
      return curves.map(([seed, curve]) => lineOf(chart, line, { seed, curve, number, isOne: curves.length === 1 }));
    });
    const several = chart.lines.length > 1 || drawn.length > 1;
    const layout = {
      height: HEIGHT,
      showlegend: several,
      legend: LEGEND,
      xaxis: { title: { text: row.unit }, ...integers(drawn) },
      yaxis: { title: { text: chart.unit }, rangemode: "tozero", ...(chart.stacked ? { range: [0, 100] } : {}) },
    };
    return { traces: row.unit === "round" ? told(drawn, row, choice) : drawn, layout };
  };

  /**
   * A chart of choices: a bar an epoch, the last one the test.
   *
   * @param {object} chart One of `choices` of a row.
   * @param {string} seed A seed, or "all" for the mean.
   * @returns {{traces: object[], layout: object}} For GMR.chart.
   */
  GMR.trainingShares = (chart, seed) => {
    const [[name, found]] = whole(chart.seeds, seed);
    const places = found.columns.map((column) => (column === "test" ? column : `epoch ${column}`));
    const traces = chart.options.map((option, number) => ({
      type: "bar",
      name: option,
      x: places,
      y: found.shares[number],
      marker: { color: GMR.series(number), pattern: { shape: places.map((place) => (place === "test" ? "/" : "")) } },
      hovertemplate: "%{y:.1f} %<extra>%{fullData.name}, %{x}</extra>",
    }));
    const layout = {
      height: HEIGHT,
      barmode: "stack",
      bargap: 0.08,
      xaxis: { title: { text: name === "mean" ? "mean over the seeds" : `seed ${name}` }, type: "category" },
      yaxis: { title: { text: "%" }, range: [0, 100] },
      legend: LEGEND,
    };
    return { traces, layout };
  };

  /** Give two charts of one unit the same axis. */
  GMR.sameAxis = (one, other) => {
    const values = [one, other].flatMap(({ traces }) => traces.flatMap((trace) => trace.y.filter(Number.isFinite)));
    if (one.layout.yaxis.range || !values.length) return;
    const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
    const room = 0.05 * (high - low || 1);
    const range = [low < 0 ? low - room : 0, high > 0 ? high + room : 0];
    for (const { layout } of [one, other]) layout.yaxis.range = range;
  };

  /** Seeds and then their mean; or one seed alone. */
  function chosen(curves, seed) {
    if (seed !== "all") return curves[seed] ? [[seed, curves[seed]]] : [];
    return Object.keys(curves).sort(byNumber).map((key) => [key, curves[key]]);
  }

  /** What is made of parts shows one seed, or the mean. */
  function whole(curves, seed) {
    const shown = chosen(curves, seed);
    return shown.length > 1 ? shown.slice(-1) : shown;
  }

  const byNumber = (one, other) => (one === "mean") - (other === "mean") || Number(one) - Number(other);

  function lineOf(chart, line, { seed, curve, number, isOne }) {
    const isMean = seed === "mean";
    const alone = Object.keys(line.updates).length === 1;
    const colour = GMR.series(number);
    return {
      type: "scatter",
      mode: isMean || chart.stacked ? "lines" : "lines+markers",
      name: alone ? line.name : `${line.name}, ${isMean ? "mean" : `seed ${seed}`}`,
      meta: { seed },
      x: curve.x,
      y: curve.y,
      legendgroup: line.name,
      showlegend: isMean || alone || isOne,
      opacity: isMean || alone || chart.stacked ? 1 : 0.55,
      line: { color: colour, ...(isMean || alone ? THICK : THIN) },
      marker: { color: colour, size: alone ? 6 : 4 },
      ...(chart.stacked ? { stackgroup: "whole", line: { color: colour, width: 0.5 } } : {}),
    };
  }

  /** Few updates have a tick each, and no number between two of them ever has one. */
  function integers(traces) {
    const last = Math.max(1, ...traces.flatMap((trace) => trace.x));
    return last <= 20 ? { dtick: 1, range: [0.5, last + 0.5] } : { tickformat: "d" };
  }

  /** Rounds of a search say what they tried; the chosen one has a star. */
  function told(traces, row, choice) {
    const seeds = choice.seed === "all" ? Object.keys(row.rounds) : [choice.seed];
    const withTexts = traces.map((trace) => ({ ...trace, ...texts(trace, row.rounds[trace.meta.seed]) }));
    return [...withTexts, ...seeds.flatMap((seed) => star(traces, row.rounds[seed], seed))];
  }

  function texts(trace, rounds) {
    if (!rounds) return {};
    const text = trace.x.map((round) => rounds.tried[round] || "");
    return { text, hovertemplate: "round %{x}: %{y}<br>%{text}<extra>%{fullData.name}</extra>" };
  }

  function star(traces, rounds, seed) {
    const found = traces.find((trace) => trace.meta.seed === seed);
    const place = found && rounds ? found.x.indexOf(rounds.chosen) : -1;
    if (place < 0) return [];
    const marker = { symbol: "star", size: 15, color: "var(--ink)" };
    const name = traces.some((trace) => trace.meta.seed !== seed) ? `chosen, seed ${seed}` : "chosen";
    return [{ type: "scatter", mode: "markers", name, x: [found.x[place]], y: [found.y[place]], marker }];
  }
})();
