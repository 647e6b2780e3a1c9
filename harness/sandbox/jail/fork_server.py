"""The fork server: the warm process that programs are forked from; it knows no program and no check."""

from __future__ import annotations

import contextlib
import gc
import itertools
import math
import os
import select
import signal
import socket
import time
from typing import NoReturn

from . import candidate, confinement, linux, protocol
from .confinement import FULL, RLIMIT, Policy
from .protocol import CROWDED, WALL, Channel

# In a private root the kernel counts files; elsewhere this process looks every so often.
_WATCH_MS = 50
# How long a process may live on after its connection has ended, and how often to look.
_PATIENCE_S, _PAUSE_S = 2.0, 0.0005


def run(policy: Policy, control: socket.socket) -> NoReturn:
    """Serve the grader at the other end of ``control`` until it is gone, in the namespaces of programs."""
    try:
        for number in range(2):
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
        confinement.keep_only([control.fileno()])
        if policy.level == FULL:
            # The child goes on as the first process of new namespaces: when it ends, all processes in them end.
            confinement.isolate(policy)
            first = os.fork()
            if first != 0:
                os.waitpid(first, 0)
                os._exit(0)
            linux.die_with_parent(0)
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
        candidate.rehearse()
        self._rules, pinned = confinement.prepare_file_access(policy, policy.box)
        self._kept = [*pinned, *([] if self._rules is None else [self._rules])]
        self._null = os.open(os.devnull, os.O_RDWR)
        os.chdir(policy.box)
        self._clean_box = self._box_state()
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        confinement.confine_fork_server(policy)
        candidate.prepare()
        gc.disable()
        gc.collect()
        # No present object ever becomes garbage; a collection in a child would only copy the pages they are on.
        gc.freeze()

    def serve(self) -> bool:
        """Fork a process, hand it over, and report how it ended; return False at the end of service."""
        connection, programs_end = socket.socketpair()
        server = os.getpid()
        child = os.fork()
        if child == 0:
            self._become_program(server, programs_end.fileno())
        programs_end.close()
        socket.send_fds(self._control, [protocol.READY], [connection.fileno()])
        connection.close()
        word, cut = self._receive_word(), 0
        if word == protocol.START:
            word, cut = self._watch(child)
        if not word:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return False
        status, cpu_s, lived_on = _end(child, patiently=word == protocol.HUNG_UP and not cut)
        # Processes that it may have started at ``rlimit``.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
        try:
            is_soiled = self._box_state() != self._clean_box
        except OSError:
            is_soiled = True
        if is_soiled and not cut and self._is_crowded(if_unreadable=False):
            cut = CROWDED
        self._control.send(protocol.REPORT.pack(status, cpu_s, cut, lived_on, is_soiled))
        return True

    def _become_program(self, parent: int, connection: int) -> NoReturn:
        channel = Channel(connection)
        try:
            for number in range(3):
                os.dup2(self._null, number)
            confinement.keep_only([connection, *self._kept])
            os.setsid()
            confinement.confine_program(self._policy, self._rules, parent)
        except BaseException as error:
            channel.send(protocol.UNCONFINED + f"{type(error).__name__}: {error}".encode())
            os._exit(1)
        candidate.run(channel)

    def _watch(self, child: int) -> tuple[bytes, int]:
        """Kill a program that waits too long or writes too much; return the grader's next word and the limit passed."""
        deadline, cut = time.monotonic() + self._policy.limits["wall_s"], 0
        pause_ms = _WATCH_MS if self._policy.level == RLIMIT else math.inf
        while not cut and not self._poll.poll(min(pause_ms, max(0.0, deadline - time.monotonic()) * 1000)):
            cut = WALL if time.monotonic() >= deadline else CROWDED if self._is_crowded(if_unreadable=True) else 0
        if cut:
            # The grader notices, and says so.
            os.kill(child, signal.SIGKILL)
        return self._receive_word(), cut

    def _receive_word(self) -> bytes:
        """Return the grader's next word, empty if it is gone, whether or not it took what it was sent."""
        with contextlib.suppress(ConnectionResetError):
            return self._control.recv(1)
        return b""

    def _box_state(self) -> tuple[object, ...]:
        box = self._policy.box
        status = os.stat(box)
        attributes = os.listxattr(box) if hasattr(os, "listxattr") else []
        return status.st_mode, status.st_uid, status.st_gid, attributes, os.listdir(box)

    def _is_crowded(self, *, if_unreadable: bool) -> bool:
        """Return whether files are too many or too large, at ``rlimit``; ``if_unreadable`` where some are hidden."""
        entries = size = 0
        pending = [self._policy.box] if self._policy.level == RLIMIT else []
        try:
            while pending and entries <= protocol.BOX_ENTRIES and size <= protocol.BOX_BYTES:
                with contextlib.suppress(FileNotFoundError), os.scandir(pending.pop()) as directory:
                    for entry in itertools.islice(directory, protocol.BOX_ENTRIES + 1):
                        entries += 1
                        size += entry.stat(follow_symlinks=False).st_blocks * 512
                        pending += [entry.path] if entry.is_dir(follow_symlinks=False) else []
        except OSError:
            return if_unreadable
        return entries > protocol.BOX_ENTRIES or size > protocol.BOX_BYTES


def _end(child: int, *, patiently: bool) -> tuple[int, float, bool]:
    """Return status and processor time of a process, and whether it outlived its time to end and was killed."""
    deadline = time.monotonic() + _PATIENCE_S
    while patiently and time.monotonic() < deadline:
        ended, status, usage = os.wait4(child, os.WNOHANG)
        if ended:
            return status, usage.ru_utime + usage.ru_stime, False
        time.sleep(_PAUSE_S)
    os.kill(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    return status, usage.ru_utime + usage.ru_stime, patiently
