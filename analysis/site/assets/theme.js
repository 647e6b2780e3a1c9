"use strict";

/** What the scripts of the pages share. */
window.GMR = window.GMR || {};

/**
 * Light and dark: the system's choice, until the reader makes another one.
 *
 * `data-theme` of the root element is "light" or "dark"; the event "gmr-theme" on the document follows a change.
 */
(() => {
  const KEY = "gmr-theme";
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const ofSystem = () => (system.matches ? "dark" : "light");

  // A browser may refuse to store anything for a page from the disk; the switch then holds for this page alone.
  let chosen = null;
  try {
    chosen = localStorage.getItem(KEY);
  } catch {}

  function choose(theme) {
    chosen = theme === ofSystem() ? null : theme;
    try {
      if (chosen) localStorage.setItem(KEY, chosen);
      else localStorage.removeItem(KEY);
    } catch {}
    show();
  }

  function show() {
    const theme = chosen || ofSystem();
    document.documentElement.dataset.theme = theme;
    const button = document.getElementById("theme");
    if (button) button.textContent = theme === "dark" ? "Light" : "Dark";
    document.dispatchEvent(new Event("gmr-theme"));
  }

  function ready() {
    const button = document.getElementById("theme");
    button.hidden = false;
    button.setAttribute("aria-label", "Switch between light and dark");
    button.addEventListener("click", () => choose(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
    show();
  }

  system.addEventListener("change", show);
  document.addEventListener("DOMContentLoaded", ready);
  show();
})();
