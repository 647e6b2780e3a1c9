"use strict";

/** The charts of the index: each is a number in a chunk of charts. */
(() => {
  async function show(element) {
    const charts = await GMR.load(element.dataset.chart);
    const { traces, layout } = charts[Number(element.dataset.number)];
    await GMR.chart(element, traces, layout);
  }

  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("[data-chart]").forEach(show));
})();
