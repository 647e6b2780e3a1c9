"""The process of the checks: it gives the verdict, and never runs code of a program."""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import marshal
import os
import random
import resource
import signal
import socket
import symtable
import sys
import time
import warnings
from collections.abc import Callable
from types import CodeType
from typing import Any, NamedTuple

from . import protocol
from .candidate import describe
from .confinement import Policy, confine_checks, prepare_file_access
from .protocol import CHECKS, SETUP, Channel, NotPlainError, TooLongError, UnreadableError
from .remote import ProgramFailure, RemoteProgram, is_same

# Values of harness.sandbox.Outcome, which a bare interpreter cannot import.
PASSED, WRONG_ANSWER, EXCEPTION, NOT_PLAIN, KILLED = "passed", "wrong_answer", "exception", "not_plain", "killed"
CPU_LIMIT, WALL_LIMIT, MEMORY_LIMIT, OUTPUT_LIMIT = "cpu_limit", "wall_limit", "memory_limit", "output_limit"
NOT_EXECUTABLE, SANDBOX_ERROR = "not_executable", "sandbox_error"
_IDLE = 0.1  # a program that used less than this share of its processor time was waiting
_LONGEST_REASON = 1 << 16
_RECURSION_LIMIT = sys.getrecursionlimit()
# Names of calls that are inserted into checks; source text cannot use them.
_BEGIN, _END, _HELD, _SAME = "@begin", "@end", "@held", "@same"
_BUILT_IN = frozenset(dir(builtins))


class Grader:
    """Runs checks. The constructor confines this process, and raises OSError if that is not possible."""

    def __init__(self, policy: Policy, control: socket.socket) -> None:
        self._policy = policy
        self._control = control
        # Nobody reads the compiler's warnings, and a full pipe would stop this process.
        warnings.simplefilter("ignore")
        rules, self._pinned = prepare_file_access(policy, None)
        confine_checks(policy, rules)

    def run(self, job: dict[str, Any]) -> dict[str, Any]:
        """Run a job (the fields of a ``Program``) and return a report. Raises OSError if the sandbox fails."""
        checks = compile_checks(job["setup"], job["checks"], job["entry_point"])
        sys.setrecursionlimit(_RECURSION_LIMIT)  # earlier checks may have changed it
        # Checks have as much processor time as the program.
        start_s = time.process_time()
        cpu_limit = int(start_s) + 1 + self._policy.limits["cpu_s"]
        _, ceiling = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_limit if ceiling < 0 else min(cpu_limit, ceiling), ceiling))
        # Checks that draw cases at random draw the same ones each time.
        random.seed(0)
        message, descriptors, _, _ = socket.recv_fds(self._control, _LONGEST_REASON, 1)
        if not message:
            raise EOFError("the fork server is gone")
        if not descriptors:
            raise OSError(message.decode("utf-8", "replace"))
        (connection,) = descriptors
        try:
            self._control.send(protocol.START)
            verdict = _run_checks(Channel(connection), job, checks)
            checks_cpu_s = time.process_time() - start_s
            self._control.send(protocol.HUNG_UP if verdict["outcome"] == protocol.ENDED else protocol.END)
            report = self._control.recv(protocol.REPORT.size, socket.MSG_WAITALL)
            if not report:
                raise EOFError("the fork server is gone")
            *end, is_dirty = protocol.REPORT.unpack(report)
        finally:
            os.close(connection)
        _, cpu_s, limit, _ = end
        if limit or verdict["outcome"] == protocol.ENDED:
            verdict |= zip(("outcome", "detail"), _early_end(self._policy.limits, *end), strict=True)
        # A program that waited for a free processor, or whose checks did, has used some processor time.
        idle_s = _IDLE * min(self._policy.limits["cpu_s"], self._policy.limits["wall_s"])
        was_idle = limit == protocol.WALL and cpu_s + checks_cpu_s < idle_s
        return {**verdict, "was_idle": was_idle, "is_dirty": is_dirty}


def _run_checks(channel: Channel, job: dict[str, Any], checks: _Checks) -> dict[str, Any]:
    program = RemoteProgram(channel)
    report: dict[str, Any] = {"outcome": PASSED, "detail": "", "shown": None, "is_loaded": False}
    try:
        namespace: dict[str, Any] = {_SAME: is_same, "__name__": protocol.MODULE}
        namespace |= {_BEGIN: program.begin_statement, _END: program.end_statement, _HELD: program.end_assertion}
        if job["checks"]:
            exec(checks.setup, namespace)  # noqa: S102  trusted
        for name in checks.modules:
            namespace.setdefault(name, importlib.import_module(name))
        namespace.pop(checks.entry_point, None)
        names = [name for name in checks.names if name not in namespace]
        confined = channel.receive()
        if confined != protocol.CONFINED:
            reason = confined.removeprefix(protocol.UNCONFINED).decode("utf-8", "replace")
            return {**report, "outcome": SANDBOX_ERROR, "detail": reason}
        channel.send(marshal.dumps((job["setup"], job["source"], names, job["show"])))
        match program.receive_reply():
            case [dict(values), shown] if shown is None or (
                type(shown) is str and len(shown) <= protocol.LONGEST_SHOWN
            ):
                namespace.update((name, values[name]) for name in names if name in values)
                report |= {"shown": shown, "is_loaded": True}
            case _:
                raise UnreadableError("a first reply of no known form")
        if checks.entry_point and checks.entry_point not in namespace:
            # Otherwise a built-in of this name would be tested.
            raise NameError(f"name {checks.entry_point!r} is not defined")
        exec(checks.code, namespace)  # noqa: S102  trusted
        if program.failure is not None:
            raise program.failure
    except BaseException as error:
        program.is_silent = True
        outcome, detail = _outcome(program.failure or error)
        return {**report, "outcome": outcome, "detail": detail}
    if checks.has_assertions and not program.assertions_held:
        return {**report, "outcome": EXCEPTION, "detail": "no assertion of the checks was reached"}
    return report


def _outcome(error: BaseException) -> tuple[str, str]:
    if isinstance(error.__cause__, ProgramFailure):
        word, detail = error.__cause__.args
        outcome = NOT_EXECUTABLE if word == protocol.UNREADABLE else EXCEPTION
        return (MEMORY_LIMIT if isinstance(error, MemoryError) else outcome), detail
    if isinstance(error, NotPlainError):
        return NOT_PLAIN, str(error)
    if isinstance(error, EOFError | ConnectionError):
        return protocol.ENDED, ""
    if isinstance(error, TooLongError):
        return OUTPUT_LIMIT, f"a value is too long: {error}"
    if isinstance(error, UnreadableError):
        return EXCEPTION, f"an unreadable value was returned: {error}"
    detail, part = describe(error)
    if isinstance(error, MemoryError):
        return MEMORY_LIMIT, detail
    return (WRONG_ANSWER if isinstance(error, AssertionError) and part == CHECKS else EXCEPTION), detail


def _early_end(limits: dict[str, Any], status: int, cpu_s: float, limit: int, lived_on: bool) -> tuple[str, str]:
    """Return the outcome of a program that ended before its checks, and one line about it."""
    if limit == protocol.WALL:
        return WALL_LIMIT, f"more than {limits['wall_s']:g} s of wall time"
    if limit == protocol.DISK:
        return OUTPUT_LIMIT, f"more than {protocol.MOST_ENTRIES} files or {protocol.MOST_BYTES >> 20} MiB of them"
    if lived_on:
        return EXCEPTION, "the connection was closed before the last check"
    if not os.WIFSIGNALED(status):
        return EXCEPTION, f"exit with status {os.WEXITSTATUS(status)} before the last check"
    number = os.WTERMSIG(status)
    # A program that ignores SIGXCPU at the soft limit gets SIGKILL at the hard limit.
    if number == signal.SIGXCPU or (number == signal.SIGKILL and cpu_s >= limits["cpu_s"]):
        return CPU_LIMIT, f"more than {limits['cpu_s']} s of processor time"
    names = {known.value: known.name for known in signal.Signals}
    return KILLED, names.get(number, f"signal {number}")


class _Checks(NamedTuple):
    setup: CodeType
    code: CodeType  # instrumented
    has_assertions: bool
    modules: list[str]  # of the standard library, used without an import
    names: list[str]  # from the program, unless the set-up defines them
    entry_point: str  # from the program even if set-up or built-ins have the name; may be empty


# A training asks the same question many times in a row.
@functools.lru_cache(maxsize=256)
def compile_checks(setup: str, checks: str, entry_point: str) -> _Checks:
    """Compile and instrument trusted set-up and checks. Raises SyntaxError or, for a null byte, ValueError."""
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
    bases = [node.value for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    dotted = [base for base in bases if isinstance(base, ast.Name)]
    others = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node not in dotted}
    return {base.id for base in dotted} - others


class _Instrumenter(ast.NodeTransformer):
    """Inserts calls around assertions and around statements that are a call, and in place of ``is``."""

    def __init__(self, has_identity: bool) -> None:
        self.assertions = 0
        # Visiting large expressions takes long, so only checks with an ``is`` are visited.
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
