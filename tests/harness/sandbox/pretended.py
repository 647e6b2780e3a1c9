"""The far end of a conversation: a program that answers as told, or a real one in a thread, and what it was asked."""

from __future__ import annotations

import contextlib
import json
import marshal
import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest

from harness.sandbox.jail import candidate, grader
from harness.sandbox.jail.proxies import Peer
from harness.sandbox.jail.values import Channel

LIMIT = 1000


def framed(message: bytes) -> bytes:
    return len(message).to_bytes(4, "little") + message


def reply(*parts: object) -> bytes:
    return framed(json.dumps(parts).encode())


CONFINED = framed(candidate.CONFINED)


def found(names: dict[str, object] | None = None, shown: object = None) -> bytes:
    """The first reply, once the program has run; values as they are on the way."""
    return CONFINED + reply("value", [{"dict": list(map(list, (names or {}).items()))}, shown])


def remote(number: int, kind: str = "function") -> dict[str, object]:
    return {"object": [number, kind]}


@contextlib.contextmanager
def scripted(*replies: bytes) -> Iterator[tuple[Peer, socket.socket]]:
    """A peer whose replies all lie ready, followed by the end of the connection."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"".join(replies))
        theirs.shutdown(socket.SHUT_WR)
        yield Peer(Channel(ours.fileno())), theirs


def requests(theirs: socket.socket) -> list[Any]:
    """What was asked meanwhile, undecoded but for its form."""
    theirs.setblocking(False)
    received = b""
    with contextlib.suppress(BlockingIOError):
        while piece := theirs.recv(1 << 16):
            received += piece
    found = []
    while received:
        length = int.from_bytes(received[:4], "little")
        found.append(received[4 : 4 + length])
        received = received[4 + length :]
    return found


@dataclass
class Judged:
    """What became of a conversation.

    Attributes:
        ended: Outcome and detail.
        asked: Every message to the program, its order first.
        grading: What judged it.
        stdout: What it printed.
    """

    ended: tuple[str, str]
    asked: list[bytes]
    grading: grader._Grading
    stdout: bytes

    @property
    def outcome(self) -> str:
        return self.ended[0]


@dataclass
class Judge:
    """Judges programs as the process of the checks does, without the processes.

    Attributes:
        patch: Undone after the test.
        asker: Who wanted the verdict; writing here, or closing it, is what the end of that one looks like.
        printing: What is written here, the program has printed.
    """

    patch: pytest.MonkeyPatch
    asker: int = field(init=False)
    printing: int = field(init=False)

    def __post_init__(self) -> None:
        self._asked, self.asker = os.pipe()
        self.patch.setattr(grader, "_ASKER", self._asked)
        self._output, self.printing = os.pipe()

    def close(self) -> None:
        for descriptor in (self._asked, self.asker, self._output, self.printing):
            os.close(descriptor)

    def on(self, replies: bytes, source: str, /, is_deaf: bool = False, **order: str) -> Judged:
        """The checks ``source`` on a program whose replies lie ready; a deaf one has closed the connection."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            theirs.sendall(replies)
            if is_deaf:
                theirs.close()
            else:
                theirs.shutdown(socket.SHUT_WR)
            grading, ended, stdout = self._judged(ours, source, order)
            return Judged(ended, [] if is_deaf else requests(theirs), grading, stdout)

    def of(self, program: str, source: str, /, **order: str) -> Judged:
        """The checks ``source`` on a program that runs in a thread of this process."""
        asked: list[bytes] = []
        ours, theirs = socket.socketpair()
        with ours, theirs:
            thread = threading.Thread(target=_serve, args=(Channel(theirs.fileno()), asked))
            thread.start()
            try:
                grading, ended, stdout = self._judged(ours, source, {**order, "source": program})
            finally:
                ours.shutdown(socket.SHUT_RDWR)
                thread.join()
        return Judged(ended, asked, grading, stdout)

    def _judged(
        self, ours: socket.socket, source: str, order: dict[str, str]
    ) -> tuple[grader._Grading, tuple[str, str], bytes]:
        told = {"setup": "", "source": "", "entry_point": "", "show": "", "checks": source, **order}
        conversation = grader._Conversation(ours.fileno(), self._output, LIMIT)
        prepared = grader.read_checks(told["setup"], source, told["entry_point"])
        grading = grader._Grading(conversation, prepared)
        return grading, grading.outcome(told), bytes(conversation.stdout)


def _serve(channel: Channel, asked: list[bytes]) -> None:
    channel.send(candidate.CONFINED)
    with contextlib.suppress(EOFError, OSError):
        asked.append(channel.receive())
        setup, source, names, show = marshal.loads(asked[0])  # noqa: S302
        program = candidate._Program(setup, source, names, show, vars(ModuleType(candidate.MODULE)))
        channel.send(program.start())
        while True:
            asked.append(channel.receive())
            channel.send(program.reply(asked[-1]))
