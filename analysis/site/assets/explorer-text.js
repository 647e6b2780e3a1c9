"use strict";

/** Texts of models, which may hold anything: shown as they are, of bounded size, and without power over the page. */
(() => {
  const { element, count } = GMR.explorer;
  // Longer ones are folded after their beginning, and unfold a piece at a time.
  const WHOLE = 6000;
  const BEGINNING = 3000;
  const PIECE = 100000;
  // Characters that are not seen but change what is, or whose display differs between systems: all controls but tab and
  // line feed, marks and overrides of direction, invisible ones, other line ends, halves of pairs, tags.
  const HIDDEN = new RegExp(
    "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u115f\\u1160\\u180e\\u200b\\u200e\\u200f" +
      "\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufeff\\ufff9-\\ufffb\\u{d800}-\\u{dfff}\\u{e0000}-\\u{e007f}]",
    "gu"
  );

  function named(character) {
    const code = `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
    return element("span", { class: "hidden-character", title: "a character that is not seen" }, code);
  }

  /** The nodes of a text, in which characters that are not seen are named. */
  function nodes(text) {
    const found = [];
    let end = 0;
    for (const match of text.matchAll(HIDDEN)) {
      if (match.index > end) found.push(text.slice(end, match.index));
      found.push(named(match[0]));
      end = match.index + match[0].length;
    }
    if (end < text.length) found.push(text.slice(end));
    return found;
  }

  /** Where a text can be cut near a place without parting a pair. */
  function cut(text, place) {
    const code = text.charCodeAt(place - 1);
    return code >= 0xd800 && code < 0xdc00 ? place - 1 : place;
  }

  /**
   * A short text within a line, such as an id or a name.
   *
   * @param {string} text
   * @returns {HTMLElement}
   */
  const inline = (text) => element("bdi", {}, nodes(text));

  /**
   * A text with its white space, folded where it is long.
   *
   * @param {string} text
   * @returns {HTMLElement}
   */
  function block(text) {
    if (text === "") return element("p", { class: "faint" }, "(empty)");
    const shown = element("pre", { class: "said" });
    let end = text.length > WHOLE ? cut(text, BEGINNING) : text.length;
    shown.append(...nodes(text.slice(0, end)));
    if (end === text.length) return shown;
    const more = element("button", { type: "button", class: "more" });
    const tell = () => {
      more.textContent = `Show ${count(Math.min(PIECE, text.length - end))} more of ${count(text.length)} characters`;
    };
    more.addEventListener("click", () => {
      const next = cut(text, Math.min(text.length, end + PIECE));
      shown.append(...nodes(text.slice(end, next)));
      end = next;
      if (end === text.length) more.remove();
      else tell();
    });
    tell();
    return element("div", {}, shown, more);
  }

  /**
   * Something that is folded until a reader wants it, and is not made before.
   *
   * @param {string} title
   * @param {function(): Array} make
   * @returns {HTMLElement}
   */
  function folded(title, make) {
    const details = element("details", {}, element("summary", {}, title));
    details.addEventListener("toggle", () => details.append(...make()), { once: true });
    return details;
  }

  Object.assign(GMR.explorer, { inline, block, folded });
})();
