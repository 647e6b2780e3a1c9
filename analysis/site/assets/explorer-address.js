"use strict";

/** Where a reader is, as the fragment of the address: every place has one, so that it can be linked and gone back to. */
(() => {
  const NAMES = ["cell", "item", "beside", "step", "show", "find", "sort"];
  // Slashes may stand as they are, and are easier to read.
  const encoded = (text) => encodeURIComponent(text).replaceAll("%2F", "/");

  function decoded(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  }

  /**
   * The place that the address names.
   *
   * @returns {Object<string, string>} what is not named is absent.
   */
  function here() {
    const pairs = location.hash.slice(1).split("&").map((pair) => pair.split(/=(.*)/s));
    return Object.fromEntries(pairs.filter(([name, value]) => NAMES.includes(name) && value).map(([name, value]) => [name, decoded(value)]));
  }

  /** The address of a place. */
  function href(place) {
    const named = NAMES.filter((name) => place[name] !== undefined && place[name] !== "");
    return `#${named.map((name) => `${name}=${encoded(place[name])}`).join("&")}`;
  }

  /** The address of the place a reader is at, but for some changes. */
  const changed = (changes) => href({ ...here(), ...changes });

  /** Go to a place, from where the reader can go back. */
  const go = (changes) => {
    location.hash = changed(changes);
  };

  /** Be at another place without a way back, as while typing. */
  const amend = (changes) => history.replaceState(null, "", changed(changes));

  GMR.explorer.address = { here, href, changed, go, amend };
})();
