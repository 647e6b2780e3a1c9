"use strict";

/** All cells: a row a method, backbone and seed, a column a benchmark. */
(() => {
  const { element, inline, address, cells } = GMR.explorer;

  const rowOf = (cell) => JSON.stringify([cell.method, cell.backbone, cell.seed]);

  function entry(cell) {
    if (!cell) return element("td", { class: "number faint" }, "–");
    const share = `${((100 * cell.right) / cell.items).toFixed(1)} %`;
    const told = `${cell.title}, ${cell.backbone}, seed ${cell.seed}, ${cell.benchmark_title}: ${cell.right} of ${cell.items} right`;
    const link = element("a", { href: address.href({ cell: cell.name }), title: told, "data-cell": cell.name }, share);
    return element("td", { class: "number" }, link);
  }

  function row(of, benchmarks) {
    const [first] = of;
    const cell = new Map(of.map((one) => [one.benchmark, one]));
    return element(
      "tr",
      { "data-text": `${first.method} ${first.title} ${first.backbone} seed ${first.seed}`.toLowerCase() },
      element("th", { scope: "row" }, inline(first.title)),
      element("td", {}, inline(first.backbone)),
      element("td", { class: "number" }, String(first.seed)),
      benchmarks.map(([key]) => entry(cell.get(key)))
    );
  }

  function grid(all) {
    const benchmarks = [...new Map(all.map((one) => [one.benchmark, one.benchmark_title]))];
    const rows = new Map();
    for (const one of all) rows.set(rowOf(one), [...(rows.get(rowOf(one)) || []), one]);
    const heads = ["Method", "Backbone", "Seed", ...benchmarks.map(([, title]) => title)];
    return element(
      "table",
      { class: "cells" },
      element("caption", {}, "Share of right answers; follow a number to its items"),
      element("thead", {}, element("tr", {}, heads.map((title) => element("th", { scope: "col" }, title)))),
      element("tbody", {}, [...rows.values()].map((of) => row(of, benchmarks)))
    );
  }

  /** The view of all cells. */
  GMR.explorer.showCells = async () => {
    const all = await cells();
    const table = grid(all);
    const find = (event) => {
      const wanted = event.target.value.toLowerCase();
      for (const one of table.tBodies[0].rows) one.hidden = !one.dataset.text.includes(wanted);
    };
    const input = element("input", { type: "search", on: { input: find } });
    return [
      element("h2", { tabindex: "-1" }, "All cells"),
      element("p", { class: "controls" }, element("label", {}, "Method or backbone ", input)),
      element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "All cells" }, table),
    ];
  };
})();
