"""Stands where vLLM does: serves a list of models, or dies as it would."""

import json
import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

METRICS = 'vllm:num_requests_running{engine="0",model_name="a"} 3.0\nvllm:num_requests_waiting{engine="0"} 1.0\n'


class Answer(BaseHTTPRequestHandler):
    names: tuple[str, ...] = ()

    def do_GET(self) -> None:
        found = json.dumps({"data": [{"id": name} for name in self.names]})
        body = (METRICS if self.path == "/metrics" else found).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main(words: list[str]) -> None:
    assert words[0] == "serve"
    says = os.environ.get("FAKE_SAYS")
    if says:
        sys.stdout.write(f"one line\n{says}\n")
        sys.exit(1)
    if os.environ.get("FAKE_STUBBORN"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # Its engine, in the same session, as vLLM's is.
    engine = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(os.environ["FAKE_FOLDER"], f"{os.getpid()}.engine").write_text(str(engine.pid))
    names = words[words.index("--served-model-name") + 1 : words.index("--host")]
    Answer.names = tuple(names)
    with Path(os.environ["FAKE_FOLDER"], "events").open("a") as events:
        events.write(f"{names[0]} begins\n")
        events.flush()
        time.sleep(float(os.environ.get("FAKE_LOADING_S", "0")))
        server = HTTPServer(("127.0.0.1", int(words[words.index("--port") + 1])), Answer)
        events.write(f"{names[0]} is ready\n")
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
