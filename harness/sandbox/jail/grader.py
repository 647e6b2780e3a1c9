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
from .failures import told
from .peer import Peer
from .values import Channel, TooLongError, UnreadableError

# What the report says of a program; these words are those of harness.sandbox.model.Outcome, the others below are not.
PASSED, WRONG_ANSWER, EXCEPTION = "passed", "wrong_answer", "exception"
MEMORY_LIMIT, OUTPUT_LIMIT, NOT_EXECUTABLE = "memory_limit", "output_limit", "not_executable"
# The program ended; how, is for the system to say.
GONE = "gone"
FAILURE = "failure"
_PIECE = 1 << 16
_RECURSION_LIMIT = sys.getrecursionlimit()
# No source text can hold these names.
_ASSERTING, _HELD, _IN_PLACE, _SAME = "@asserting", "@held", "@in_place", "@same"
_BUILT_IN = frozenset(dir(builtins))


class Grader:
    """Judges programs in a process confined from then on; OSError where the machine does not allow the policy."""

    def __init__(self, policy: Policy, control: socket.socket) -> None:
        self._policy = policy
        self._control = control
        fork_server.preload()
        # Nobody reads what the compiler thinks of somebody's checks, and a full pipe would stop everything.
        warnings.simplefilter("ignore")
        rules, self._pinned = file_rules(policy, None)
        self._next: list[int] | None = self._ready()
        confine_checks(policy, rules)

    def grade(self, order: dict[str, Any]) -> dict[str, Any]:
        """The report on a program and its checks, an order of :class:`harness.sandbox.Program`; or ``failure``."""
        try:
            checks = read_checks(order["setup"], order["checks"], order["entry_point"])
        except (SyntaxError, ValueError) as error:
            return {"failure": f"setup or checks are no Python: {error}"}
        # Of what checks may change for those after them, the one thing that some do.
        sys.setrecursionlimit(_RECURSION_LIMIT)
        # As much processor time again as a program has, from now on.
        before = _cpu_s()
        limit = int(before) + 1 + self._policy.limits["cpu_s"]
        _, ceiling = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (limit if ceiling < 0 else min(limit, ceiling), ceiling))
        # Drawn cases are the same ones each time.
        random.seed(0)
        connection, output = self._next or self._ready()
        self._next = None
        try:
            self._control.send(fork_server.START)
            conversation = _Conversation(connection, output, self._policy.limits["output_kib"] << 10)
            graded = _judged(conversation, order, checks)
            checks_cpu_s = _cpu_s() - before
            self._control.send(fork_server.GONE if graded["outcome"] == GONE else fork_server.END)
            report = self._control.recv(fork_server.REPORT.size, socket.MSG_WAITALL)
            if not report:
                raise EOFError("the fork server is gone")
            status, cpu_s, cut, deserted, soiled = fork_server.REPORT.unpack(report)
            conversation.drain()
        finally:
            os.close(connection)
            os.close(output)
        if deserted:
            graded |= {"outcome": EXCEPTION, "detail": "the connection was closed before the last check"}
        used = {"cpu_s": cpu_s, "checks_cpu_s": checks_cpu_s}
        return {**graded, **used, "stdout": bytes(conversation.stdout), "status": status, "cut": cut, "soiled": soiled}

    def _ready(self) -> list[int]:
        told, descriptors, _, _ = socket.recv_fds(self._control, _PIECE, 2)
        if not told:
            raise EOFError("the fork server is gone")
        if not descriptors:
            raise OSError(told.decode("utf-8", "replace"))
        return descriptors


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class _Conversation(Channel):
    """The connection to a program; while it waits, it reads what the program prints, and keeps it up to the limit."""

    def __init__(self, descriptor: int, output: int, limit: int) -> None:
        super().__init__(descriptor)
        self.stdout = bytearray()
        self._output = output
        self._limit = limit
        self._poll = select.poll()
        for one in (descriptor, output):
            self._poll.register(one, select.POLLIN)

    def drain(self) -> None:
        """Read what is left; who else may hold the other end is not waited for."""
        os.set_blocking(self._output, False)
        with contextlib.suppress(BlockingIOError):
            while len(self.stdout) < self._limit and self._read_output():
                pass

    def _fill(self) -> None:
        ready = dict(self._poll.poll())
        if self._output in ready and not self._read_output():
            self._poll.unregister(self._output)
        if self._descriptor in ready:
            super()._fill()

    def _read_output(self) -> bool:
        piece = os.read(self._output, _PIECE)
        self.stdout += piece[: self._limit - len(self.stdout)]
        return bool(piece)


def _judged(conversation: _Conversation, order: dict[str, Any], checks: _Checks) -> dict[str, Any]:
    peer = Peer(conversation)
    found: dict[str, Any] = {"outcome": PASSED, "detail": "", "shown": None, "is_loaded": False}
    try:
        namespace: dict[str, Any] = {_ASSERTING: peer.begin_assertion, _HELD: peer.hold_assertion}
        namespace |= {_IN_PLACE: peer.in_place, _SAME: peer.is_same, "__name__": candidate.MODULE}
        if order["checks"]:
            exec(checks.setup, namespace)  # noqa: S102  trusted
        for name in checks.modules:
            namespace.setdefault(name, importlib.import_module(name))
        namespace.pop(checks.entry_point, None)
        wanted = [name for name in checks.names if name not in namespace]
        confined = conversation.receive()
        if confined != candidate.CONFINED:
            reason = confined.removeprefix(candidate.UNCONFINED).decode("utf-8", "replace")
            return {**found, "outcome": FAILURE, "detail": reason}
        conversation.send(marshal.dumps((order["setup"], order["source"], wanted, order["show"])))
        match peer.reply():
            case [dict(values), (str() | None) as shown] if len(shown or "") <= candidate.LONGEST_SHOWN:
                namespace.update((name, values[name]) for name in wanted if name in values)
                found |= {"shown": shown, "is_loaded": True}
            case _:
                raise UnreadableError("a first reply of no known form")
        if checks.entry_point and checks.entry_point not in namespace:
            # A built-in of this name must not stand in for it.
            raise NameError(f"name {checks.entry_point!r} is not defined")
        exec(checks.code, namespace)  # noqa: S102  trusted
        if peer.failure is not None:
            raise peer.failure
    except BaseException as error:
        peer.is_silent = True
        outcome, detail = _failed(peer.failure or error)
        return {**found, "outcome": outcome, "detail": detail}
    if checks.asserts and not peer.assertions_held:
        return {**found, "outcome": EXCEPTION, "detail": "no assertion of the checks was reached"}
    return found


def _failed(error: BaseException) -> tuple[str, str]:
    remote = told(error)
    if remote is not None:
        kind = NOT_EXECUTABLE if remote[0] == candidate.UNREADABLE else EXCEPTION
        return (MEMORY_LIMIT if isinstance(error, MemoryError) else kind), remote[1]
    if isinstance(error, EOFError | ConnectionError):
        return GONE, ""
    if isinstance(error, TooLongError):
        return OUTPUT_LIMIT, f"a value of {error} bytes was returned"
    if isinstance(error, UnreadableError):
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
    setup: CodeType
    # With a call of ``@asserting`` before every assertion and of ``@held`` after it if it held, of ``@in_place`` around
    # what is called in a statement of its own, and of ``@same`` for ``is``.
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
    instrument = _Instrument(checks)
    instrument.visit(tree)
    code = compile(tree, f"<{candidate.CHECKS}>", "exec", dont_inherit=True)
    before = compile(setup, f"<{candidate.SETUP}>", "exec", dont_inherit=True)
    wanted = entry_point if entry_point in free else ""
    return _Checks(before, code, instrument.asserts > 0, sorted(modules), sorted(names), wanted)


def _free_names(table: symtable.SymbolTable) -> set[str]:
    bound = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    scopes, read = [table], set()
    for scope in scopes:
        scopes += scope.get_children()
        found = [symbol for symbol in scope.get_symbols() if symbol.is_referenced()]
        read |= {symbol.get_name() for symbol in found if symbol.is_global() or scope.get_type() == "class"}
    return read - bound


def _attribute_bases(tree: ast.Module) -> set[str]:
    bases = [node.value for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    dotted = [base for base in bases if isinstance(base, ast.Name)]
    others = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node not in dotted}
    return {base.id for base in dotted} - others


class _Instrument(ast.NodeTransformer):
    """Puts calls before and behind assertions, around what is called in place and for ``is``; counts the assertions."""

    def __init__(self, checks: str) -> None:
        self.asserts = 0
        # Of large expressions, most have none.
        self._into_expressions = " is " in checks

    def visit_Assert(self, node: ast.Assert) -> list[ast.AST]:
        self.asserts += 1
        before, behind = (ast.copy_location(ast.Expr(_called(name, node)), node) for name in (_ASSERTING, _HELD))
        return [before, self.generic_visit(node) if self._into_expressions else node, behind]

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if isinstance(node.value, ast.Call):
            node.value.func = _called(_IN_PLACE, node.value.func, node.value.func)
        return self.generic_visit(node) if self._into_expressions else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Compare(_, _, [ast.Constant()]):
                return node
            case ast.Compare(left, [ast.Is()], [right]):
                return _called(_SAME, node, left, right)
            case ast.Compare(left, [ast.IsNot()], [right]):
                return ast.copy_location(ast.UnaryOp(ast.Not(), _called(_SAME, node, left, right)), node)
        return node


def _called(name: str, place: ast.expr | ast.stmt, *arguments: ast.expr) -> ast.Call:
    function = ast.copy_location(ast.Name(name, ast.Load()), place)
    return ast.copy_location(ast.Call(function, list(arguments), []), place)
