"""The part of a program that is graded: what only tries the program out is left out."""

from __future__ import annotations

import ast
import builtins
import dis
import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import CodeType
from typing import NamedTuple, TypeVar

from harness.benchmarks.programs import definitions, parse

T = TypeVar("T")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
# What a function looks up by a name that is nowhere in the program.
_BY_ANY_NAME = frozenset({"eval", "exec", "globals", "locals", "vars"})
# Calls that set something for the whole process, or make names or attributes that are nowhere in the program.
_SETTINGS = frozenset(
    {"setrecursionlimit", "set_int_max_str_digits", "setcontext", "getcontext", "stack_size", "exec", "setattr"}
)
_DECORATOR = re.compile(rb"^[ \t\f]*@", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Statement:
    """One statement of the top level, by the global names in it."""

    node: ast.stmt  # the statement
    # Names it reads, in the functions it defines too, except those that a loop or a ``with`` of it binds.
    loads: frozenset[str]
    assigns: frozenset[str]  # names it binds, deletes or assigns a part of when it is executed
    passes: frozenset[str]  # names it calls a method of or passes to a call, so that their values may change
    # Of a definition, names that it declares global or assigns a part of when it is called.
    changes: frozenset[str]
    applies: frozenset[str]  # of a definition, names in its decorators and bases
    stays: bool  # whether it always counts, unless it is a trial

    @property
    def defines(self) -> bool:
        return isinstance(self.node, _DEFINITIONS)

    @property
    def is_idle(self) -> bool:
        """Whether it changes no value that a function uses: an assert, a print, or what is for scripts alone."""
        match self.node:
            case ast.Assert() | ast.Expr(ast.Call(ast.Name(id="print"))):
                return True
        return "__name__" in self.loads


class _Call(NamedTuple):
    """Whatever calls a definition that may change a value which the function needs."""

    name: str


def needed(source: str, entry_point: str, checks: str = "") -> str:
    """A program without the statements of its top level that its function does not need.

    The function, and the tests, which may use further names of the program, need what binds a name that they use, or
    that something they need uses, and every statement that may change the value of such a name. Statements that use the
    function itself are trials of it and count only where they bind such a name. Asserts never count.

    Returns the program with ``pass`` in place of each statement left out, all others on the lines where they were; the
    program as it is where it does not bind the function or cannot be compiled.
    """
    tree = parse(source)
    if tree is None or entry_point not in definitions(tree):
        return source
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            statements = [_read(node) for node in tree.body]
            tests = [_read(node) for node in (parse(checks) or ast.Module([], [])).body]
    except (SyntaxError, ValueError, RecursionError, MemoryError, SystemError, OverflowError):
        return source
    names = {entry_point}.union(*(test.loads for test in tests)).difference(*(test.assigns for test in tests))
    kept = _needed_places(statements, names, entry_point)
    return source if len(kept) == len(statements) else _without(source, statements, kept)


def _needed_places(statements: list[_Statement], names: set[str], entry_point: str) -> set[int]:
    """Places of the statements that some names of the program need; the time grows linearly with the program."""
    loading = _index(statement.loads for statement in statements)
    assigning = _index(statement.assigns for statement in statements)
    passing = _index(statement.passes for statement in statements)
    changing = _index(statement.changes for statement in statements)
    applying = _index(statement.applies for statement in statements)
    # Names of values; those of definitions and imports alone are only called.
    valued = [one for one in statements if not isinstance(one.node, (*_DEFINITIONS, *_IMPORTS))]
    values = frozenset[str]().union(*(statement.assigns for statement in valued))

    def users(name: str) -> Iterator[str]:
        """Definitions that use a name."""
        for place in loading[name]:
            yield from statements[place].assigns if statements[place].defines else ()

    tried = _closure({entry_point}, users)

    def changers(places: Iterable[int]) -> Iterator[int | _Call]:
        """What of some statements changes a value: they themselves or, of a definition, whatever calls it."""
        for place in places:
            statement = statements[place]
            if not statement.is_idle and tried.isdisjoint(statement.loads):
                yield from map(_Call, statement.assigns) if statement.defines else (place,)

    def needs(one: int | str | _Call) -> Iterable[int | str | _Call]:
        match one:
            case int(place):
                return statements[place].loads
            case _Call(name):
                return {*applying[name], *changers(loading[name])}
        touching = [*(loading[one] if one in values else passing[one]), *changing[one]]
        by_any_name = [*assigning] if one in _BY_ANY_NAME else []
        return {*assigning[one], *applying[one], *changers(touching), *by_any_name}

    staying = {place for place, one in enumerate(statements) if one.stays and tried.isdisjoint(one.loads)}
    start: set[int | str | _Call] = {*names, *staying}
    reached = _closure(start, needs)
    places = {one for one in reached if isinstance(one, int)}
    return {place for place in places if not isinstance(statements[place].node, ast.Assert)}


def _closure(start: set[T], following: Callable[[T], Iterable[T]]) -> set[T]:
    """What can be reached."""
    reached, pending = {*start}, [*start]
    while pending:
        new = {*following(pending.pop())} - reached
        reached |= new
        pending += new
    return reached


def _index(names_of: Iterable[frozenset[str]]) -> defaultdict[str, list[int]]:
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, names in enumerate(names_of):
        for name in names:
            places[name].append(place)
    return places


def _read(node: ast.stmt) -> _Statement:
    code = compile(ast.Module([node], []), "<answer>", "exec", dont_inherit=True)
    loads, stores, declared = set(), set(), set()
    for inner in _closure({code}, lambda one: {part for part in one.co_consts if isinstance(part, CodeType)}):
        for step in dis.get_instructions(inner):
            match step.opname:
                case "LOAD_NAME" | "LOAD_GLOBAL" | "LOAD_FROM_DICT_OR_GLOBALS":
                    loads.add(step.argval)
                case "STORE_GLOBAL" | "DELETE_GLOBAL":
                    declared.add(step.argval)
                case "STORE_NAME" | "DELETE_NAME" if inner is code:
                    stores.add(step.argval)
    parts, of_call = _assigned_parts(node)
    if isinstance(node, _DEFINITIONS):
        applied = [*node.decorator_list, *(node.bases if isinstance(node, ast.ClassDef) else [])]
        applies = {part.id for one in applied for part in ast.walk(one) if isinstance(part, ast.Name)}
        assigns, changes, stays = {node.name}, declared | parts & loads, False
    else:
        loads.difference_update(_targets(node))
        assigns, changes, applies = stores | declared | parts, set(), set()
        stays = of_call or _stays(node)
    return _Statement(
        node,
        loads=frozenset(loads),
        assigns=frozenset(assigns),
        passes=frozenset(loads.intersection(_passed(node))),
        changes=frozenset(changes),
        applies=frozenset(applies),
        stays=stays,
    )


def _targets(node: ast.stmt) -> set[str]:
    """Names that the loops and ``with`` statements in a statement bind before anything in them can use one."""
    bound, used = set(), set()
    pending: list[ast.AST] = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, (*_DEFINITIONS, ast.Lambda)):
            continue
        target = part.target if isinstance(part, ast.For) else getattr(part, "optional_vars", None)
        source = part.iter if isinstance(part, ast.For) else getattr(part, "context_expr", None)
        bound |= {name.id for name in ast.walk(target) if isinstance(name, ast.Name)} if target else set()
        used |= {name.id for name in ast.walk(source) if isinstance(name, ast.Name)} if source else set()
        pending += ast.iter_child_nodes(part)
    return bound - used


def _stays(node: ast.stmt) -> bool:
    """Whether a statement is the docstring, an import of unknown or future names, or sets something for the process."""
    match node:
        case ast.Expr(ast.Constant()) | ast.ImportFrom(module="__future__") | ast.ImportFrom(names=[ast.alias("*")]):
            return True
        case ast.Import() | ast.ImportFrom():
            return False
    names = {getattr(part, "attr", getattr(part, "id", None)) for part in ast.walk(node)}
    return not _SETTINGS.isdisjoint(names)


def _assigned_parts(node: ast.stmt) -> tuple[set[str], bool]:
    """Names of which an attribute or an item is assigned or deleted, and whether one is of what a call returns."""
    names, of_call = set(), False
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute | ast.Subscript) and not isinstance(part.ctx, ast.Load):
            name, called = _root(part)
            names.add(name)
            of_call |= called
    return names, of_call


def _passed(node: ast.stmt) -> Iterator[str]:
    """Names that calls in a statement get a method of, or have for an argument of what is no built-in."""
    for part in ast.walk(node):
        if not isinstance(part, ast.Call):
            continue
        if isinstance(part.func, ast.Attribute):
            yield _root(part.func)[0]
        plain = isinstance(part.func, ast.Name) and hasattr(builtins, part.func.id)
        for argument in part.args:
            if isinstance(argument, ast.Attribute) or (isinstance(argument, ast.Name) and not plain):
                yield _root(argument)[0]


def _root(node: ast.expr) -> tuple[str, bool]:
    """The name an expression begins with, and whether a call stands between."""
    called = False
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        called |= isinstance(node, ast.Call)
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else "", called


def _without(source: str, statements: list[_Statement], kept: set[int]) -> str:
    """The program with ``pass`` for every statement not kept."""
    text = source.encode()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    written, copied, before = [], 0, 0
    for place, statement in enumerate(statements):
        node = statement.node
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        # A decorated definition begins, for the syntax tree, behind its decorators.
        decorator = _DECORATOR.search(text, before, start) if getattr(node, "decorator_list", None) else None
        start = decorator.start() if decorator else start
        if place not in kept:
            lines = len((text[start:end] + b"|").splitlines()) - 1
            written += [text[copied:start], b"\n" * lines, b"pass"]
            copied = end
        before = end
    shortened = b"".join([*written, text[copied:]]).decode()
    return source if parse(shortened) is None else shortened
