"""The process of the checks: it alone gives the verdict, and no code of a program ever runs in it."""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import marshal
import os
import random
import resource
import socket
import symtable
import sys
import warnings
from collections.abc import Callable
from types import CodeType
from typing import Any, NamedTuple

from . import protocol
from .candidate import describe
from .confinement import Policy, confine_checks, prepare_file_access
from .peer import Peer, ProgramFailure, is_same
from .protocol import CHECKS, SETUP, Channel, NotPlainError, TooLongError, UnreadableError

# Values of harness.sandbox.model.Outcome, which a bare interpreter cannot import.
PASSED, WRONG_ANSWER, EXCEPTION = "passed", "wrong_answer", "exception"
NOT_PLAIN, NOT_EXECUTABLE = "not_plain", "not_executable"
MEMORY_LIMIT, OUTPUT_LIMIT = "memory_limit", "output_limit"
_LONGEST_REASON = 1 << 16
_RECURSION_LIMIT = sys.getrecursionlimit()
# Names of the calls that are added to checks; no source text can use them.
_BEGIN, _END, _HELD, _SAME = "@begin", "@end", "@held", "@same"
_BUILT_IN = frozenset(dir(builtins))


class Grader:
    """Judge of programs; its creation confines the process, and raises OSError if the machine does not allow that."""

    def __init__(self, policy: Policy, control: socket.socket) -> None:
        self._policy = policy
        self._control = control
        # Nobody reads the compiler's warnings about checks, and a full pipe would stop this process.
        warnings.simplefilter("ignore")
        rules, self._pinned = prepare_file_access(policy, None)
        confine_checks(policy, rules)

    def grade(self, order: dict[str, Any]) -> dict[str, Any]:
        """Execute an order, the fields of a :class:`harness.sandbox.Program`, and return a report.

        Raises SyntaxError or ValueError if set-up or checks are no Python, OSError if the sandbox fails.
        """
        checks = compile_checks(order["setup"], order["checks"], order["entry_point"])
        # Some checks change it, and the next ones run in the same process.
        sys.setrecursionlimit(_RECURSION_LIMIT)
        # Checks have as much processor time as the program.
        start_s = _cpu_s()
        limit = int(start_s) + 1 + self._policy.limits["cpu_s"]
        _, ceiling = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (limit if ceiling < 0 else min(limit, ceiling), ceiling))
        # Checks that draw cases draw the same ones each time.
        random.seed(0)
        connection = self._receive_process()
        try:
            self._control.send(protocol.START)
            verdict = _judge(Channel(connection), order, checks)
            checks_cpu_s = _cpu_s() - start_s
            self._control.send(protocol.HUNG_UP if verdict["outcome"] == protocol.GONE else protocol.END)
            report = self._control.recv(protocol.REPORT.size, socket.MSG_WAITALL)
            if not report:
                raise EOFError("the fork server is gone")
            status, cpu_s, cut, lived_on, is_soiled = protocol.REPORT.unpack(report)
        finally:
            os.close(connection)
        if lived_on:
            verdict |= {"outcome": EXCEPTION, "detail": "the connection was closed before the last check"}
        times = {"cpu_s": cpu_s, "checks_cpu_s": checks_cpu_s}
        return {**verdict, **times, "status": status, "cut": cut, "soiled": is_soiled}

    def _receive_process(self) -> int:
        message, descriptors, _, _ = socket.recv_fds(self._control, _LONGEST_REASON, 1)
        if not message:
            raise EOFError("the fork server is gone")
        if not descriptors:
            raise OSError(message.decode("utf-8", "replace"))
        return descriptors[0]


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _judge(program: Channel, order: dict[str, Any], checks: _Checks) -> dict[str, Any]:
    peer = Peer(program)
    report: dict[str, Any] = {"outcome": PASSED, "detail": "", "shown": None, "is_loaded": False}
    try:
        namespace: dict[str, Any] = {_BEGIN: peer.begin_statement, _END: peer.end_statement, _HELD: peer.end_assertion}
        namespace |= {_SAME: is_same, "__name__": protocol.MODULE}
        if order["checks"]:
            exec(checks.setup, namespace)  # noqa: S102  trusted
        for name in checks.modules:
            namespace.setdefault(name, importlib.import_module(name))
        namespace.pop(checks.entry_point, None)
        names = [name for name in checks.names if name not in namespace]
        confined = program.receive()
        if confined != protocol.CONFINED:
            reason = confined.removeprefix(protocol.UNCONFINED).decode("utf-8", "replace")
            return {**report, "outcome": protocol.FAILURE, "detail": reason}
        program.send(marshal.dumps((order["setup"], order["source"], names, order["show"])))
        match peer.receive_reply():
            case [dict(values), shown] if shown is None or (
                type(shown) is str and len(shown) <= protocol.LONGEST_SHOWN
            ):
                namespace.update((name, values[name]) for name in names if name in values)
                report |= {"shown": shown, "is_loaded": True}
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
        outcome, detail = _outcome(peer.failure or error)
        return {**report, "outcome": outcome, "detail": detail}
    if checks.has_assertions and not peer.assertions_held:
        return {**report, "outcome": EXCEPTION, "detail": "no assertion of the checks was reached"}
    return report


def _outcome(error: BaseException) -> tuple[str, str]:
    """Return the outcome that an exception means, and one line about it."""
    if isinstance(error.__cause__, ProgramFailure):
        word, detail = error.__cause__.args
        outcome = NOT_EXECUTABLE if word == protocol.UNREADABLE else EXCEPTION
        return (MEMORY_LIMIT if isinstance(error, MemoryError) else outcome), detail
    if isinstance(error, NotPlainError):
        return NOT_PLAIN, str(error)
    if isinstance(error, EOFError | ConnectionError):
        return protocol.GONE, ""
    if isinstance(error, TooLongError):
        return OUTPUT_LIMIT, f"a value is too long: {error}"
    if isinstance(error, UnreadableError):
        return EXCEPTION, f"an unreadable value was returned: {error}"
    detail, part = describe(error)
    if isinstance(error, MemoryError):
        return MEMORY_LIMIT, detail
    return (WRONG_ANSWER if isinstance(error, AssertionError) and part == CHECKS else EXCEPTION), detail


class _Checks(NamedTuple):
    setup: CodeType
    code: CodeType  # as :class:`_Instrumenter` leaves it
    has_assertions: bool
    modules: list[str]  # of the standard library, used without an import
    names: list[str]  # what comes from the program, unless the set-up defines it
    entry_point: str  # the one name that comes from the program even if something else has it; may be empty


# While a method learns, it is asked the same question many times in a row.
@functools.lru_cache(maxsize=256)
def compile_checks(setup: str, checks: str, entry_point: str) -> _Checks:
    """Compile set-up and checks, which are trusted; raise SyntaxError or, for a null byte, ValueError."""
    tree = ast.parse(checks, f"<{CHECKS}>")
    free = _free_names(symtable.symtable(checks, f"<{CHECKS}>", "exec"))
    candidates = (free & sys.stdlib_module_names) - {entry_point}
    modules = candidates & _attribute_bases(tree) if candidates else set()
    names = (free - _BUILT_IN - modules) | ({entry_point} & free)
    instrumenter = _Instrumenter(" is " in checks)
    instrumenter.visit(tree)
    code = compile(tree, f"<{CHECKS}>", "exec", dont_inherit=True)
    setup_code = compile(setup, f"<{SETUP}>", "exec", dont_inherit=True)
    entry_point = entry_point if entry_point in free else ""
    return _Checks(setup_code, code, instrumenter.assertions > 0, sorted(modules), sorted(names), entry_point)


def _free_names(table: symtable.SymbolTable) -> set[str]:
    bound = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    scopes, read = [table], set()
    for scope in scopes:
        scopes += scope.get_children()
        symbols = [symbol for symbol in scope.get_symbols() if symbol.is_referenced()]
        read |= {symbol.get_name() for symbol in symbols if symbol.is_global() or scope.get_type() == "class"}
    return read - bound


def _attribute_bases(tree: ast.Module) -> set[str]:
    """Return the names that stand in front of a dot and nowhere else."""
    bases = [node.value for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    dotted = [base for base in bases if isinstance(base, ast.Name)]
    others = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node not in dotted}
    return {base.id for base in dotted} - others


class _Instrumenter(ast.NodeTransformer):
    """Adds calls before and behind assertions and statements that are a call, and in place of ``is``."""

    def __init__(self, has_identity: bool) -> None:
        self.assertions = 0
        # Visiting large expressions takes long, and most have no ``is``.
        self._visit_children: Callable[[Any], Any] = self.generic_visit if has_identity else lambda node: node

    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        self.assertions += 1
        return [_call_at(node, _BEGIN), self._visit_children(node), _call_at(node, _HELD)]

    def visit_Expr(self, node: ast.Expr) -> ast.stmt | list[ast.stmt]:
        if not isinstance(node.value, ast.Call):
            statement: ast.stmt = self._visit_children(node)
            return statement
        return [_call_at(node, _BEGIN), self._visit_children(node), _call_at(node, _END)]

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Compare(_, _, [ast.Constant()]):
                return node
            case ast.Compare(left, [ast.Is() | ast.IsNot() as operator], [right]):
                same: ast.expr = ast.Call(ast.Name(_SAME, ast.Load()), [left, right], [])
                same = same if isinstance(operator, ast.Is) else ast.UnaryOp(ast.Not(), same)
                return ast.fix_missing_locations(ast.copy_location(same, node))
        return node


def _call_at(statement: ast.stmt, name: str) -> ast.stmt:
    call = ast.Expr(ast.Call(ast.Name(name, ast.Load()), [], []))
    return ast.fix_missing_locations(ast.copy_location(call, statement))
