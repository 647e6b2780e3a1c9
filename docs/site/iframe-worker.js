"use strict";
// The search runs in a Worker, which browsers refuse to a page that was opened from the disk. There, a hidden frame of
// the page takes its place: it runs the same script, and what the two post to each other is handed on.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    /** @param {string} url The script; it may listen for messages and post them, and nothing else of a Worker. */
    constructor(url) {
      super();
      this.room = new Promise((ready) => {
        const frame = document.createElement("iframe");
        frame.hidden = true;
        frame.addEventListener("load", () => ready(this.furnish(frame.contentWindow, url)), { once: true });
        document.body.append(frame);
      });
    }

    /** Runs the script in a frame's window, and comes back with that window. */
    furnish(room, url) {
      room.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = room.document.createElement("script");
      script.src = url;
      const run = new Promise((ready, failed) => {
        script.addEventListener("load", () => ready(room));
        script.addEventListener("error", failed);
      });
      room.document.body.append(script);
      return run;
    }

    async postMessage(data) {
      const room = await this.room;
      room.dispatchEvent(new room.MessageEvent("message", { data }));
    }
  };
}
