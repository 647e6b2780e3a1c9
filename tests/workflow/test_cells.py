"""A cell as a process: killed, resumed, locked out, out of disk, cut off from its server."""

import asyncio
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from harness.llm.call_log import CallLog
from harness.llm.request import Message, Reply, Request
from tests.harness.llm.logged import calls_of, content

CELL = ["cell", "--preset", "smoke", "--method", "cot", "--benchmark", "gsm_hard", "--backbone", "qwen-2.5-14B"]
FOLDER = Path("results/smoke/cells/cot/gsm_hard/qwen-2.5-14B/seed0")
ONE_BENCHMARK = ["--set", "benchmarks=[gsm_hard]", "--set", "limit={test: 100}"]
TABLES = ("items.parquet", "calls.parquet", "decisions.parquet")
RESULT = ("run.json", *TABLES, "calls.sqlite")


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "workflow", *words]


def gmr(folder: Path, *words: str, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        command(*words), cwd=folder, capture_output=True, text=True, timeout=120, check=False, **more
    )


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Questions and world of one mini-benchmark."""
    folder = tmp_path_factory.mktemp("prepared")
    (folder / "results").mkdir()
    data = gmr(folder, "data", "--preset", "smoke", "--benchmark", "gsm_hard", *ONE_BENCHMARK)
    assert data.returncode == 0, data.stderr
    world = gmr(folder, "world", "--preset", "smoke", *ONE_BENCHMARK)
    assert world.returncode == 0, world.stderr
    return folder


@pytest.fixture
def place(prepared: Path, tmp_path: Path) -> Path:
    """A fresh copy of the prepared folder."""
    shutil.copytree(prepared, tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture(scope="module")
def undisturbed(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What a run leaves behind that nothing disturbed."""
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    shutil.copytree(prepared, folder)
    ended = gmr(folder, *CELL, *ONE_BENCHMARK)
    assert ended.returncode == 0, ended.stderr
    return result(folder)


def result(place: Path) -> dict[str, bytes]:
    return {name: content(place / FOLDER / name) for name in RESULT}


def finished_calls(log: Path) -> int:
    """How many calls a log holds that a process may just be making."""
    try:
        return len(calls_of(log))
    except sqlite3.OperationalError:
        return 0


def wait_for_calls(path: Path, number: int) -> None:
    deadline = time.monotonic() + 60
    while not path.exists() or finished_calls(path) < number:
        assert time.monotonic() < deadline, f"{path} did not grow"
        time.sleep(0.001)


@pytest.fixture
def started(place: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A cell that has finished a few of its calls, one at a time."""
    process = subprocess.Popen(
        command(*CELL, *ONE_BENCHMARK, "--set", "in_flight=1"),
        cwd=place,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_for_calls(place / FOLDER / "calls.sqlite", 5)
    yield process
    process.kill()
    process.wait()


def test_a_killed_cell_goes_on_asks_nothing_twice_and_ends_in_the_same_bytes(
    place: Path, started: subprocess.Popen[bytes], undisturbed: dict[str, bytes]
) -> None:
    os.killpg(started.pid, signal.SIGKILL)
    started.wait()
    log = place / FOLDER / "calls.sqlite"
    finished = finished_calls(log)
    assert 5 <= finished < 100
    assert not (place / FOLDER / "run.json").exists()
    ended = gmr(place, *CELL, *ONE_BENCHMARK)
    assert ended.returncode == 0, ended.stderr
    assert result(place) == undisturbed
    attempts = [orjson.loads(line)["key"] for line in (place / FOLDER / "attempts.jsonl").read_bytes().splitlines()]
    assert len(attempts) - len(set(attempts)) <= 1  # the call in flight when the process died may be asked again
    timing = orjson.loads((place / FOLDER / "timing.json").read_bytes())
    assert timing["calls"]["log"] == finished


def test_a_second_run_asks_nothing_and_changes_nothing(place: Path, undisturbed: dict[str, bytes]) -> None:
    for _ in range(2):
        assert gmr(place, *CELL, *ONE_BENCHMARK).returncode == 0
    assert result(place) == undisturbed
    assert orjson.loads((place / FOLDER / "timing.json").read_bytes())["calls"]["asked"] == 0


def test_a_second_writer_stops_with_one_line(place: Path, started: subprocess.Popen[bytes]) -> None:
    started.send_signal(signal.SIGSTOP)
    second = gmr(place, *CELL, *ONE_BENCHMARK)
    started.send_signal(signal.SIGCONT)
    assert second.returncode == 2
    assert f"is being written by process {started.pid}" in second.stderr
    assert second.stderr.count("\n") == 1


def test_a_cell_dies_with_the_snakemake_that_started_it(place: Path) -> None:
    import socket

    with subprocess.Popen(["sleep", "60"]) as parent:
        environment = {**os.environ, "GMR_PARENT": f"{socket.gethostname()}:{parent.pid}"}
        cell = subprocess.Popen(
            command(*CELL, *ONE_BENCHMARK, "--set", "in_flight=1"),
            cwd=place,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        wait_for_calls(place / FOLDER / "calls.sqlite", 1)
        cell.send_signal(signal.SIGSTOP)
        parent.kill()
    cell.send_signal(signal.SIGCONT)
    assert cell.wait(timeout=20) == 1


def test_a_full_disk_is_one_line_and_nothing_is_lost(place: Path, undisturbed: dict[str, bytes]) -> None:
    def small_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, resource.RLIM_INFINITY))

    full = gmr(place, *CELL, *ONE_BENCHMARK, "--set", "in_flight=1", preexec_fn=small_disk)
    assert full.returncode == 2
    assert "error: cannot write" in full.stderr
    assert "Traceback" not in full.stderr
    kept = finished_calls(place / FOLDER / "calls.sqlite")
    assert kept > 1
    assert gmr(place, *CELL, *ONE_BENCHMARK).returncode == 0
    assert result(place) == undisturbed
    assert orjson.loads((place / FOLDER / "timing.json").read_bytes())["calls"]["log"] == kept


@pytest.mark.parametrize("job", [["data", "--benchmark", "gsm_hard"], ["world"]])
def test_a_full_disk_is_one_line_for_every_job(place: Path, job: list[str]) -> None:
    def small_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, resource.RLIM_INFINITY))

    full = gmr(place, job[0], "--preset", "smoke", *job[1:], *ONE_BENCHMARK, preexec_fn=small_disk)
    assert full.returncode == 2
    assert "error: cannot write results/smoke/" in full.stderr
    assert "Traceback" not in full.stderr


def test_a_log_that_cannot_be_written_does_not_bury_the_message(place: Path) -> None:
    ended = gmr(place, "--log", "/dev/full", *CELL, "--method", "cto")
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: unknown method 'cto'")
    assert ended.stderr.count("\n") == 1


def test_settings_may_stand_in_a_file_and_what_is_set_beside_it_holds(place: Path) -> None:
    (place / "mine.yaml").write_text("{benchmarks: [gsm_hard], description: 'two: words here', limit: {test: 100}}")
    ended = gmr(place, *CELL, "--set", "@mine.yaml", "--set", "limit={test: 2}")
    assert ended.returncode == 0, ended.stderr
    assert orjson.loads((place / FOLDER / "run.json").read_bytes())["data"]["n_test"] == 2


def test_an_unknown_preset_is_refused_by_every_command(place: Path) -> None:
    for words in (["retry-errors"], ["ledger"], ["claims"]):
        ended = gmr(place, *words, "--preset", "smok")
        assert ended.returncode == 2
        assert "unknown preset 'smok'; did you mean 'smoke'?" in ended.stderr


def test_an_unreachable_endpoint_is_one_line(place: Path) -> None:
    ended = gmr(place, *CELL, *ONE_BENCHMARK, "--set", "endpoints=served")
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: endpoint http://localhost:8004/v1 of qwen-2.5-14B does not answer")
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--method", "cto"], "unknown method 'cto'; did you mean 'cot'?"),
        (["--benchmark", "maths"], "unknown benchmark 'maths'"),
        (["--backbone", "qwen-2.5-14b"], "unknown backbone 'qwen-2.5-14b'; did you mean 'qwen-2.5-14B'?"),
        (["--set", "limit"], "is neither KEY=YAML"),
        (["--set", "@results/smoke/nothing.yaml"], "results/smoke/nothing.yaml: cannot be read"),
        (["--set", "@/dev/null"], "/dev/null holds no keys of a preset"),
    ],
)
def test_a_mistake_is_one_line(place: Path, words: list[str], message: str) -> None:
    ended = gmr(place, *CELL, *ONE_BENCHMARK, *words)
    assert ended.returncode == 2
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_command_given_elsewhere_says_where_it_belongs(tmp_path: Path) -> None:
    ended = gmr(tmp_path, "ledger", "--preset", "smoke")
    assert ended.returncode == 2
    assert "no Snakefile and no results here; give the command in" in ended.stderr


def test_questions_the_preset_does_not_ask_are_not_prepared(place: Path) -> None:
    ended = gmr(place, "data", "--preset", "smoke", "--benchmark", "math")
    assert ended.returncode == 2
    assert "unknown benchmark 'math'" in ended.stderr


def test_a_busy_port_is_one_line(place: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = gmr(place, "simulate", "--preset", "smoke", *ONE_BENCHMARK, "--port", str(taken.getsockname()[1]))
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1].startswith("error: cannot listen on 127.0.0.1")
    assert "Traceback" not in ended.stderr


def test_missing_questions_are_named(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    ended = gmr(tmp_path, *CELL, *ONE_BENCHMARK)
    assert ended.returncode == 2
    assert "results/smoke/data/gsm_hard.json cannot be read" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_changed_questions_are_refused(place: Path) -> None:
    items = place / "results/smoke/data/gsm_hard.items.jsonl"
    items.write_bytes(items.read_bytes().replace(b"0", b"1", 1))
    ended = gmr(place, *CELL, *ONE_BENCHMARK)
    assert ended.returncode == 2
    assert "delete both and prepare again" in ended.stderr


def test_failed_calls_are_an_answer_until_told_to_forget_them(place: Path, undisturbed: dict[str, bytes]) -> None:
    assert gmr(place, *CELL, *ONE_BENCHMARK).returncode == 0
    log = place / FOLDER / "calls.sqlite"
    asked = min(calls_of(log).items())[1]["request"]
    request = Request(**{**asked, "messages": tuple(Message(**one) for one in asked["messages"])})
    with CallLog(log) as opened:
        asyncio.run(opened.append(request, Reply.failed(request.model, "the server was on fire")))
    assert gmr(place, *CELL, *ONE_BENCHMARK).returncode == 0
    assert b"the server was on fire" in (place / FOLDER / "items.parquet").read_bytes()
    # Of a learned cell the checkpoints go too; while another process is at work, nothing may.
    (place / FOLDER / "checkpoints").mkdir()
    with CallLog(log):
        refused = gmr(place, "retry-errors", "--preset", "smoke")
    assert refused.returncode == 2
    assert "is being written by" in refused.stderr
    assert (place / FOLDER / "run.json").exists()
    assert (place / FOLDER / "checkpoints").exists()
    forgotten = gmr(place, "retry-errors", "--preset", "smoke")
    assert not (place / FOLDER / "checkpoints").exists()
    assert forgotten.stdout.startswith("1 failed calls forgotten")
    assert not (place / FOLDER / "run.json").exists()
    assert gmr(place, *CELL, *ONE_BENCHMARK).returncode == 0
    assert result(place) == undisturbed
