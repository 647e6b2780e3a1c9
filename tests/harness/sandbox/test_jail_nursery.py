"""The warm process that programs are forked from, with nothing confined, in a process of its own."""

from __future__ import annotations

import contextlib
import json
import marshal
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.sandbox.jail import candidate, nursery
from harness.sandbox.jail.channel import Channel

REPOSITORY = Path(__file__).parents[3]
# It confines nothing here, and so may only run the programs below.
UNCONFINED = """
import json, socket, sys, types
from harness.sandbox.jail import nursery
policy, broken, descriptor = json.loads(sys.argv[1])
def confine(parent):
    if broken == "late":
        raise OSError("not confined")
def confine_nursery(policy, rules):
    if broken == "early":
        raise OSError("no nursery")
    return confine
nursery.file_rules = lambda policy, box: (None, [])
nursery.confine_nursery = confine_nursery
nursery.main(types.SimpleNamespace(**policy), socket.socket(fileno=descriptor), None)
"""
POLICY = {"level": "no-namespaces", "wall_s": 60.0, "box_entries": 5, "box_bytes": 1 << 20}
WITHIN_S = 30.0


@dataclass
class Served:
    """A nursery and this side's connection to it."""

    control: socket.socket
    process: subprocess.Popen[bytes]
    box: Path

    def told(self) -> dict[str, Any]:
        reply: dict[str, Any] = marshal.loads(Channel(self.control.fileno()).receive())  # noqa: S302
        return reply

    def told_of(self, handed: Handed) -> dict[str, Any]:
        """How a program ended whose connection is seen to have ended."""
        assert handed.is_gone()
        self.control.sendall(nursery.GONE)
        return self.told()

    def program(self) -> Handed:
        self.control.sendall(nursery.START)
        word, descriptors, _, _ = socket.recv_fds(self.control, 1, 2)
        assert word == nursery.START
        connection, output = descriptors
        return Handed(socket.socket(fileno=connection), output)

    def is_over(self) -> bool:
        assert self.process.stderr is not None
        return self.process.wait(WITHIN_S) == 0 and self.process.stderr.read() == b""


@dataclass
class Handed:
    """Both connections to a program."""

    connection: socket.socket
    output: int

    def runs(self, source: str) -> Channel:
        channel = Channel(self.connection.fileno())
        assert channel.receive() == candidate.CONFINED
        channel.send(marshal.dumps(("", source, [], "")))
        return channel

    def is_gone(self) -> bool:
        """Waits for the end of every process that holds the other end."""
        with contextlib.suppress(ConnectionResetError):
            while self.connection.recv(1 << 16):
                pass
        return True

    def printed(self) -> bytes:
        content = b""
        while piece := os.read(self.output, 1 << 16):
            content += piece
        return content

    def close(self) -> None:
        self.connection.close()
        os.close(self.output)


@contextlib.contextmanager
def serving(box: Path, broken: str = "", **policy: object) -> Iterator[Served]:
    ours, theirs = socket.socketpair()
    told = [{**POLICY, "box": str(box), **policy}, broken, theirs.fileno()]
    command = [sys.executable, "-c", UNCONFINED, json.dumps(told)]
    with ours:
        # Nothing of this environment, which may say how output is to be buffered.
        process = subprocess.Popen(
            command, cwd=REPOSITORY, env={"PWD": str(box)}, pass_fds=[theirs.fileno()], stderr=subprocess.PIPE
        )
        theirs.close()
        try:
            yield Served(ours, process, box)
        finally:
            process.kill()
            process.communicate()


def test_a_program_is_served_and_told_to_end(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        assert served.told() == {}
        for number in range(2):
            handed = served.program()
            channel = handed.runs(f"print('out {number}')")
            assert channel.receive() == b'["value",[{"dict":[]},null]]'
            served.control.sendall(nursery.END)
            found = served.told()
            assert found.pop("cpu_s") >= 0
            assert found == {"status": 9, "cut": "", "deserted": False, "soiled": False}
            assert handed.is_gone()
            assert handed.printed() == f"out {number}\n".encode()
            handed.close()
        served.control.close()
        assert served.is_over()


@pytest.mark.parametrize(
    ("source", "status"),
    [("import os\nos._exit(3)", 3 << 8), ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", 11)],
)
def test_an_end_of_its_own_keeps_its_status(tmp_path: Path, source: str, status: int) -> None:
    with serving(tmp_path) as served:
        served.told()
        handed = served.program()
        handed.runs(source)
        found = served.told_of(handed)
        assert (found["status"] & 0xFF7F, found["cut"], found["deserted"]) == (status, "", False)
        again = served.program()
        again.runs("pass").receive()
        for one in (handed, again):
            one.close()


def test_the_clock_ends_a_program_that_waits(tmp_path: Path) -> None:
    with serving(tmp_path, wall_s=0.2) as served:
        served.told()
        handed = served.program()
        handed.runs("import time\ntime.sleep(20)")
        assert (found := served.told_of(handed))["cut"] == nursery.WALL
        assert found["status"] == 9
        handed.close()


@pytest.mark.parametrize(
    ("source", "is_crowded"),
    [
        ("for n in range(6): open(str(n), 'w').close()", True),
        ("import os\nfor n in range(6):\n    os.mkdir('d')\n    os.chdir('d')", True),
        ("open('x', 'wb').write(b'x' * (2 << 20))", True),
        ("for n in range(5): open(str(n), 'w').close()", False),
        ("open('x', 'wb').truncate(2 << 20)", False),
    ],
    ids=["many", "deep", "big", "few", "empty space"],
)
def test_too_many_files_end_a_program(tmp_path: Path, source: str, is_crowded: bool) -> None:
    with serving(tmp_path) as served:
        served.told()
        handed = served.program()
        channel = handed.runs(f"{source}\nimport time\ntime.sleep({20 if is_crowded else 0.3})")
        if is_crowded:
            found = served.told_of(handed)
        else:
            channel.receive()
            served.control.sendall(nursery.END)
            found = served.told()
        assert found["cut"] == (nursery.CROWDED if is_crowded else "")
        assert found["soiled"]
        handed.close()


def test_a_program_that_lives_on_without_its_connection_is_ended(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        served.told()
        handed = served.program()
        handed.runs("import os, time\nos.closerange(3, 64)\ntime.sleep(20)")
        found = served.told_of(handed)
        assert (found["deserted"], found["status"]) == (True, 9)
        handed.close()


def test_in_a_private_root_files_are_not_looked_at(tmp_path: Path) -> None:
    with serving(tmp_path, level="full") as served:
        served.told()
        handed = served.program()
        channel = handed.runs("for n in range(9): open(str(n), 'w').close()\nimport time\ntime.sleep(0.3)")
        assert channel.receive().startswith(b'["value"')
        handed.close()


@pytest.mark.parametrize("when", ["before", "meanwhile", "after"])
def test_with_the_one_who_asks_everything_ends(tmp_path: Path, when: str) -> None:
    with serving(tmp_path) as served:
        served.told()
        if when == "before":
            served.control.close()
        else:
            handed = served.program()
            handed.runs("import os\nos._exit(0)" if when == "after" else "import time\ntime.sleep(20)")
            if when == "after":
                served.told_of(handed)
            served.control.close()
            assert handed.is_gone()
            handed.close()
        assert served.is_over()


def test_what_a_program_leaves_in_its_group_ends_with_it(tmp_path: Path) -> None:
    source = "import os, time\nif os.fork() == 0:\n    time.sleep(20)\nos._exit(0)"
    with serving(tmp_path) as served:
        served.told()
        handed = served.program()
        handed.runs(source)
        # What it left holds its connection.
        served.control.sendall(nursery.GONE)
        assert served.told()["status"] == 0
        assert handed.is_gone()
        handed.close()


def test_a_program_has_its_connection_and_the_streams_only(tmp_path: Path) -> None:
    source = "import os\nprint([d for d in range(64) if os.path.exists(f'/dev/fd/{d}')], os.listdir('.'))"
    with serving(tmp_path) as served:
        served.told()
        handed = served.program()
        handed.runs(f"{source}\nprint(os.getsid(0) == os.getpid(), os.environ.get('PWD'))")
        assert handed.connection.recv(100).endswith(b"null]]")
        served.control.sendall(nursery.END)
        served.told()
        opened, rest = handed.printed().decode().splitlines()
        assert opened.startswith("[0, 1, 2, ")
        assert opened.count(",") == 3
        assert opened.endswith("] []")
        assert rest == "True None"
        handed.close()


def test_a_program_that_would_not_be_confined_does_not_run(tmp_path: Path) -> None:
    with serving(tmp_path, broken="late") as served:
        served.told()
        handed = served.program()
        assert Channel(handed.connection.fileno()).receive() == candidate.UNCONFINED + b"OSError: not confined"
        assert served.told_of(handed)["status"] == 1 << 8
        handed.close()


def test_a_nursery_that_cannot_be_confined_says_so(tmp_path: Path) -> None:
    with serving(tmp_path, broken="early") as served:
        assert served.told() == {"failure": "OSError: no nursery"}
        assert served.process.wait(WITHIN_S) == 1
