"use strict";

/** Chunks of data: scripts below data/ that hand over a value when they are run. */
(() => {
  const folder = new URL("data/", document.currentScript.src);
  // What a reader goes back to is still there; what was looked at long ago makes room.
  const mostKept = 64;
  const kept = new Map();
  const waiting = new Map();

  async function unpacked(packed) {
    const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }

  function run(name) {
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      const path = `${name.split("/").map(encodeURIComponent).join("/")}.js`;
      const failed = () => reject(new Error(`data/${name}.js is missing or damaged; make the site again`));
      waiting.set(name, resolve);
      script.src = new URL(path, folder).href;
      script.onload = () => {
        script.remove();
        // A script that ran and handed nothing over leaves nothing to wait for.
        if (waiting.delete(name)) failed();
      };
      script.onerror = () => {
        script.remove();
        waiting.delete(name);
        failed();
      };
      document.head.append(script);
    }).then(unpacked);
  }

  /** Hand over the packed value of a chunk; called by the chunk itself. */
  GMR.put = (name, packed) => {
    const resolve = waiting.get(name);
    if (waiting.delete(name)) resolve(packed);
  };

  /**
   * The value of a chunk, loaded when it is first asked for.
   *
   * @param {string} name as it was written, without its ending.
   * @returns {Promise<*>} rejected where the chunk is missing.
   */
  GMR.load = (name) => {
    const found = kept.get(name) || run(name);
    kept.delete(name);
    kept.set(name, found);
    found.catch(() => kept.delete(name));
    if (kept.size > mostKept) kept.delete(kept.keys().next().value);
    return found;
  };
})();
