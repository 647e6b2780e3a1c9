"use strict";

/** One item: the question, and one trajectory or two side by side. */
(() => {
  const { element, facts, cost, count, many, verdict, inline, block, folded, address } = GMR.explorer;
  const { nameOf, chosen, besides, cell, record, said, stepOf } = GMR.explorer;

  function answered(one) {
    const { text } = one;
    const also = Object.entries(one.also).map(([rule, isRight]) => `${rule}: ${isRight ? "right" : "wrong"}`);
    const why = [one.status === "graded" ? "" : one.status.replaceAll("_", " "), one.detail].filter((part) => part);
    return [
      facts(
        ["verdict", [verdict(one.verdict), why.length ? ["; ", inline(why.join(": "))] : null]],
        ["second opinion", also.length ? also.join(", ") : null],
        ["extracted", one.extracted === null ? "nothing" : block(text(one.extracted))]
      ),
      folded(`Final answer, ${count(text(one.answer).length)} characters`, () => [block(text(one.answer))]),
    ];
  }

  function took(totals) {
    const spent = `${many(totals.calls, "call")}, ${count(totals.prompt_tokens)} + ${count(totals.completion_tokens)} tokens`;
    return facts(
      ["took", `${many(totals.depth, "step")}, ${spent}`],
      ["cost", [cost(totals.cost_total), ", of this in steps ", cost(totals.cost_steps)]],
      ["utility", totals.utility === null ? null : totals.utility.toPrecision(6)]
    );
  }

  function final(one, of) {
    if (!one.final.length) return [];
    const stored = one.steps.filter((step) => step.written && step.written[0]).map((step) => step.number);
    const memory = one.steps.some((step) => step.written) ? facts(["memory", stored.length ? `holds what was said in step ${stored.join(", ")}` : "empty"]) : [];
    const calls = one.final.map((call) => said(call, one.text, of.simulated));
    return [element("section", { class: "step" }, element("h4", {}, "Final call"), memory, calls)];
  }

  function column(one, of, isFirst) {
    const steps = one.steps.map((step) => stepOf(step, one.text, of.simulated, isFirst));
    return element(
      "article",
      { class: "trajectory", "data-cell": of.name },
      element("h3", {}, nameOf(of)),
      answered(one),
      took(one.totals),
      steps,
      final(one, of)
    );
  }

  function neighbours(found, id) {
    const at = found.findIndex((item) => item.id === id);
    const link = (item, rel, words) =>
      item ? element("a", { rel, href: address.changed({ item: item.id, step: "" }) }, words) : element("span", { class: "faint" }, words);
    const where = at < 0 ? "not among the items shown" : `${at + 1} of ${found.length}`;
    const [before, after] = at < 0 ? [undefined, found[0]] : [found[at - 1], found[at + 1]];
    return element("p", { class: "controls" }, link(before, "prev", "← previous"), ` ${where} `, link(after, "next", "next →"));
  }

  function copying() {
    // Where the browser lends no clipboard, the address bar has the same.
    if (!navigator.clipboard) return [];
    const copy = async (event) => {
      const { target } = event;
      await navigator.clipboard.writeText(location.href);
      target.textContent = "Copied";
    };
    return [element("button", { type: "button", on: { click: copy } }, "Copy the link to this item")];
  }

  /** The view of an item. */
  GMR.explorer.showTrajectory = async (place) => {
    const of = await cell(place.cell);
    const other = place.beside ? await cell(place.beside) : null;
    const [one, two] = await Promise.all([record(of, place.item), other && record(other, place.item)]);
    const columns = [column(one, of, true), ...(two ? [column(two, other, false)] : [])];
    return [
      element("h2", { tabindex: "-1" }, `${of.benchmark_title}, `, inline(one.id)),
      neighbours(await chosen(place), place.item),
      element("p", { class: "controls" }, await besides(of, place.beside), ...copying()),
      element("p", { class: "faint keys" }, "Keys: → and ← go to the next and the previous item, Esc leads back to the items."),
      element("h3", {}, "Question"),
      block(one.text(one.question)),
      facts(["gold", block(one.text(one.gold))]),
      element("div", { class: two ? "side-by-side" : "alone" }, columns),
    ];
  };
})();
