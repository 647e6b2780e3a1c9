"use strict";

/**
 * Elements and numbers, as all parts of the explorer make them. Data become text, never markup.
 *
 * @namespace GMR.explorer
 */
GMR.explorer = {};

(() => {
  /**
   * An element.
   *
   * @param {string} tag
   * @param {Object} [how] attributes by name; ``on`` holds listeners by event, and what is null or false is left out.
   * @param {...(Node|string|Array)} inside its content; a string is text, a list is its members, and null is nothing.
   * @returns {HTMLElement}
   */
  function element(tag, how = {}, ...inside) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(how)) {
      if (name === "on") {
        for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
      } else if (value !== null && value !== false) {
        made.setAttribute(name, value === true ? "" : value);
      }
    }
    made.append(...inside.flat(Infinity).filter((part) => part !== null));
    return made;
  }

  /** A list of facts: pairs of a label and what stands behind it, of which null is left out; null for none. */
  function facts(...pairs) {
    const shown = pairs.filter(([, value]) => value !== null);
    if (!shown.length) return null;
    return element("dl", { class: "facts" }, shown.map(([label, value]) => [element("dt", {}, label), element("dd", {}, value)]));
  }

  /** A share in percent, as it is read; the exact number stands in its title. */
  function percent(share) {
    const shown = `${(100 * share).toFixed(1)} %`;
    return element("span", { class: "share", title: String(share), "data-exact": String(share) }, bar(share), shown);
  }

  function bar(share) {
    const filled = element("span", {});
    filled.style.width = `${100 * Math.min(1, Math.max(0, share))}%`;
    return element("span", { class: "meter", "aria-hidden": "true" }, filled);
  }

  /** A cost in the paper's unit, as it is read; the exact number stands in its title. */
  function cost(value) {
    return element("span", { title: String(value), "data-exact": String(value) }, value === 0 ? "0" : value.toPrecision(3));
  }

  /** A whole number with its thousands apart. */
  const count = (value) => value.toLocaleString("en-US");

  /** A number and what it counts. */
  const many = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

  const MARKS = { right: "✓ right", wrong: "✗ wrong", error: "! error" };

  /** The verdict on an answer, in a word and a colour. */
  const verdict = (kind) => element("span", { class: `verdict ${kind}` }, MARKS[kind]);

  Object.assign(GMR.explorer, { element, facts, percent, cost, count, many, verdict });
})();
