"""The process of the checks: it alone says how a program did, and no code of a program ever runs in it."""

from __future__ import annotations

import contextlib
import importlib
import marshal
import os
import resource
import select
import socket
import sys

from . import candidate, checks, nursery
from .channel import Channel, Dismissed, TooLongError
from .policy import Policy
from .proxies import Peer, in_place, told
from .values import UnreadableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What the report says of a program; these words are those of harness.sandbox.model.Outcome, the others below are not.
PASSED, WRONG_ANSWER, EXCEPTION = "passed", "wrong_answer", "exception"
MEMORY_LIMIT, OUTPUT_LIMIT, NOT_EXECUTABLE = "memory_limit", "output_limit", "not_executable"
# The program ended; how, is for the system to say.
GONE = "gone"
FAILURE = "failure"
_PIECE = 1 << 16
_ASKER = 0
_RECURSION_LIMIT = sys.getrecursionlimit()


class Grader:
    """Judges one program after the other.

    Args:
        policy: How programs are confined.
        control: Connection to the nursery.
        nursery_process: Its process id.
    """

    def __init__(self, policy: Policy, control: socket.socket, nursery_process: int) -> None:
        self._nursery_process = nursery_process
        self._policy = policy
        self._control = control
        self._ends = Channel(control.fileno())
        # Not before the nursery is on its way: there it would draw a new seed in every process.
        self._random = importlib.import_module("random")

    def grade(self, order: dict[str, Any]) -> dict[str, Any]:
        """Runs a program and its checks.

        Args:
            order: ``setup``, ``source``, ``checks``, ``entry_point`` and ``show``.

        Returns:
            ``outcome``, ``detail``, ``assertions`` that held, ``shown``, ``stdout``, and what
            :meth:`nursery._Nursery.serve` says of the end; or ``failure`` where the sandbox is broken.
        """
        try:
            prepared = checks.prepare(order["setup"], order["checks"], order["entry_point"])
        except (SyntaxError, ValueError) as error:
            return {"failure": f"setup or checks are no Python: {error}"}
        # Of what checks may change for those after them, the one thing that some do.
        sys.setrecursionlimit(_RECURSION_LIMIT)
        self._allow_processor_time()
        connection, output = self._started()
        try:
            return self._graded(_Conversation(connection, output, self._policy.output_bytes), prepared, order)
        finally:
            os.close(connection)
            os.close(output)

    def _graded(self, conversation: _Conversation, prepared: checks.Checks, order: dict[str, Any]) -> dict[str, Any]:
        # Drawn cases are the same ones each time.
        self._random.seed(0)
        grading = _Grading(Peer(conversation), prepared)
        outcome, detail = grading.outcome(conversation, order)
        os.write(self._control.fileno(), nursery.GONE if outcome == GONE else nursery.END)
        ended = marshal.loads(self._ends.receive())  # noqa: S302  our own process
        conversation.drain()
        if ended["deserted"]:
            outcome, detail = EXCEPTION, "the connection was closed before the last check"
        return {
            **ended,
            "outcome": outcome,
            "detail": detail,
            "assertions": grading.assertions,
            "shown": grading.shown,
            "stdout": bytes(conversation.stdout),
        }

    def close(self) -> None:
        """Ends the nursery, and with it the program that runs, and waits for that."""
        self._control.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._nursery_process, 0)

    def _started(self) -> tuple[int, int]:
        os.write(self._control.fileno(), nursery.START)
        word, descriptors, _, _ = socket.recv_fds(self._control, 1, 2)
        if not word:
            raise EOFError("the nursery is gone")
        connection, output = descriptors
        return connection, output

    def _allow_processor_time(self) -> None:
        """As much again as a program has, from now on."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        limit = int(used.ru_utime + used.ru_stime) + 1 + self._policy.limits["cpu_s"]
        _, ceiling = resource.getrlimit(resource.RLIMIT_CPU)
        if ceiling != resource.RLIM_INFINITY:
            limit = min(limit, ceiling)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, ceiling))


class _Conversation(Channel):
    """The connection to a program; while it waits, it reads what the program prints.

    Attributes:
        stdout: What was printed so far, up to the limit; what comes after it is read and dropped.
    """

    def __init__(self, descriptor: int, output: int, limit: int) -> None:
        super().__init__(descriptor)
        self.stdout = bytearray()
        self._output = output
        self._limit = limit
        self._poll = select.poll()
        for one in (_ASKER, descriptor, output):
            self._poll.register(one, select.POLLIN)

    def drain(self) -> None:
        """Reads what is left; who else may hold the other end is not waited for."""
        os.set_blocking(self._output, False)
        with contextlib.suppress(BlockingIOError):
            while len(self.stdout) < self._limit and self._read_output():
                pass

    def _fill(self) -> None:
        ready = dict(self._poll.poll())
        if _ASKER in ready:
            # Nothing comes from there before the reply, but its end.
            raise Dismissed
        if self._output in ready and not self._read_output():
            self._poll.unregister(self._output)
        if self._descriptor in ready:
            super()._fill()

    def _read_output(self) -> bool:
        piece = os.read(self._output, _PIECE)
        self.stdout += piece[: self._limit - len(self.stdout)]
        return bool(piece)


class _Grading:
    """One program on its way to a verdict.

    Attributes:
        assertions: How many have held so far.
        shown: The text of the variable that was asked for.
    """

    def __init__(self, peer: Peer, prepared: checks.Checks) -> None:
        self._peer = peer
        self._checks = prepared
        self.assertions = 0
        self.shown: str | None = None

    def outcome(self, channel: Channel, order: dict[str, Any]) -> tuple[str, str]:
        try:
            namespace = self._prepared_namespace(order["checks"])
            wanted = [name for name in self._checks.names if name not in namespace]
            confined = channel.receive()
            if confined != candidate.CONFINED:
                return FAILURE, confined.removeprefix(candidate.UNCONFINED).decode("utf-8", "replace")
            channel.send(marshal.dumps((order["setup"], order["source"], wanted, order["show"])))
            found, self.shown = _first_reply(self._peer.reply())
            found = {name: found[name] for name in wanted if name in found}
            namespace.update(found)
            if self._checks.entry_point and self._checks.entry_point not in found:
                # A built-in of this name must not stand in for it.
                raise NameError(f"name {self._checks.entry_point!r} is not defined")
            exec(self._checks.code, namespace)  # noqa: S102  trusted
        except Dismissed:
            raise
        except BaseException as error:
            self._peer.is_silent = True
            return _judged(self._peer.failure or error)
        if self._peer.failure is not None:
            return _judged(self._peer.failure)
        if self._checks.asserts and not self.assertions:
            return EXCEPTION, "no assertion of the checks was reached"
        return PASSED, ""

    def _prepared_namespace(self, source: str) -> dict[str, Any]:
        namespace: dict[str, Any] = {"__name__": candidate.MODULE, checks.PASSED: self._count}
        namespace[checks.IN_PLACE] = in_place
        if source:
            exec(self._checks.setup, namespace)  # noqa: S102  trusted
        for name in self._checks.modules:
            namespace.setdefault(name, importlib.import_module(name))
        namespace.pop(self._checks.entry_point, None)
        return namespace

    def _count(self) -> None:
        self.assertions += 1


def _first_reply(reply: Any) -> tuple[dict[str, Any], str | None]:
    match reply:
        case [dict(found), (str() | None) as shown] if len(shown or "") <= candidate.LONGEST_SHOWN:
            return found, shown
    raise UnreadableError("a first reply of no known form")


def _judged(error: BaseException) -> tuple[str, str]:
    remote = told(error)
    if remote is not None:
        kind = NOT_EXECUTABLE if remote.kind == candidate.UNREADABLE else EXCEPTION
        return (MEMORY_LIMIT if isinstance(error, MemoryError) else kind), remote.text
    match error:
        case EOFError() | ConnectionError():
            return GONE, ""
        case TooLongError():
            return OUTPUT_LIMIT, f"a value of {error} bytes was returned"
        case UnreadableError():
            return EXCEPTION, f"an unreadable value was returned: {error}"
    detail, part = _described(error)
    if isinstance(error, MemoryError):
        return MEMORY_LIMIT, detail
    return (WRONG_ANSWER if isinstance(error, AssertionError) and part == candidate.CHECKS else EXCEPTION), detail


def _described(error: BaseException) -> tuple[str, str]:
    try:
        return candidate.describe(error)
    except Exception:
        # A check's own message may hold a number of more digits than can be written.
        return candidate.name(error)
