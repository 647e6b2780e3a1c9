"""Reading programs without executing them."""

from __future__ import annotations

import ast
import builtins
import functools
import itertools
import re
import symtable
import warnings
from collections.abc import Sequence

LONGEST_PROGRAM = 1_000_000
LONGEST_SALVAGED = 30_000

# Bounds on the parsing of a hostile text; a program that is cut off takes two cuts of one stretch.
_MOST_STRETCHES = 8
_MOST_CUTS = 3
_MOST_PARTS = 8
_OPENS = re.compile(r"(?:import|def|class|async\s+def)\s+\w|from\s+[\w.]+\s+import\b|@\w")
_TOP_LEVEL = re.compile(r"[^\s)\]}]")


def parse(source: str) -> ast.Module | None:
    """Return the syntax tree of a program, None if the text is no program or far too long to be an answer."""
    parsed = _parsed(source)
    return parsed if isinstance(parsed, ast.Module) else None


def _parsed(source: str) -> ast.Module | int:
    """Return the syntax tree, or the number of the line with the error (1 if there is no telling)."""
    if len(source) > LONGEST_PROGRAM:
        return 1
    with warnings.catch_warnings():
        # Users need no warning of a dubious escape sequence in a model's program.
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        except SyntaxError as error:
            return error.lineno or 1
        # A null byte is the first of these, nesting that overflows the parser one of the others.
        except (ValueError, RecursionError, MemoryError, SystemError):
            return 1


def salvage(text: str) -> str:
    """Return the complete statements of a program amid prose or cut off, from an import or definition on."""
    lines = text.replace("\r\n", "\n").split("\n") if len(text) <= LONGEST_SALVAGED else []
    kept: list[str] = []
    start = 0
    for _ in range(_MOST_STRETCHES):
        end = _end_of_parsable(lines, start)
        kept += lines[start:end]
        following = range(max(end, start + 1), len(lines))
        start = next((index for index in following if _OPENS.match(lines[index])), len(lines))
        if start == len(lines):
            break
    return "\n".join(kept)


def _end_of_parsable(lines: list[str], start: int) -> int:
    """Return the end of the whole statements from ``start`` on that parse, or ``start`` if none do.

    After a syntax error, they end before the last top-level line up to the error.
    """
    end = len(lines)
    for _ in range(_MOST_CUTS):
        parsed = _parsed("\n".join(lines[start:end]))
        if isinstance(parsed, ast.Module):
            return end
        candidates = range(start, min(start + parsed, end))
        end = max((index for index in candidates if _TOP_LEVEL.match(lines[index])), default=start)
    return start


def without_trials(source: str) -> str:
    """Return a program with ``pass`` for the asserts and bare calls of its top level, on the same lines.

    Text that is no program is returned as it is. A ``__main__`` block may stay: programs run as modules.
    """
    tree, text = parse(source), source.encode()
    starts = [0, *itertools.accumulate(map(len, text.splitlines(keepends=True)))]
    for node in reversed(tree.body if tree is not None else []):
        match node:
            case ast.Assert() | ast.Expr(ast.Call()):
                start = starts[node.lineno - 1] + node.col_offset
                end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
                lines = len((text[start:end] + b"|").splitlines()) - 1
                text = text[:start] + b"\n" * lines + b"pass" + text[end:]
    return text.decode()


def definitions(tree: ast.Module) -> set[str]:
    """Return the names that the top level of a program binds to a function, a class or a value."""
    names: set[str] = set()
    for node in tree.body:
        match node:
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                names.add(name)
            case ast.Assign(targets):
                names.update(target.id for target in targets if isinstance(target, ast.Name))
    return names


def completed(source: str, earlier: Sequence[str]) -> str:
    """Return a program behind those earlier parts of its text that bind what it lacks."""
    # An import from the future stays where it is, at the head.
    _, lacking = _names(source) if "__future__" not in source else (set(), set[str]())
    for part in reversed(earlier[-_MOST_PARTS:]):
        if lacking and _names(part)[0] & lacking:
            source = f"{part.rstrip()}\n\n{source}"
            _, lacking = _names(source)
    return source


def _names(source: str) -> tuple[set[str], set[str]]:
    """Return the names that the top level of a program binds, and those of others that it uses."""
    if parse(source) is None:
        return set(), set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            top = symtable.symtable(source, "", "exec")
        except (SyntaxError, RecursionError):  # a return at the top level is the first
            return set(), set()
    bound = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    used, tables = set[str](), [top]
    for table in tables:
        tables += table.get_children()
        symbols = table.get_symbols()
        used |= {symbol.get_name() for symbol in symbols if symbol.is_referenced() and symbol.is_global()}
    return bound, used - bound - {*dir(builtins)}


@functools.lru_cache(maxsize=4096)
def canonical(source: str) -> str:
    """Return a program without layout, comments and docstrings, and text that is no program as it is."""
    tree = parse(source)
    if tree is None:
        return source.strip()
    try:
        return ast.unparse(_DocstringRemover().visit(tree))
    except RecursionError:
        return source.strip()


class _DocstringRemover(ast.NodeTransformer):
    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        holders = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        if isinstance(node, holders) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return node
