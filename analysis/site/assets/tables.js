"use strict";

window.GMR = window.GMR || {};

/**
 * Tables that sort by a click or the Enter key on a heading and filter as one types. Numbers sort as numbers, whatever
 * stands behind them: `75.4 ± 2`, `78.12† +3.4 70.2–84.4`, `×1.3`.
 */
(() => {
  const NOTHING = new Set(["", "–", "—", "-"]);
  const NUMBER = /^×?([+−-]?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[+-]?\d+)?)(?![\w.])/i;
  const FEW = 6;

  /**
   * Make a table sort and filter.
   *
   * @param {HTMLTableElement} table With a head; cells that span rows are repeated, since rows part when they are sorted.
   *   `data-choose` names headings, divided by "|", by whose values rows can be chosen.
   * @returns {DataTable} See https://datatables.net/reference/api/.
   */
  GMR.table = (table) => {
    unspan(table);
    // A heading over several columns sorts none of them.
    table.querySelectorAll("thead th[colspan]").forEach((head) => head.setAttribute("data-dt-order", "disable"));
    orderNumbers(table);
    const rows = table.tBodies[0].rows.length;
    const made = new DataTable(table, {
      paging: false,
      order: [],
      autoWidth: false,
      layout: {
        topStart: null,
        topEnd: rows >= FEW ? "search" : null,
        bottomStart: rows >= FEW ? "info" : null,
        bottomEnd: null,
      },
      language: { search: "Filter", info: "_TOTAL_ rows", infoFiltered: "of _MAX_", infoEmpty: "no row" },
    });
    scrollable(made.table().container(), table);
    const names = (table.dataset.choose || "").split("|").filter(Boolean);
    names.reverse().forEach((name) => chooser(made, name));
    return made;
  };

  /** A number by which a text sorts; `null` for a text that is none. */
  GMR.numberOf = (text) => {
    const found = NUMBER.exec(text.trim());
    return found ? Number(found[1].replaceAll(",", "").replace("−", "-")) : null;
  };

  function unspan(table) {
    for (const row of [...table.tBodies[0].rows]) {
      for (const cell of [...row.cells].filter((one) => one.rowSpan > 1)) {
        let below = row;
        for (let left = cell.rowSpan - 1; left > 0; left -= 1) {
          below = below.nextElementSibling;
          const copy = cell.cloneNode(true);
          copy.rowSpan = 1;
          copy.classList.add("repeated");
          below.insertBefore(copy, below.cells[cell.cellIndex] || null);
        }
        cell.rowSpan = 1;
      }
      for (const cell of row.cells) if (cell.getAttribute("scope") === "rowgroup") cell.setAttribute("scope", "row");
    }
  }

  /** DataTables sorts by `data-order`; a column counts as numbers where every entry that says anything is one. */
  function orderNumbers(table) {
    const rows = [...table.tBodies[0].rows];
    const width = rows.length ? rows[0].cells.length : 0;
    for (let column = 0; column < width; column += 1) {
      const cells = rows.map((row) => row.cells[column]).filter(Boolean);
      const numbers = cells.map((cell) => GMR.numberOf(cell.textContent));
      const isNothing = cells.map((cell) => NOTHING.has(cell.textContent.trim()));
      if (numbers.every((number, place) => number === null && !isNothing[place])) continue;
      if (numbers.some((number, place) => number === null && !isNothing[place])) continue;
      cells.forEach((cell, place) => {
        cell.dataset.order = isNothing[place] ? "" : String(numbers[place]);
      });
    }
  }

  function scrollable(container, table) {
    const around = table.parentElement;
    around.classList.add("scroll");
    around.tabIndex = 0;
    around.setAttribute("role", "region");
    around.setAttribute("aria-label", table.dataset.title || "Table");
    container.classList.add("controls-of-table");
  }

  function chooser(made, name) {
    const column = made.columns().header().toArray().findIndex((head) => head.textContent.trim() === name);
    if (column < 0) return;
    const values = [...new Set(made.column(column).nodes().toArray().map((cell) => cell.textContent.trim()))].sort();
    const label = document.createElement("label");
    const select = document.createElement("select");
    label.className = "controls";
    label.append(`${name} `, select);
    select.add(new Option("all", ""));
    values.forEach((value) => select.add(new Option(value, value)));
    select.addEventListener("change", () => {
      const chosen = select.value;
      made.column(column).search.fixed("chosen", chosen ? (text) => text.trim() === chosen : null).draw();
    });
    made.table().container().prepend(label);
  }

  /** Those out of sight wait, so that a page with many tables is there at once. */
  function sortWhenSeen() {
    const observer = new IntersectionObserver((entries) => {
      for (const { target } of entries.filter((entry) => entry.isIntersecting)) {
        observer.unobserve(target);
        GMR.table(target);
      }
    }, { rootMargin: "300px" });
    document.querySelectorAll("table.sortable").forEach((table) => observer.observe(table));
  }

  document.addEventListener("DOMContentLoaded", sortWhenSeen);
})();
