"""The first process of a worker, and the fork server: the warm process that is forked for every program."""

import contextlib
import gc
import itertools
import json
import marshal
import math
import os
import select
import signal
import socket
import sys
import time
from typing import NoReturn

from . import candidate, confinement, linux, protocol
from .confinement import FULL, RLIMIT, Policy
from .protocol import DISK, LONGEST_JOB, WALL, Channel

# Likely imports of programs and checks. Not random, which would draw a new seed in every child.
_LIKELY_IMPORTS = "bisect collections copy functools heapq itertools json math operator re string typing"
_WATCH_MS = 50  # time between two counts of files; in a private root the kernel limits their number
# How long a process may live after it has closed its connection, and the time between two checks of it.
_PATIENCE_S, _PAUSE_S = 2.0, 0.0005


def main() -> None:
    """Fork the fork server, then run jobs until standard input ends. The last argument is the policy as JSON."""
    parent = Channel(0)
    try:
        policy = Policy(**json.loads(sys.argv[2]))
        for name in _LIKELY_IMPORTS.split():
            __import__(name)
        control, servers_end = socket.socketpair()
        # Forked before a job arrives, so that no checks are ever in the memory of a program.
        server = os.fork()
        if server == 0:
            _serve(policy, servers_end)
        servers_end.close()
        # Imported after the fork: with less memory, the fork server forks faster.
        from .grader import Grader

        grader = Grader(policy, control)
        while True:
            # Jobs come from the parent process.
            parent.send(marshal.dumps(grader.run(marshal.loads(parent.receive(LONGEST_JOB)))))  # noqa: S302
    except EOFError as error:
        os.write(2, str(error).encode())
        control.close()
        os.waitpid(server, 0)
    except BaseException as error:
        parent.send(marshal.dumps({"failure": f"{type(error).__name__}: {error}"}))
    os._exit(0)


def _serve(policy: Policy, control: socket.socket) -> NoReturn:
    """Serve the grader at the other end of ``control`` until it is gone. Never holds a program or a check."""
    try:
        for number in range(2):
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
        confinement.keep_only([control.fileno()])
        if policy.level == FULL:
            # The child is the first process of new namespaces: when it ends, all processes in them end.
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
        candidate.warm_up()
        self._rules, pinned = confinement.prepare_file_access(policy, policy.work_dir)
        self._kept = [*pinned, *([] if self._rules is None else [self._rules])]
        self._null = os.open(os.devnull, os.O_RDWR)
        os.chdir(policy.work_dir)
        self._clean_state = self._work_dir_state()
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        confinement.confine_fork_server(policy)
        candidate.hide_suite()
        gc.disable()
        gc.collect()
        # Present objects never become garbage; a collection in a child would copy their pages.
        gc.freeze()

    def serve(self) -> bool:
        """Fork a process, give its connection to the grader, and report how it ended. False if the grader is gone."""
        connection, programs_end = socket.socketpair()
        server = os.getpid()
        child = os.fork()
        if child == 0:
            self._become_program(server, programs_end.fileno())
        programs_end.close()
        socket.send_fds(self._control, [protocol.READY], [connection.fileno()])
        connection.close()
        word, limit = self._receive_word(), 0
        if word == protocol.START:
            word, limit = self._watch(child)
        if not word:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return False
        status, cpu_s, lived_on = _end(child, patiently=word == protocol.HUNG_UP and not limit)
        # At ``rlimit`` the program may have started processes.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
        try:
            is_dirty = self._work_dir_state() != self._clean_state
        except OSError:
            is_dirty = True
        if is_dirty and not limit and self._is_full(if_unreadable=False):
            limit = DISK
        self._control.send(protocol.REPORT.pack(status, cpu_s, limit, lived_on, is_dirty))
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
        """Kill a program at the wall or disk limit. Return the grader's next word and the limit (0 if none was hit)."""
        deadline, limit = time.monotonic() + self._policy.limits["wall_s"], 0
        pause_ms = _WATCH_MS if self._policy.level == RLIMIT else math.inf
        while not limit and not self._poll.poll(min(pause_ms, max(0.0, deadline - time.monotonic()) * 1000)):
            limit = WALL if time.monotonic() >= deadline else DISK if self._is_full(if_unreadable=True) else 0
        if limit:
            # The grader sees the end of the connection, and replies.
            os.kill(child, signal.SIGKILL)
        return self._receive_word(), limit

    def _receive_word(self) -> bytes:
        with contextlib.suppress(ConnectionResetError):
            return self._control.recv(1)
        return b""

    def _work_dir_state(self) -> tuple[object, ...]:
        path = self._policy.work_dir
        status = os.stat(path)
        attributes = os.listxattr(path) if hasattr(os, "listxattr") else []
        return status.st_mode, status.st_uid, status.st_gid, attributes, os.listdir(path)

    def _is_full(self, *, if_unreadable: bool) -> bool:
        """Whether files are too many or too large (``rlimit`` only). ``if_unreadable`` if some files cannot be read."""
        entries = size = 0
        pending = [self._policy.work_dir] if self._policy.level == RLIMIT else []
        try:
            while pending and entries <= protocol.MOST_ENTRIES and size <= protocol.MOST_BYTES:
                with contextlib.suppress(FileNotFoundError), os.scandir(pending.pop()) as directory:
                    for entry in itertools.islice(directory, protocol.MOST_ENTRIES + 1):
                        entries += 1
                        size += entry.stat(follow_symlinks=False).st_blocks * 512
                        pending += [entry.path] if entry.is_dir(follow_symlinks=False) else []
        except OSError:
            return if_unreadable
        return entries > protocol.MOST_ENTRIES or size > protocol.MOST_BYTES


def _end(child: int, *, patiently: bool) -> tuple[int, float, bool]:
    """End a process, after a wait if ``patiently``. Return status, processor time, and whether it outlived the wait."""
    deadline = time.monotonic() + _PATIENCE_S
    while patiently and time.monotonic() < deadline:
        ended, status, usage = os.wait4(child, os.WNOHANG)
        if ended:
            return status, usage.ru_utime + usage.ru_stime, False
        time.sleep(_PAUSE_S)
    os.kill(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    return status, usage.ru_utime + usage.ru_stime, patiently
