"""The checks of a question, read before they run: which names they take from the program, where they assert."""

from __future__ import annotations

import ast
import builtins
import functools
import symtable
import sys
from types import CodeType

from .candidate import CHECKS, SETUP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# No source text can hold these names.
PASSED, IN_PLACE = "@passed", "@in_place"
_BUILT_IN = frozenset(dir(builtins))
_BODIES = ("body", "orelse", "finalbody")


class Checks:
    """Checks that are ready to run.

    Attributes:
        setup: What runs before them.
        code: The checks, with a call of :data:`PASSED` after every assertion that held. What is called only for what
            it does, as a statement or in ``assert f(x) is None``, is first handed to :data:`IN_PLACE`.
        asserts: Whether they hold an assertion at all.
        modules: Names of the standard library they use without importing them.
        names: What comes from the program, unless the setup defines it.
        entry_point: The one of them that comes from the program even where something else has this name; may be empty.
    """

    def __init__(
        self, setup: CodeType, code: CodeType, asserts: bool, modules: list[str], names: list[str], entry_point: str
    ) -> None:
        self.setup = setup
        self.code = code
        self.asserts = asserts
        self.modules = modules
        self.names = names
        self.entry_point = entry_point


# A question is asked many times in a row while a method learns from it.
@functools.lru_cache(maxsize=256)
def prepare(setup: str, checks: str, entry_point: str) -> Checks:
    """Reads setup and checks, which are trusted.

    Raises:
        SyntaxError: They are no Python.
        ValueError: They contain a null byte.
    """
    tree = ast.parse(checks, f"<{CHECKS}>")
    free = _free_names(symtable.symtable(checks, f"<{CHECKS}>", "exec"))
    candidates = (free & sys.stdlib_module_names) - {entry_point}
    modules = candidates & _attribute_bases(tree) if candidates else set()
    names = (free - _BUILT_IN - modules) | ({entry_point} & free)
    if not names and not entry_point:
        # Then they judge nothing of the program, unless it is a function with the name of a built-in one.
        names = free & _first_called(tree)
    asserts = _instrument(tree.body)
    return Checks(
        setup=compile(setup, f"<{SETUP}>", "exec", dont_inherit=True),
        code=compile(tree, f"<{CHECKS}>", "exec", dont_inherit=True),
        asserts=asserts > 0,
        modules=sorted(modules),
        names=sorted(names),
        entry_point=entry_point if entry_point in free else "",
    )


def _free_names(table: symtable.SymbolTable) -> set[str]:
    """Names that no scope binds and some scope reads."""
    bound = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    read = {
        symbol.get_name()
        for scope in _scopes(table)
        for symbol in scope.get_symbols()
        if symbol.is_referenced() and (symbol.is_global() or scope.get_type() == "class")
    }
    return read - bound


def _scopes(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _scopes(child)


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
                call.func = _called(IN_PLACE, call.func, call.func)
        if isinstance(statement, ast.Assert):
            body.insert(place + 1, ast.copy_location(ast.Expr(_called(PASSED, statement)), statement))
            found += 1
            continue
        for part in _BODIES:
            found += _instrument(getattr(statement, part, None) or [])
        for branch in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            found += _instrument(branch.body)
    return found


def _called(name: str, place: ast.expr | ast.stmt, *arguments: ast.expr) -> ast.Call:
    function = ast.copy_location(ast.Name(name, ast.Load()), place)
    return ast.copy_location(ast.Call(function, list(arguments), []), place)
