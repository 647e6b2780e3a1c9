"""Servers started, found again, and ended, with a program that stands where vLLM does."""

import logging
import os
import signal
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.errors import UserError
from harness.files import write_atomically
from harness.llm.endpoints import load
from workflow.commands.serving import serve
from workflow.serving import deployment, processes, starting, text
from workflow.serving.processes import Process


def up(name: str = "tiny") -> dict[Path, Process]:
    found = deployment.read(name)
    starting.up(found)
    return text.known(found.folder)


def engines(place: Path) -> list[int]:
    return [int(path.read_text()) for path in place.glob("*.engine")]


def runs(pid: int) -> bool:
    stat = processes._stat(pid)
    return stat is not None and stat[0] not in "ZX"


def test_what_is_up_stays_up_and_is_not_started_twice(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    (first,) = up().values()
    (second,) = up().values()
    assert first == second
    assert first.alive
    assert "runs already at" in caplog.text
    assert len(engines(place)) == 1
    shown = CliRunner().invoke(serve, ["status"]).output.splitlines()[-1]
    assert shown.split()[:4] == ["tiny/llama-3.2-3B", str(first.pid), first.url, "random/llama-3.2-3B"]
    assert shown.split()[-2:] == ["3", "1"]
    assert "ready" in shown


def test_the_endpoints_it_leaves_are_those_a_run_reads(place: Path) -> None:
    (process,) = up().values()
    found = load(deployment.folder_of("tiny") / starting.ENDPOINTS, ["llama-3.2-3B"])
    assert (found["llama-3.2-3B"].urls, found["llama-3.2-3B"].max_in_flight) == ((process.url,), 8)


def test_down_ends_the_server_and_what_it_started(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    ((path, process),) = up().items()
    (engine,) = engines(place)
    assert {process.pid, engine} <= set(process.members())
    assert CliRunner().invoke(serve, ["down"]).exit_code == 0
    assert "stopped" in caplog.text
    assert not runs(process.pid)
    assert not runs(engine)
    assert not path.exists()
    assert CliRunner().invoke(serve, ["status"]).output == "no server was started here\n"


def test_one_that_does_not_end_when_asked_is_killed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_STUBBORN", "1")
    (process,) = up().values()
    assert not processes.stop(process, patience_s=0.5)
    assert process.members() == []


def test_what_a_killed_server_left_is_ended_and_it_is_started_again(place: Path) -> None:
    (process,) = up().values()
    (engine,) = engines(place)
    os.kill(process.pid, signal.SIGKILL)
    os.waitpid(process.pid, 0)
    assert runs(engine)
    assert "dead" in text.status({Path("tiny/one.pid"): process})
    (again,) = up().values()
    assert again.pid != process.pid
    assert again.alive
    assert not runs(engine)


def test_another_process_with_the_number_of_a_server_is_left_alone(place: Path) -> None:
    (process,) = up().values()
    later = Process(process.pid, process.ticks + 1, process.began, process.url, process.models, process.command)
    assert not later.alive
    assert later.members() == []
    assert processes.stop(later)
    assert process.alive


@pytest.mark.parametrize(
    ("says", "advice"),
    [
        ("GatedRepoError: 403 Client Error. Cannot access gated repo", "accept its licence on the hub"),
        ("OSError: x is not a local folder and is not a valid model identifier", "the weights are not here"),
        (
            "ValueError: Free memory on device cuda:0 (3/79 GiB) on startup is less than desired",
            "another program holds",
        ),
        ("torch.OutOfMemoryError: CUDA out of memory.", "out of memory: "),
        ("api_server.py: error: unrecognized arguments: --frobnicate", "does not know a setting"),
        ("something never seen", "died after it was started. The end of "),
    ],
)
def test_one_that_dies_says_why(says: str, advice: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_SAYS", says)
    with pytest.raises(UserError) as caught:
        up()
    assert str(caught.value).startswith("llama-3.2-3B died after it was started")
    assert advice in str(caught.value)
    assert str(caught.value).endswith(f"one line\n    {says}")


def test_servers_on_one_gpu_are_started_one_after_another(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_LOADING_S", "0.5")
    up("pair")
    first, second = (server.models[0] for server in deployment.read("pair").servers)
    events = (place / "events").read_text().splitlines()
    assert events == [f"{first} begins", f"{first} is ready", f"{second} begins", f"{second} is ready"]


def test_a_port_that_another_has_is_named(place: Path) -> None:
    (server,) = deployment.read("tiny").servers
    taken = rf"cannot listen on 127\.0\.0\.1:{server.port} \(.*\); end what listens"
    with socket.create_server(("127.0.0.1", server.port)), pytest.raises(UserError, match=taken):
        up()
    assert text.known(deployment.folder_of("tiny")) == {}


@pytest.mark.parametrize(("name", "said"), [(None, "no vLLM here"), ("/no/python", "GMR_VLLM names /no/python")])
def test_without_vllm_nothing_is_started(
    name: str | None, said: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(place / "empty"))
    monkeypatch.delenv("GMR_VLLM")
    if name is not None:
        monkeypatch.setenv("GMR_VLLM", name)
    with pytest.raises(UserError, match=said):
        up()


def test_what_does_not_fit_is_not_started(place: Path) -> None:
    ended = CliRunner().invoke(serve, ["up", "--deployment", "pair", "--gpu-memory", "8"])
    assert isinstance(ended.exception, UserError)
    assert str(ended.exception).startswith("llama-3.2-3B, llama-3.1-8B would not fit")


@pytest.mark.parametrize("content", ["", "12", '{"pid": 1}', '{"models": 1, "command": []}'])
def test_a_pid_file_that_is_none_is_named(content: str, place: Path) -> None:
    path = deployment.folder_of("tiny") / "llama-3.2-3B.pid"
    write_atomically(path, content)
    with pytest.raises(UserError, match=r"llama-3\.2-3B\.pid does not tell of a server .* remove the file"):
        up()
    path.unlink()
