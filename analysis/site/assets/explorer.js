"use strict";

/** The explorer: shows what the address names, whenever that changes, and listens to keys. */
(() => {
  const { element, inline, address, nameOf, cell, showCells, showItems, showTrajectory } = GMR.explorer;
  const view = document.getElementById("explorer");
  const way = document.getElementById("way");
  const trouble = document.getElementById("trouble");
  let shown = null;

  const kindOf = (place) => (place.cell === undefined ? "cells" : place.item === undefined ? "items" : "trajectory");
  const SHOW = { cells: showCells, items: showItems, trajectory: showTrajectory };

  async function crumbs(place) {
    const ofCell = { ...place, item: undefined, step: undefined };
    const parts = [element("a", { href: address.href({}) }, "All cells")];
    if (place.cell) parts.push(element("a", { href: address.href(ofCell) }, await cell(place.cell).then((of) => `${nameOf(of)} on ${of.benchmark_title}`)));
    if (place.item) parts.push(inline(place.item));
    parts.at(-1).setAttribute("aria-current", "page");
    return element("ol", {}, parts.map((part) => element("li", {}, part)));
  }

  function mark(number) {
    for (const step of view.querySelectorAll("[data-step]")) step.classList.toggle("named", step.dataset.step === number);
    const step = view.querySelector(".step.named");
    if (!step) return;
    step.scrollIntoView();
    step.querySelector("h4").focus({ preventScroll: true });
  }

  async function show() {
    const place = address.here();
    const now = address.href({ ...place, step: undefined });
    if (shown !== now) {
      shown = now;
      let parts;
      try {
        parts = [await crumbs(place), await SHOW[kindOf(place)](place)];
        trouble.hidden = true;
      } catch (error) {
        parts = [element("ol", {}, element("li", {}, element("a", { href: "#" }, "All cells"))), []];
        trouble.textContent = error.message;
        trouble.hidden = false;
      }
      // Who went on meanwhile does not want this any more.
      if (shown !== now) return;
      const isFirst = !view.hasChildNodes();
      way.replaceChildren(parts[0]);
      view.replaceChildren(...parts[1]);
      if (!isFirst) view.querySelector("h2")?.focus({ preventScroll: true });
      window.scrollTo(0, 0);
    }
    mark(place.step);
  }

  function walk(by) {
    const links = [...view.querySelectorAll("table.items a")];
    const at = links.indexOf(document.activeElement);
    links[at < 0 ? 0 : Math.min(links.length - 1, Math.max(0, at + by))]?.focus();
  }

  const follow = (rel) => view.querySelector(`a[rel=${rel}]`)?.click();
  const KEYS = {
    cells: {},
    items: { ArrowDown: () => walk(1), ArrowUp: () => walk(-1), Escape: () => address.go({ cell: "" }) },
    trajectory: {
      ArrowRight: () => follow("next"),
      ArrowLeft: () => follow("prev"),
      Escape: () => address.go({ item: "", step: "" }),
    },
  };

  addEventListener("keydown", (event) => {
    const isMeant = !event.ctrlKey && !event.metaKey && !event.altKey && !event.target.closest("input, select, textarea");
    const act = isMeant && KEYS[kindOf(address.here())][event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  addEventListener("hashchange", show);
  // Typing changes the address and the items, so whatever comes next is another view.
  view.addEventListener("input", () => {
    shown = null;
  });
  show();
})();
