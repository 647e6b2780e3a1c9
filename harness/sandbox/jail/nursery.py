"""The warm process that programs are forked from: it knows the confinement, and no program, check or output.

It keeps one confined process ready, which waits for a program. The process of the checks asks for it and is handed
both its connections; what goes over them does not come by here.
"""

from __future__ import annotations

import contextlib
import gc
import marshal
import os
import select
import signal
import socket
import time

from . import candidate, linux
from .channel import Channel
from .confinement import BUBBLEWRAP, FULL, RLIMIT, confine_nursery, file_rules, keep_only
from .policy import Policy
from .preload import preload

TYPE_CHECKING = False
if TYPE_CHECKING:
    import resource
    from typing import NoReturn

# What the other side may say: hand over the process that is ready; end it; its connection has ended.
START, END, GONE = b"s", b"e", b"g"
WALL, CROWDED = "wall", "crowded"
_WATCH_MS = 50
# From the end of a connection to the end of its process, where one follows.
_PATIENCE_S, _PAUSE_S = 2.0, 0.0005


def main(policy: Policy, control: socket.socket, parent: int | None) -> NoReturn:
    """Serves one program after the other until the other side is gone.

    Args:
        policy: How programs are confined.
        control: Connection to the process of the checks.
        parent: Process id of the parent as this process sees it, whose end is to be the end of this one; ``None``
            where something else takes care of that.
    """
    try:
        nursery = _Nursery(policy, control, parent)
    except BaseException as error:
        Channel(control.fileno()).send(marshal.dumps({"failure": f"{type(error).__name__}: {error}"}))
        os._exit(1)
    Channel(control.fileno()).send(marshal.dumps({}))
    try:
        while nursery.serve():
            pass
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}".encode())
    os._exit(0)


class _Nursery:
    def __init__(self, policy: Policy, control: socket.socket, parent: int | None) -> None:
        self._policy = policy
        self._control = control
        if policy.level != RLIMIT and parent is not None:
            linux.die_with_parent(parent)
        preload()
        candidate.rehearse()
        self._rules, self._pinned = file_rules(policy, policy.box)
        self._nothing = os.open(os.devnull, os.O_RDWR)
        os.chdir(policy.box)
        self._state_of_box = self._look_at_box()
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        self._confine_program = confine_nursery(policy, self._rules)
        candidate.prepare()
        gc.disable()
        gc.collect()
        # Nothing of what is there now is ever garbage, and looking at it would copy it into every child.
        gc.freeze()

    def serve(self) -> bool:
        """Gets a process ready, hands it over when asked to, and says how it ended; false at the end of service.

        The reply says ``status`` as from ``wait``, ``cpu_s`` used, ``cut`` where the clock or too many files were the
        end of it, ``deserted`` where it lived on without its connection, and ``soiled`` where files are left.
        """
        connection, theirs = socket.socketpair()
        output, output_end = os.pipe()
        me = os.getpid()
        child = os.fork()
        if child == 0:
            self._become_program(me, theirs.fileno(), output_end)
        theirs.close()
        os.close(output_end)
        if self._control.recv(1) != START:
            self._end(child)
            return False
        socket.send_fds(self._control, [START], [connection.fileno(), output])
        connection.close()
        os.close(output)
        cut, deserted, status, cpu_s = self._wait(child)
        self._sweep(child)
        soiled = self._is_soiled()
        if soiled and not cut and self._policy.level != FULL and self._is_crowded(uncountable=False):
            cut = CROWDED
        found = {"status": status, "cpu_s": cpu_s, "cut": cut, "deserted": deserted, "soiled": soiled}
        Channel(self._control.fileno()).send(marshal.dumps(found))
        return True

    def _become_program(self, parent: int, connection: int, output: int) -> NoReturn:
        channel = Channel(connection)
        try:
            for number, descriptor in enumerate((self._nothing, output, self._nothing)):
                os.dup2(descriptor, number)
            keep_only([connection, *self._pinned, *([] if self._rules is None else [self._rules])])
            os.setsid()
            self._confine_program(parent)
        except BaseException as error:
            channel.send(candidate.UNCONFINED + f"{type(error).__name__}: {error}".encode())
            os._exit(1)
        candidate.run(channel)

    def _wait(self, child: int) -> tuple[str, bool, int, float]:
        """Waits until a program is to end, and brings its end about; or at its time, or when files are too many.

        Returns:
            The cut, whether the program lived on without its connection, status, processor seconds.
        """
        deadline = time.monotonic() + self._policy.wall_s
        watched = self._policy.level != FULL
        cut = ""
        while True:
            left = max(0.0, deadline - time.monotonic()) * 1000
            if self._poll.poll(min(left, _WATCH_MS) if watched and not cut else None if cut else left):
                word = self._control.recv(1)
                if not word:
                    self._end(child)
                    os._exit(0)
                break
            if time.monotonic() >= deadline:
                cut = WALL
            elif watched and self._is_crowded(uncountable=True):
                cut = CROWDED
            if cut:
                # The other side notices, and says so.
                os.kill(child, signal.SIGKILL)
        is_gone = word == GONE and not cut
        ended = self._ended_by_itself(child) if is_gone else None
        if ended is None:
            os.kill(child, signal.SIGKILL)
        _, status, usage = ended or os.wait4(child, 0)
        return cut, is_gone and ended is None, status, usage.ru_utime + usage.ru_stime

    def _ended_by_itself(self, child: int) -> tuple[int, int, resource.struct_rusage] | None:
        """How a program whose connection has ended did end; ``None`` where it lives on."""
        patience = time.monotonic() + _PATIENCE_S
        while time.monotonic() < patience:
            ended = os.wait4(child, os.WNOHANG)
            if ended[0]:
                return ended
            time.sleep(_PAUSE_S)
        return None

    def _end(self, child: int) -> None:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    def _sweep(self, child: int) -> None:
        """Ends what a program may have left; where it could start nothing, there is nothing."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self._policy.level in (FULL, BUBBLEWRAP):
                os.kill(-1, signal.SIGKILL)
            else:
                os.killpg(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass

    def _look_at_box(self) -> tuple[object, ...]:
        box = self._policy.box
        found = os.stat(box)
        attributes = os.listxattr(box) if hasattr(os, "listxattr") else []
        return found.st_mode, found.st_uid, found.st_gid, attributes, os.listdir(box)

    def _is_soiled(self) -> bool:
        """Whether the next program would find anything of this one in the work directory."""
        try:
            return self._look_at_box() != self._state_of_box
        except OSError:
            return True

    def _is_crowded(self, *, uncountable: bool) -> bool:
        """Whether files are too many or too large.

        Args:
            uncountable: What to say where some cannot be counted.
        """
        entries = size = 0
        pending = [self._policy.box]
        try:
            while pending:
                with contextlib.suppress(FileNotFoundError), os.scandir(pending.pop()) as found:
                    for entry in found:
                        entries += 1
                        size += entry.stat(follow_symlinks=False).st_blocks * 512
                        if entries > self._policy.box_entries or size > self._policy.box_bytes:
                            return True
                        if entry.is_dir(follow_symlinks=False):
                            pending.append(entry.path)
        except OSError:
            return uncountable
        return False
