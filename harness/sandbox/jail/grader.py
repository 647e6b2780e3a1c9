"""The process of the checks: it alone gives the verdict, and no code of a program ever runs in it."""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import importlib
import marshal
import os
import random
import resource
import select
import socket
import symtable
import sys
import warnings
from types import CodeType
from typing import Any, NamedTuple

from . import candidate, fork_server
from .confinement import Policy, confine_checks, file_rules
from .proxies import Peer, in_place, told
from .values import Channel, Dismissed, TooLongError, UnreadableError

# What the report says of a program; these words are those of harness.sandbox.model.Outcome, the others below are not.
PASSED, WRONG_ANSWER, EXCEPTION = "passed", "wrong_answer", "exception"
MEMORY_LIMIT, OUTPUT_LIMIT, NOT_EXECUTABLE = "memory_limit", "output_limit", "not_executable"
# The program ended; how, is for the system to say.
GONE = "gone"
FAILURE = "failure"
_PIECE = 1 << 16
_ASKER = 0
_RECURSION_LIMIT = sys.getrecursionlimit()
# No source text can hold these names.
_HELD, _IN_PLACE = "@held", "@in_place"
_BUILT_IN = frozenset(dir(builtins))


class Grader:
    """Judges one program after the other, in a process that is confined from then on.

    Takes how programs are confined, the connection to the fork server, and its process id; raises OSError where the
    machine does not allow what the policy asks for.
    """

    def __init__(self, policy: Policy, control: socket.socket, server: int) -> None:
        self._server = server
        self._policy = policy
        self._control = control
        self._ends = Channel(control.fileno())
        fork_server.preload()
        # Nobody reads what the compiler thinks of somebody's checks, and a full pipe would stop everything.
        warnings.simplefilter("ignore")
        rules, self._pinned = file_rules(policy, None)
        started = marshal.loads(self._ends.receive())  # noqa: S302  our own process
        if "failure" in started:
            raise OSError(started["failure"])
        confine_checks(policy, rules)

    def grade(self, order: dict[str, Any]) -> dict[str, Any]:
        """Run a program and its checks, the fields of a :class:`harness.sandbox.Program`.

        Returns:
            ``outcome``, ``detail``, ``assertions`` that held, ``shown``, ``stdout``, and what the fork server says of
            the end; or ``failure`` where the sandbox is broken.
        """
        try:
            prepared = read_checks(order["setup"], order["checks"], order["entry_point"])
        except (SyntaxError, ValueError) as error:
            return {"failure": f"setup or checks are no Python: {error}"}
        # Of what checks may change for those after them, the one thing that some do.
        sys.setrecursionlimit(_RECURSION_LIMIT)
        # As much processor time again as a program has, from now on.
        used = resource.getrusage(resource.RUSAGE_SELF)
        limit = int(used.ru_utime + used.ru_stime) + 1 + self._policy.limits["cpu_s"]
        _, ceiling = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (limit if ceiling < 0 else min(limit, ceiling), ceiling))
        os.write(self._control.fileno(), fork_server.START)
        word, descriptors, _, _ = socket.recv_fds(self._control, 1, 2)
        if not word:
            raise EOFError("the fork server is gone")
        try:
            connection, output = descriptors
            conversation = _Conversation(connection, output, self._policy.limits["output_kib"] << 10)
            # Drawn cases are the same ones each time.
            random.seed(0)
            grading = _Grading(conversation, prepared)
            outcome, detail = grading.outcome(order)
            os.write(self._control.fileno(), fork_server.GONE if outcome == GONE else fork_server.END)
            ended = marshal.loads(self._ends.receive())  # noqa: S302  our own process
            conversation.drain()
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        if ended["deserted"]:
            outcome, detail = EXCEPTION, "the connection was closed before the last check"
        graded = {"outcome": outcome, "detail": detail, "assertions": grading.assertions, "shown": grading.shown}
        return {**ended, **graded, "stdout": bytes(conversation.stdout)}

    def close(self) -> None:
        """End the fork server, and with it the program that runs, and wait for that."""
        self._control.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._server, 0)


class _Conversation(Channel):
    """The connection to a program; while it waits, it reads what the program prints, and keeps it up to the limit."""

    def __init__(self, descriptor: int, output: int, limit: int) -> None:
        super().__init__(descriptor)
        self.stdout = bytearray()
        self._output = output
        self._limit = limit
        self._poll = select.poll()
        for one in (_ASKER, descriptor, output):
            self._poll.register(one, select.POLLIN)

    def drain(self) -> None:
        """Read what is left; who else may hold the other end is not waited for."""
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
    """One program on its way to a verdict; counts the assertions that held, keeps the text that was asked for."""

    def __init__(self, channel: Channel, prepared: _Checks) -> None:
        self._channel, self._peer, self._checks = channel, Peer(channel), prepared
        self.assertions = 0
        self.shown: str | None = None

    def outcome(self, order: dict[str, Any]) -> tuple[str, str]:
        try:
            namespace = self._namespace(order["checks"])
            wanted = [name for name in self._checks.names if name not in namespace]
            confined = self._channel.receive()
            if confined != candidate.CONFINED:
                return FAILURE, confined.removeprefix(candidate.UNCONFINED).decode("utf-8", "replace")
            self._channel.send(marshal.dumps((order["setup"], order["source"], wanted, order["show"])))
            match self._peer.reply():
                case [dict(found), (str() | None) as shown] if len(shown or "") <= candidate.LONGEST_SHOWN:
                    self.shown = shown
                case _:
                    raise UnreadableError("a first reply of no known form")
            namespace.update((name, found[name]) for name in wanted if name in found)
            if self._checks.entry_point and self._checks.entry_point not in namespace:
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

    def _namespace(self, source: str) -> dict[str, Any]:
        """What the checks start from: names of their own, of the set-up and of the library."""
        namespace: dict[str, Any] = {"__name__": candidate.MODULE}
        namespace.update({_HELD: self._count, _IN_PLACE: in_place})
        if source:
            exec(self._checks.setup, namespace)  # noqa: S102  trusted
        for name in self._checks.modules:
            namespace.setdefault(name, importlib.import_module(name))
        namespace.pop(self._checks.entry_point, None)
        return namespace

    def _count(self) -> None:
        self.assertions += 1


def _judged(error: BaseException) -> tuple[str, str]:
    remote = told(error)
    if remote is not None:
        kind = NOT_EXECUTABLE if remote[0] == candidate.UNREADABLE else EXCEPTION
        return (MEMORY_LIMIT if isinstance(error, MemoryError) else kind), remote[1]
    match error:
        case EOFError() | ConnectionError():
            return GONE, ""
        case TooLongError():
            return OUTPUT_LIMIT, f"a value of {error} bytes was returned"
        case UnreadableError():
            return EXCEPTION, f"an unreadable value was returned: {error}"
    try:
        detail, part = candidate.describe(error)
    except Exception:
        # A check's own message may hold a number of more digits than can be written.
        detail, part = candidate.describe(error, briefly=True)
    if isinstance(error, MemoryError):
        return MEMORY_LIMIT, detail
    return (WRONG_ANSWER if isinstance(error, AssertionError) and part == candidate.CHECKS else EXCEPTION), detail


class _Checks(NamedTuple):
    """Checks that are ready to run."""

    setup: CodeType
    # With a call of ``@held`` after every assertion that held. What is called only for what it does, as a statement
    # or in ``assert f(x) is None``, is first handed to ``@in_place``.
    code: CodeType
    # Whether they hold an assertion at all.
    asserts: bool
    # Names of the standard library they use without importing them.
    modules: list[str]
    # What comes from the program, unless the set-up defines it.
    names: list[str]
    # The one of them that comes from the program even where something else has this name; may be empty.
    entry_point: str


# A question is asked many times in a row while a method learns from it.
@functools.lru_cache(maxsize=256)
def read_checks(setup: str, checks: str, entry_point: str) -> _Checks:
    """Read set-up and checks, which are trusted; raises SyntaxError or, for a null byte, ValueError."""
    tree = ast.parse(checks, f"<{candidate.CHECKS}>")
    free = _free_names(symtable.symtable(checks, f"<{candidate.CHECKS}>", "exec"))
    candidates = (free & sys.stdlib_module_names) - {entry_point}
    modules = candidates & _attribute_bases(tree) if candidates else set()
    names = (free - _BUILT_IN - modules) | ({entry_point} & free)
    if not names and not entry_point:
        # Then they judge nothing of the program, unless it is a function with the name of a built-in one.
        names = free & _first_called(tree)
    asserts = _instrument(tree.body) > 0
    code = compile(tree, f"<{candidate.CHECKS}>", "exec", dont_inherit=True)
    before = compile(setup, f"<{candidate.SETUP}>", "exec", dont_inherit=True)
    return _Checks(before, code, asserts, sorted(modules), sorted(names), entry_point if entry_point in free else "")


def _free_names(table: symtable.SymbolTable) -> set[str]:
    """Names that no scope binds and some scope reads."""
    bound = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    scopes, read = [table], set()
    for scope in scopes:
        scopes += scope.get_children()
        found = [symbol for symbol in scope.get_symbols() if symbol.is_referenced()]
        read |= {symbol.get_name() for symbol in found if symbol.is_global() or scope.get_type() == "class"}
    return read - bound


def _attribute_bases(tree: ast.Module) -> set[str]:
    """Names that are only ever followed by a dot."""
    bases = [node.value for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    dotted = [base for base in bases if isinstance(base, ast.Name)]
    others = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node not in dotted}
    return {base.id for base in dotted} - others


def _first_called(tree: ast.Module) -> set[str]:
    """The name that the first assertion calls before any other: ``f`` in ``abs(f(1) - 2) < len("abc")``."""
    asserted = next((node for node in ast.walk(tree) if isinstance(node, ast.Assert)), tree)
    calls = [node for node in ast.walk(asserted) if isinstance(node, ast.Call)]
    # Its arguments call nothing, and it ends before the others of that kind do.
    innermost = [call for call in calls if sum(isinstance(node, ast.Call) for node in ast.walk(call)) == 1]
    first = min(innermost, key=lambda call: (call.end_lineno or 0, call.end_col_offset or 0), default=None)
    return {first.func.id} if first is not None and isinstance(first.func, ast.Name) else set()


def _instrument(body: list[ast.stmt]) -> int:
    """Puts a call behind every assertion and around what is called in place; returns how many assertions there are."""
    found = 0
    for place in reversed(range(len(body))):
        statement = body[place]
        match statement:
            case ast.Expr(ast.Call() as call) | ast.Assert(
                ast.Compare(ast.Call() as call, [ast.Is() | ast.Eq()], [ast.Constant(None)])
            ):
                call.func = _called(_IN_PLACE, call.func, call.func)
        if isinstance(statement, ast.Assert):
            body.insert(place + 1, ast.copy_location(ast.Expr(_called(_HELD, statement)), statement))
            found += 1
            continue
        for part in ("body", "orelse", "finalbody"):
            found += _instrument(getattr(statement, part, None) or [])
        for branch in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            found += _instrument(branch.body)
    return found


def _called(name: str, place: ast.expr | ast.stmt, *arguments: ast.expr) -> ast.Call:
    function = ast.copy_location(ast.Name(name, ast.Load()), place)
    return ast.copy_location(ast.Call(function, list(arguments), []), place)
