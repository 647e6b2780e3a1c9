"""Fake vLLM or llama.cpp server: becomes ready, or exits with a given message."""

import os
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()


def main(words: list[str]) -> None:
    assert words[0] in ("serve", "--model")
    model = words[1]
    if says := os.environ.get("FAKE_SAYS"):
        sys.exit(says)
    with Path(os.environ["FAKE_EVENTS"]).open("a") as events:
        events.write(f"{model} begins {os.getpid()}\n")
        events.flush()
        time.sleep(0.2)
        server = HTTPServer(("127.0.0.1", int(words[words.index("--port") + 1])), Answer)
        events.write(f"{model} is ready\n")
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
