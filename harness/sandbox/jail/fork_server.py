"""The fork server: the warm process that programs are forked from; it knows no program, no check and no output."""

from __future__ import annotations

import contextlib
import gc
import importlib
import itertools
import json
import marshal
import math
import os
import select
import signal
import socket
import struct
import sys
import time
from typing import NoReturn

from . import candidate, linux
from .confinement import FULL, RLIMIT, Policy, confine_fork_server, file_rules, isolate, keep_only
from .values import LONGEST_ORDER, Channel

# What the grader may say of the process it has: it begins, it is to end, its connection has ended.
START, END, GONE = b"s", b"e", b"g"
# What the fork server says: one is ready, and comes along; otherwise why there is none.
READY = b"r"
# How a process ended: status as from ``wait``, processor time, whether time or files made it end, whether it lived on
# without its connection, whether it left files.
REPORT = struct.Struct("<idB??")
WALL, CROWDED = 1, 2
# What a work directory may hold: in a private root the kernel counts, elsewhere this process looks now and then.
BOX_ENTRIES, BOX_BYTES = 1000, 16 << 20
_WATCH_MS = 50
# From the end of a connection to the end of its process, where one follows.
_PATIENCE_S, _PAUSE_S = 2.0, 0.0005
# What programs and checks are likely to import. Not random: it would draw a new seed in every child.
_LIKELY = "bisect collections copy functools heapq itertools json math operator re string typing"


def main() -> None:
    """Run a worker from its first process on: grade one order after the other until the connection ends."""
    parent = Channel(0)
    try:
        policy = Policy(**json.loads(sys.argv[2]))
        control, theirs = socket.socketpair()
        # Before anything is received: nothing that arrives here is ever in the memory of a program.
        server = os.fork()
        if server == 0:
            _serve(policy, theirs)
        theirs.close()
        # Not earlier either: the less a process holds, the sooner it is copied.
        from .grader import Grader

        grader = Grader(policy, control)
        while True:
            # The other end is the process that started this one.
            parent.send(marshal.dumps(grader.grade(marshal.loads(parent.receive(LONGEST_ORDER)))))  # noqa: S302
    except EOFError as error:
        os.write(2, str(error).encode())
        control.close()
        os.waitpid(server, 0)
    except BaseException as error:
        parent.send(marshal.dumps({"failure": f"{type(error).__name__}: {error}"}))
    os._exit(0)


def preload() -> None:
    """Import what is likely to be asked for; a program that does not import a module does not see its name."""
    for name in _LIKELY.split():
        importlib.import_module(name)


def _serve(policy: Policy, control: socket.socket) -> NoReturn:
    try:
        for number in range(2):
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
        keep_only([control.fileno()])
        if policy.level == FULL:
            # Goes on as the first process of new namespaces: with it, everything in there ends.
            isolate(policy)
            first = os.fork()
            if first != 0:
                os.waitpid(first, 0)
                os._exit(0)
            linux.dying_with_parent()(0)
        server = _ForkServer(policy, control)
    except BaseException as error:
        control.send(f"{type(error).__name__}: {error}".encode())
        os._exit(1)
    try:
        while server.serve():
            pass
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}".encode())
    os._exit(0)


class _ForkServer:
    def __init__(self, policy: Policy, control: socket.socket) -> None:
        self._policy = policy
        self._control = control
        preload()
        candidate.rehearse()
        self._rules, pinned = file_rules(policy, policy.box)
        self._kept = [*pinned, *([] if self._rules is None else [self._rules])]
        self._nothing = os.open(os.devnull, os.O_RDWR)
        os.chdir(policy.box)
        self._state_of_box = self._look_at_box()
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        self._confine_program = confine_fork_server(policy, self._rules)
        candidate.prepare()
        gc.disable()
        gc.collect()
        # Nothing of what is there now is ever garbage, and looking at it would copy it into every child.
        gc.freeze()

    def serve(self) -> bool:
        """Get a process ready, hand it over, and report how it ended; False at the end of service."""
        connection, theirs = socket.socketpair()
        output, output_end = os.pipe()
        me = os.getpid()
        child = os.fork()
        if child == 0:
            self._become_program(me, theirs.fileno(), output_end)
        theirs.close()
        os.close(output_end)
        socket.send_fds(self._control, [READY], [connection.fileno(), output])
        connection.close()
        os.close(output)
        word, cut = self._word(), 0
        if word == START:
            word, cut = self._watched(child)
        if not word:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return False
        status, cpu_s, deserted = _ended(child, patiently=word == GONE and not cut)
        # What it may have left; at ``full`` it could start nothing.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
        try:
            soiled = self._look_at_box() != self._state_of_box
        except OSError:
            soiled = True
        if soiled and not cut and self._is_crowded(uncountable=False):
            cut = CROWDED
        self._control.send(REPORT.pack(status, cpu_s, cut, deserted, soiled))
        return True

    def _become_program(self, parent: int, connection: int, output: int) -> NoReturn:
        channel = Channel(connection)
        try:
            for number, descriptor in enumerate((self._nothing, output, self._nothing)):
                os.dup2(descriptor, number)
            keep_only([connection, *self._kept])
            os.setsid()
            self._confine_program(parent)
        except BaseException as error:
            channel.send(candidate.UNCONFINED + f"{type(error).__name__}: {error}".encode())
            os._exit(1)
        candidate.run(channel)

    def _watched(self, child: int) -> tuple[bytes, int]:
        deadline, cut = time.monotonic() + self._policy.limits["wall_s"], 0
        step = _WATCH_MS if self._policy.level == RLIMIT else math.inf
        while not cut and not self._poll.poll(min(step, max(0.0, deadline - time.monotonic()) * 1000)):
            cut = WALL if time.monotonic() >= deadline else CROWDED if self._is_crowded(uncountable=True) else 0
        if cut:
            # The other side notices, and says so.
            os.kill(child, signal.SIGKILL)
        return self._word(), cut

    def _word(self) -> bytes:
        """What the grader says next; nothing where it is gone, with or without having taken what it was sent."""
        with contextlib.suppress(ConnectionResetError):
            return self._control.recv(1)
        return b""

    def _look_at_box(self) -> tuple[object, ...]:
        box = self._policy.box
        found = os.stat(box)
        attributes = os.listxattr(box) if hasattr(os, "listxattr") else []
        return found.st_mode, found.st_uid, found.st_gid, attributes, os.listdir(box)

    def _is_crowded(self, *, uncountable: bool) -> bool:
        """Whether files are too many or too large, at ``rlimit``; ``uncountable`` is the answer where some hide."""
        entries = size = 0
        pending = [self._policy.box] if self._policy.level == RLIMIT else []
        try:
            while pending and entries <= BOX_ENTRIES and size <= BOX_BYTES:
                with contextlib.suppress(FileNotFoundError), os.scandir(pending.pop()) as found:
                    for entry in itertools.islice(found, BOX_ENTRIES + 1):
                        entries += 1
                        size += entry.stat(follow_symlinks=False).st_blocks * 512
                        pending += [entry.path] if entry.is_dir(follow_symlinks=False) else []
        except OSError:
            return uncountable
        return entries > BOX_ENTRIES or size > BOX_BYTES


def _ended(child: int, *, patiently: bool) -> tuple[int, float, bool]:
    """Status and processor time of a process that has to end now, and whether it had to be told, when asked first."""
    patience = time.monotonic() + _PATIENCE_S
    while patiently and time.monotonic() < patience:
        ended, status, usage = os.wait4(child, os.WNOHANG)
        if ended:
            return status, usage.ru_utime + usage.ru_stime, False
        time.sleep(_PAUSE_S)
    os.kill(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    return status, usage.ru_utime + usage.ru_stime, patiently
