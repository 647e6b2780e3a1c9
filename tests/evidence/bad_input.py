"""What can be wrong around a run, made wrong on purpose: what is said, how it ends, and what is lost once it is mended.

    python -m tests.evidence.bad_input [CASE ...]

Two cells of preset ``cpu_server`` under Snakemake, before a server that is wrong in one way; then the same command once
more before one that is not. In the end every file must be that of an undisturbed run, no call that a log held may have
been asked again, and the key must stand nowhere. For the full disk a file system of three megabytes is mounted; where
that is not allowed, this case is left out and says so. Some twenty minutes, most of them spent waiting for a
server that does not answer.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import orjson
import yaml
from aiohttp import web

from tests.evidence import smoke

PRESET, BACKBONE, MODEL = "cpu_server", "qwen-2.5-14B", "random/qwen-2.5-14B"
CELLS = [f"results/{PRESET}/cells/{method}/gsm_hard/{BACKBONE}/seed0/run.json" for method in ("single", "cot")]
CONFIG = [f"preset={PRESET}", f"backbones=[{BACKBONE}]", "methods=[single, cot]", "limit={test: 12}"]
KEY = "right-key-3f81"
WRONG_KEY = "wrong-key-9c27"
_TIMEOUT_S = 2
# Bytes for some calls before the disk is full.
_ROOM = 10 * 4096
_LONG_S = 60


@dataclass(frozen=True)
class Manners:
    """How the server answers.

    Attributes:
        model: The name it serves.
        context: Tokens it takes.
        delay_s: How long a reply takes.
        replies: How many it gives before it is as good as gone.
        refuses: Whether it says of every prompt that it is too long.
    """

    model: str = MODEL
    context: int = 32_768
    delay_s: float = 0.0
    replies: int = sys.maxsize
    refuses: bool = False


class Server:
    """An OpenAI-compatible server in a thread, whose manners may change; replies follow from requests alone."""

    def __init__(self) -> None:
        self.manners = Manners()
        self.url = ""
        self._replies = 0
        started = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self._serve(started)), daemon=True).start()
        started.wait()

    def behave(self, manners: Manners) -> None:
        self.manners, self._replies = manners, 0

    async def _serve(self, started: threading.Event) -> None:
        app = web.Application()
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/chat/completions", self._chat)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        started.set()
        await asyncio.Event().wait()

    def _refusal(self, request: web.Request) -> web.Response | None:
        if self._replies >= self.manners.replies:
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            given = request.headers.get("Authorization")
            return web.json_response({"error": {"message": f"Incorrect API key provided: {given}"}}, status=401)
        return None

    async def _models(self, request: web.Request) -> web.Response:
        entry = {"id": self.manners.model, "object": "model", "created": 0, "owned_by": "evidence"}
        listed = {"object": "list", "data": [{**entry, "max_model_len": self.manners.context}]}
        return self._refusal(request) or web.json_response(listed)

    async def _chat(self, request: web.Request) -> web.Response:
        refusal = self._refusal(request)
        if refusal:
            return refusal
        asked = orjson.loads(await request.read())
        if self.manners.refuses:
            words = f"This model's maximum context length is {self.manners.context} tokens."
            return web.json_response({"error": {"message": words, "type": "BadRequestError"}}, status=400)
        self._replies += 1
        await asyncio.sleep(self.manners.delay_s)
        message = {"role": "assistant", "content": f"The answer is {len(str(asked['messages']))}."}
        usage = {"prompt_tokens": 100, "completion_tokens": 6, "total_tokens": 106}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response(
            {"id": "x", "object": "chat.completion", "model": asked["model"], "choices": [choice], "usage": usage}
        )


@dataclass
class Run:
    """The two cells in a folder of their own."""

    folder: Path
    url: str
    key: str = KEY
    timeout_s: int = _TIMEOUT_S

    def start(self, *command: str) -> subprocess.Popen[str]:
        entry = {"url": self.url, "max_in_flight": 2, "timeout_s": self.timeout_s, "key_env": "EVIDENCE_KEY"}
        (self.folder / "endpoints.yaml").write_text(yaml.safe_dump({BACKBONE: entry}))
        environment = {"GMR_ENDPOINTS": str(self.folder / "endpoints.yaml"), "EVIDENCE_KEY": self.key}
        snakemake = ["snakemake", *CELLS, "--cores", "1", "--config", *CONFIG]
        return subprocess.Popen(
            [sys.executable, "-m", *(command or snakemake)],
            cwd=self.folder,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def to_the_end(self) -> tuple[int, str]:
        process = self.start()
        said, _ = process.communicate()
        return process.returncode, said


Case = Callable[[Server, Run], tuple[int, str]]


def _before(manners: Manners) -> Case:
    def wrong(server: Server, run: Run) -> tuple[int, str]:
        server.behave(manners)
        return run.to_the_end()

    return wrong


def _down(server: Server, run: Run) -> tuple[int, str]:
    return replace(run, url="http://127.0.0.1:9/v1").to_the_end()


def _wrong_key(server: Server, run: Run) -> tuple[int, str]:
    return replace(run, key=WRONG_KEY).to_the_end()


def _two_runs(server: Server, run: Run) -> tuple[int, str]:
    run = replace(run, timeout_s=_LONG_S)
    with _under_way(server, run):
        return run.to_the_end()


def _same_cell(server: Server, run: Run) -> tuple[int, str]:
    run = replace(run, timeout_s=_LONG_S)
    with _under_way(server, run) as cell:
        method = cell.relative_to(run.folder / "results" / PRESET / "cells").parts[0]
        words = ["--method", method, "--benchmark", "gsm_hard", "--backbone", BACKBONE]
        changes = [word for change in CONFIG[1:] for word in ("--set", change)]
        process = run.start("workflow", "cell", "--preset", PRESET, *words, *changes)
        said, _ = process.communicate()
        return process.returncode, said


@contextmanager
def _under_way(server: Server, run: Run) -> Iterator[Path]:
    """Another run, from the first call of a cell on to its end; the folder of that cell."""
    server.behave(Manners(delay_s=_TIMEOUT_S))
    other = run.start()
    while not (found := [*run.folder.rglob("calls.sqlite")]):
        time.sleep(0.1)
    yield found[0].parent
    said, _ = other.communicate()
    if other.returncode:
        raise RuntimeError(f"the first run was disturbed:\n{said}")


def _full_disk(server: Server, run: Run) -> tuple[int, str]:
    results = run.folder / "results"
    results.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", results], check=True)
    server.behave(Manners(delay_s=0.2))
    try:
        process = run.start()
        while process.poll() is None and not any(results.rglob("calls.sqlite")):
            time.sleep(0.05)
        (results / "filler").write_bytes(bytes(shutil.disk_usage(results).free - _ROOM))
        said, _ = process.communicate()
        (results / "filler").unlink()
        kept = shutil.copytree(results, run.folder / "kept")
    finally:
        subprocess.run(["umount", results], check=True)
    results.rmdir()
    kept.rename(results)
    return process.returncode, said


CASES: dict[str, Case] = {
    "down": _down,
    "another_model": _before(Manners(model="random/qwen-2.5-14B-Instruct-AWQ")),
    "wrong_key": _wrong_key,
    "short_context": _before(Manners(context=2000)),
    "slow": _before(Manners(delay_s=2.5 * _TIMEOUT_S)),
    "dies": _before(Manners(replies=9)),
    "refused_prompts": _before(Manners(refuses=True)),
    "full_disk": _full_disk,
    "two_runs": _two_runs,
    "same_cell": _same_cell,
}


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="*", choices=[[], *CASES], default=[*CASES])
    asked = parser.parse_args()
    server, broken = Server(), False
    with tempfile.TemporaryDirectory(prefix="evidence-") as name:
        calm = Run(smoke.checkout(Path(name, "calm")), server.url)
        status, said = calm.to_the_end()
        if status:
            raise RuntimeError(f"the undisturbed run failed:\n{said}")
        for case in asked.case:
            broken |= _show(case, server, calm, Run(smoke.checkout(Path(name, case)), server.url))
    sys.exit(broken)


def _show(case: str, server: Server, calm: Run, run: Run) -> bool:
    """Make it wrong, mend it, and print what was seen; whether anything was lost."""
    began = time.monotonic()
    if case == "full_disk" and not (sys.platform == "linux" and os.geteuid() == 0):
        print("== full_disk: left out, since only root on Linux may mount a small file system")
        return False
    status, said = CASES[case](server, run)
    took = time.monotonic() - began
    server.behave(Manners())
    if "gmr retry-errors" in said:
        run.start("workflow", "retry-errors", "--preset", PRESET).communicate()
    logged = smoke.logged(run.folder)
    before = {cell: len(smoke.asked(cell)) for cell in logged}
    status_after, said_after = run.to_the_end()
    again = sum(key in keys for cell, keys in logged.items() for key in smoke.asked(cell)[before[cell] :])
    different = [name for name in smoke.differences(calm.folder, run.folder, PRESET) if "/served/" not in name]
    kept = sum(map(len, logged.values()))
    leaked = [key for key in (KEY, WRONG_KEY) if key in said + said_after or _stands_in(run.folder, key)]
    print(f"== {case}: status {status} after {took:.0f} s, {kept} calls kept")
    print(*_telling(said), sep="\n")
    print(
        f"-- mended: status {status_after}, {again} of them asked again, {len(different)} files differ {different[:3]}"
    )
    if leaked:
        print(f"-- the key is told: {leaked}")
    if status_after:
        print(*_telling(said_after), sep="\n")
    sys.stdout.flush()
    return bool(status_after or again or different or leaked or not status)


def _telling(said: str) -> list[str]:
    """What is said of the trouble, without Snakemake's words on its plan and its jobs."""
    return [line for line in said.splitlines() if re.search(r"error:|problem|  http|does not|[Ll]ock|Directory", line)]


def _stands_in(folder: Path, key: str) -> bool:
    found = (path for room in ("results", ".snakemake") for path in (folder / room).rglob("*") if path.is_file())
    return any(key.encode() in path.read_bytes() for path in found)


if __name__ == "__main__":
    _main()
