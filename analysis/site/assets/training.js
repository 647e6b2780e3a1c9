"use strict";

/** The training page: what is chosen stands in the address, and the charts follow it. */
window.GMR = window.GMR || {};

(() => {
  const CONTROLS = ["method", "benchmark", "measure", "seed", "points", "beside"];
  const DEFAULTS = { method: "gmr", measure: "overview", seed: "all", points: "updates", beside: "" };
  const control = (name) => document.getElementById(name);
  let rows = [];
  let latest = 0;

  async function begin() {
    rows = await GMR.load("training/index");
    document.querySelector("form.training").hidden = false;
    for (const name of CONTROLS) control(name).addEventListener("change", choose);
    document.querySelector("form.training").addEventListener("submit", (event) => event.preventDefault());
    window.addEventListener("hashchange", show);
    await show();
  }

  /** What the address asks for, as far as there is such a thing. */
  function asked() {
    const given = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    const wanted = { ...DEFAULTS, ...given };
    const method = (rows.find((row) => row.key === wanted.method) || rows[0]).key;
    const own = rows.filter((row) => row.key === method);
    const row = own.find((one) => one.benchmark === wanted.benchmark) || own[0];
    const others = rows.filter((one) => one.benchmark === row.benchmark && one.key !== method);
    const beside = others.find((one) => one.key === wanted.beside) || null;
    return { ...wanted, method, benchmark: row.benchmark, row, own, others, beside };
  }

  function choose() {
    const values = CONTROLS.map((name) => [name, control(name).value]);
    const changed = values.filter(([name, value]) => value !== DEFAULTS[name]);
    location.hash = new URLSearchParams(changed).toString();
  }

  async function show() {
    const turn = ++latest;
    const choice = asked();
    try {
      const [one, other] = await Promise.all([choice.row, choice.beside].map((row) => row && GMR.load(row.chunk)));
      // The reader may have chosen something else meanwhile.
      if (turn !== latest) return;
      settle(choice, one, other);
      draw(choice, one, other);
    } catch (error) {
      if (turn === latest) say(error.message);
    }
  }

  /** Let the controls offer what there is, and say what is shown. */
  function settle(choice, one, other) {
    const methods = [...new Map(rows.map((row) => [row.key, row.title]))];
    const seeds = [one, other].flatMap((row) => (row ? row.seeds.map(({ seed }) => String(seed)) : []));
    const charts = [one, other].flatMap((row) => (row ? [...row.lines, ...row.choices] : []));
    const measures = new Map([["overview", "overview"], ...charts.map((chart) => [chart.key, chart.title])]);
    if (!measures.has(choice.measure)) choice.measure = DEFAULTS.measure;
    if (!seeds.includes(choice.seed)) choice.seed = DEFAULTS.seed;
    offer("method", methods, choice.method);
    offer("benchmark", choice.own.map((row) => [row.benchmark, row.benchmark_title]), choice.benchmark);
    offer("measure", [...measures], choice.measure);
    offer("seed", [["all", "all"], ...[...new Set(seeds)].map((seed) => [seed, seed])], choice.seed);
    offer("beside", [["", "nothing"], ...choice.others.map((row) => [row.key, row.title])], other ? other.key : "");
    if (!["updates", "epochs"].includes(choice.points)) choice.points = DEFAULTS.points;
    control("points").value = choice.points;
  }

  function offer(name, options, value) {
    control(name).replaceChildren(...options.map(([key, text]) => new Option(text, key)));
    control(name).value = value;
  }

  function draw(choice, one, other) {
    say("");
    const heading = node("h2", "", `${one.title}${other ? ` and ${other.title}` : ""} on ${one.benchmark_title}`);
    const keys = keysOf(choice, one, other);
    const grid = node("div", other ? "training-pairs" : keys.length === 1 ? "training-one" : "training-grid");
    document.getElementById("charts").replaceChildren(heading, ...[one, other].filter(Boolean).map(introduced), grid);
    if (!keys.length) grid.append(node("p", "faint", "There is no curve: nothing was trained and nothing was chosen."));
    for (const key of keys) {
      const shown = [one, other].filter(Boolean).map((row) => [row, figureOf(key, row, choice)]);
      const [left, right] = shown.map(([, figure]) => figure);
      if (left && right && left.unit === right.unit) GMR.sameAxis(left, right);
      grid.append(...shown.map(([row, figure]) => framed(row, figure, Boolean(other))));
    }
  }

  function keysOf(choice, ...both) {
    const charts = both.filter(Boolean).flatMap((row) => [...row.lines.filter(({ main }) => main), ...row.choices]);
    return choice.measure === "overview" ? [...new Set(charts.map(({ key }) => key))] : [choice.measure];
  }

  /** The chart of a key as GMR.chart takes it; null where a row has none. */
  function figureOf(key, row, choice) {
    const lines = row.lines.find((chart) => chart.key === key);
    if (lines) return { ...lines, ...GMR.trainingLines(lines, row, choice) };
    const shares = row.choices.find((chart) => chart.key === key);
    return shares ? { ...shares, unit: "%", ...GMR.trainingShares(shares, choice.seed) } : null;
  }

  function framed(row, figure, isPair) {
    if (!figure) return node("p", "faint", `${row.title} has no such measure.`);
    const frame = node("figure", "");
    const place = node("div", "chart");
    place.dataset.title = `${row.title}, ${row.benchmark_title}: ${figure.title}`;
    const heading = isPair ? `${figure.title}, ${row.title}` : figure.title;
    frame.append(node("h3", "", heading), node("p", "faint", figure.about), place);
    GMR.chart(place, figure.traces, figure.layout).catch((error) => say(error.message));
    return frame;
  }

  function introduced(row) {
    const runs = row.seeds.map(({ seed, run }) => `seed ${seed} is run ${run}`).join(", ");
    const seeds = row.seeds.length > 1 ? " Thin lines are seeds, thick ones their mean." : "";
    const notes = row.notes.length ? ` Conditions: ${row.notes.join("; ")}.` : "";
    return node("p", "", `${row.title}: ${row.points} ${runs[0].toUpperCase()}${runs.slice(1)}.${seeds}${notes}`);
  }

  function node(tag, className, text = "") {
    const made = document.createElement(tag);
    if (className) made.className = className;
    made.textContent = text;
    return made;
  }

  function say(text) {
    document.getElementById("state").textContent = text;
  }

  document.addEventListener("DOMContentLoaded", () => begin().catch((error) => say(error.message)));
})();
