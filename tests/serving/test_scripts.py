"""The scripts that start servers: command lines against config/, a fake vLLM, and a real one with every method.

The tests with a real vLLM are skipped unless GMR_VLLM names its command (docs/own-models.md).
"""

import asyncio
import os
import random
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest
import yaml
from psutil import pid_exists

from harness.benchmarks.items import Status
from harness.files import ROOT
from harness.llm import backbones
from harness.runner import layout
from harness.runner.cell import run
from harness.runner.layout import Cell
from harness.runner.plan import plan
from harness.runner.preset import resolve
from tests.command import gmr_process

# A server in the place of vLLM's or llama.cpp's: it becomes ready, or exits with a given message.
FAKE = """
import os, sys, time
from http.server import BaseHTTPRequestHandler, HTTPServer
class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
_, first, model, *words = sys.argv
assert first in ("serve", "--model")
if says := os.environ.get("FAKE_SAYS"):
    sys.exit(says)
with open(os.environ["FAKE_EVENTS"], "a") as events:
    print(model, "begins", os.getpid(), file=events, flush=True)
    time.sleep(0.2)
    server = HTTPServer(("127.0.0.1", int(words[words.index("--port") + 1])), Answer)
    print(model, "is ready", file=events)
server.serve_forever()
"""
# Script, preset, weights, and the most of a GPU's memory that all servers on it may take.
SCRIPTS = [
    ("one-gpu", "paper_4bit", "awq", 0.941),
    ("eight-gpus", "paper", None, 0.921),
    ("cpu", "cpu_server", "random", 0),
]
HOST = "127.0.0.1"
TWO = ("llama-3.2-3B=0.2", "llama-3.1-8B=0.3")


def script(name: str, *words: str) -> list[str]:
    return ["bash", str(ROOT / "serving" / f"{name}.sh"), *words]


@contextmanager
def running(name: str, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a script until the end of the block; yield its process and its line that the servers are ready."""
    with subprocess.Popen(script(name, *words), stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.terminate()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in a folder with a program in the place of the servers'; end whatever it started."""
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "vllm"
    program.write_text(f"#!{sys.executable}{FAKE}")
    program.chmod(0o755)
    monkeypatch.setenv("GMR_VLLM", str(program))
    monkeypatch.setenv("GMR_LLAMA_CPP", str(program))
    monkeypatch.setenv("FAKE_EVENTS", str(tmp_path / "events"))
    monkeypatch.setenv("PORT", str(free_ports()))
    yield tmp_path
    for pid in started(tmp_path):
        if pid_exists(pid):
            os.kill(pid, signal.SIGKILL)


def free_ports() -> int:
    """Return the first of two free ports, below those that the system gives to connections."""
    for first in range(random.randrange(20_000, 30_000), 32_000, 2):  # noqa: S311
        with suppress(OSError), socket.create_server((HOST, first)), socket.create_server((HOST, first + 1)):
            return first
    raise AssertionError("no free ports")


def started(folder: Path) -> list[int]:
    events = folder / "events"
    text = events.read_text() if events.exists() else ""
    return [int(pid) for pid in re.findall(r" begins (\d+)$", text, re.MULTILINE)]


def refused(name: str, *words: str) -> str:
    ended = subprocess.run(script(name, *words), capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    return ended.stderr


def printed(name: str, *words: str) -> tuple[list[list[str]], str]:
    output = subprocess.run(script(name, "--print", *words), capture_output=True, text=True, check=True).stdout
    lines = output.splitlines()
    commands = [shlex.split(line) for line in lines if line.startswith("env ")]
    return commands, "\n".join(line for line in lines if ": {" in line)


def option(command: list[str], name: str) -> str:
    return command[command.index(f"--{name}") + 1]


def names(command: list[str]) -> list[str]:
    if "--alias" in command:
        return [option(command, "alias")]
    flag = "--served-model-name"
    given = command[command.index(flag if flag in command else "serve") + 1 :]
    return list(takewhile(lambda word: not word.startswith("--"), given if flag in command else given[:1]))


@pytest.mark.parametrize(("name", "preset", "weights", "share"), SCRIPTS)
def test_what_is_served_is_what_presets_ask(
    name: str, preset: str, weights: str | None, share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GMR_VLLM", "no-such-program")
    commands, addresses = printed(name)
    assert list(tmp_path.iterdir()) == []
    asked_preset = resolve(preset, {"weights": weights})
    places = backbones.choose(yaml.safe_load(addresses), asked_preset.backbones, "endpoints.yaml")
    served: list[tuple[str, str]] = []
    taken: Counter[str] = Counter()
    for command in commands:
        served += [(one, f"http://{HOST}:{option(command, 'port')}/v1") for one in names(command)]
        if "serve" in command:
            assert option(command, "generation-config") == "vllm"
        if "--gpu-memory-utilization" in command:
            gpus = [word.partition("=")[2] for word in command if word.startswith("CUDA_VISIBLE_DEVICES=")] or ["0"]
            for gpu in gpus[0].split(","):
                taken[gpu] += float(option(command, "gpu-memory-utilization"))
    asked = [(one.served_name or asked_preset.declared[key].model, one.url) for key, one in places.items()]
    assert sorted(served) == sorted(asked)
    assert all(0.9 < part <= share for part in taken.values())
    assert bool(taken) == bool(share)
    assert len({option(command, "port") for command in commands}) == len(commands)


def test_own_models_are_asked_by_the_name_of_folder_or_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models" / "own").mkdir(parents=True)
    [folder, hub], addresses = printed("cpu", "a=models/own/", "b=some/model")
    assert folder[folder.index("serve") + 1] == str(tmp_path / "models" / "own")
    places = yaml.safe_load(addresses)
    assert [places["a"]["served_name"], *names(hub)] == [*names(folder), "some/model"]
    assert "served_name" not in places["b"]
    [file, there], addresses = printed("llama-cpp", "a=models/own.gguf", "b=some/model-GGUF:Q8_0")
    assert [option(file, "model"), option(there, "hf-repo")] == ["models/own.gguf", "some/model-GGUF:Q8_0"]
    places = yaml.safe_load(addresses)
    assert [one["served_name"] for one in (places["a"], places["b"])] == [*names(file), *names(there)]
    for name in ("cpu", "llama-cpp"):
        assert refused(name, "--print", "own=") == "error: own= is not BACKBONE=MODEL\n"


def test_some_backbones_may_be_served_with_shares_of_ones_own() -> None:
    [command], addresses = printed("one-gpu", "qwen-2.5-14B=0.94")
    assert option(command, "gpu-memory-utilization") == "0.94"
    assert list(yaml.safe_load(addresses)) == ["qwen-2.5-14B"]
    assert "qwen=0.5 is not BACKBONE=SHARE" in refused("one-gpu", "--print", "qwen=0.5")


def test_servers_of_one_gpu_come_one_after_another_and_end_with_the_script(place: Path) -> None:
    written = place / "results" / "serving" / "one-gpu" / "endpoints.yaml"
    with running("one-gpu", *TWO) as (process, line):
        assert line == f"export GMR_ENDPOINTS={written}"
        assert set(yaml.safe_load(written.read_text())) == {"llama-3.2-3B", "llama-3.1-8B"}
        servers = started(place)
        assert "another program listens on port" in refused("one-gpu", *TWO)
        assert [pid_exists(pid) for pid in servers] == [True, True]
        assert written.exists()
    assert process.returncode == 128 + signal.SIGTERM
    assert re.findall(r" (begins|is)\b", (place / "events").read_text()) == ["begins", "is"] * 2
    assert [pid_exists(pid) for pid in servers] == [False, False]
    assert not written.exists()


def test_a_server_that_dies_later_ends_the_script_and_the_others(place: Path) -> None:
    with running("one-gpu", *TWO) as (process, _):
        first, second = started(place)
        os.kill(second, signal.SIGKILL)
        assert process.wait() == 2
    assert not pid_exists(first)


def test_what_keeps_servers_from_starting_is_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_SAYS", "torch.OutOfMemoryError: CUDA out of memory")
    error = refused("one-gpu")
    assert "CUDA out of memory" in error
    assert "docs/own-models.md" in error.splitlines()[-1]
    monkeypatch.setenv("GMR_VLLM", "no-such-program")
    (line,) = refused("cpu").splitlines()
    assert line.startswith("error: there is no no-such-program; install vLLM")


def test_the_job_of_slurm_serves_other_machines(place: Path) -> None:
    command = script("slurm", str(ROOT / "serving" / "eight-gpus.sh"), "--print")
    output = subprocess.check_output(command, env={**os.environ, "SLURM_SUBMIT_DIR": str(place)}, text=True)
    assert output.count("--host 0.0.0.0") == 5
    assert f"http://{socket.gethostname()}:" in output


# A real vLLM.

BACKBONE = "llama-3.1-8B"
PRESET = resolve("cpu_server")
VLLM = os.environ.get("GMR_VLLM") or shutil.which("vllm")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve tiny models of random weights; return the address of one."""
    if VLLM is None:
        pytest.skip("no vLLM here, and GMR_VLLM names none (docs/own-models.md)")
    folder = tmp_path_factory.mktemp("vllm")
    (folder / "results").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        with running("cpu") as (_, line):
            patch.setenv(*line.removeprefix("export ").split("=", 1))
            for benchmark in PRESET.benchmarks:
                gmr_process("data", "--preset", PRESET.name, "--benchmark", benchmark)
            yield PRESET.servers_of([BACKBONE])[BACKBONE].url


@pytest.mark.timeout(900)
def test_the_check_says_what_is_served(server: str) -> None:
    gmr_process("check", "servers", "--preset", PRESET.name)
    record = orjson.loads(layout.served(PRESET.name).read_bytes())
    assert list(record["backbones"]) == list(PRESET.backbones)
    assert all(entry["write"] > 0 for entry in record["backbones"].values())


@pytest.mark.timeout(900)
@pytest.mark.parametrize("method", PRESET.methods)
def test_every_method_runs_on_two_questions_of_every_benchmark(method: str, server: str) -> None:
    row = PRESET.rows(PRESET.entries[method])[-1]
    for benchmark in PRESET.benchmarks:
        cell_plan = plan(PRESET, Cell(method, benchmark, row, 0))
        written = asyncio.run(run(cell_plan))
        assert written["simulated"]
        assert written["notes"][0].startswith("weights random (a tiny model of random weights")
        items = pq.read_table(cell_plan.folder / "items.parquet").to_pydict()
        assert len(items["item_id"]) == 2
        assert Status.CALL_FAILED not in items["status"]
        calls = pq.read_table(cell_plan.folder / "calls.parquet").to_pydict()
        assert len(calls["backbone"]) >= 2
        assert all(tokens > 0 for tokens in calls["prompt_tokens"])
