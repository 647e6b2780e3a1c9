"""Reading programs without executing them."""

from __future__ import annotations

import ast
import builtins
import functools
import itertools
import keyword
import re
import symtable
import warnings
from collections.abc import Sequence
from typing import NamedTuple

LONGEST_PROGRAM = 1_000_000
LONGEST_SALVAGED = 30_000

# Bounds on the parsing of a hostile text; a program that is cut off takes two cuts of one stretch.
_MOST_STRETCHES = 8
_MOST_CUTS = 3
_MOST_SENTENCES = 4
_MOST_PARTS = 8
_OPENS = re.compile(r"(?:import|def|class|async\s+def)\s+\w|from\s+[\w.]+\s+import\b|@\w")
_TOP_LEVEL = re.compile(r"[^\s)\]}]")
# A sentence inside a definition: three words or more, of which Python's own begin none.
_SENTENCE = re.compile(r"\s+([A-Za-z][\w']*)[,:;]?(?:\s+[^\s=]+){2,}\s*")
# Stretches of indented lines, as Markdown writes code without a fence.
INDENTED = re.compile(r"(?:^[ \t]+\S.*\n?|^[ \t]*\n)+", re.MULTILINE)
# Agents show one another the same programs.
_remember = functools.lru_cache(maxsize=512)
_SUPPRESS = "with __import__('contextlib').suppress(BaseException): "


class Outline(NamedTuple):
    """Syntax of a text as a program."""

    error_line: int  # 0 for a program; of a text that is none the line of the error, 1 if there is no telling
    has_statement: bool = False
    # Names that the top level binds to a function, a class or a value; a function that only has a docstring, ``pass``
    # or the like is none: prompts and plans show such stubs before or beside the function itself.
    defined: frozenset[str] = frozenset()


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


@_remember
def outline(source: str) -> Outline:
    """Return what a text is as a program."""
    # Trees themselves are not remembered: each takes a hundred times the memory of its text.
    tree = _parsed(source)
    if isinstance(tree, int):
        return Outline(tree)
    names: set[str] = set()
    for node in tree.body:
        match node:
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) if not all(map(_says_nothing, node.body)):
                names.add(name)
            case ast.ClassDef(name):
                names.add(name)
            case ast.Assign(targets):
                bound = (node for target in targets for node in getattr(target, "elts", [target]))
                names.update(node.id for node in bound if isinstance(node, ast.Name))
            case ast.AnnAssign(ast.Name(name), value=ast.expr()):
                names.add(name)
    return Outline(0, bool(tree.body), frozenset(names))


def _says_nothing(node: ast.stmt) -> bool:
    match node:
        case ast.Pass() | ast.Expr(ast.Constant()):
            return True
        case ast.Raise(ast.Name("NotImplementedError") | ast.Call(ast.Name("NotImplementedError"))):
            return True
    return False


@_remember
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

    A sentence of prose inside a definition is blanked. Other errors end the statements behind a function that has
    returned by then, else before the last top-level line up to the error.
    """
    end = len(lines)
    cuts = sentences = 0
    while cuts < _MOST_CUTS:
        if not (error_line := outline("\n".join(lines[start:end])).error_line):
            return end
        broken = start + error_line - 1
        if sentences < _MOST_SENTENCES and broken < end and _is_sentence(lines[broken]):
            lines[broken] = ""
            sentences += 1
            continue
        cuts += 1
        if broken < end and _has_returned("\n".join(lines[start:broken])):
            return broken
        candidates = range(start, min(broken + 1, end))
        end = max((index for index in candidates if _TOP_LEVEL.match(lines[index])), default=start)
    return start


def _is_sentence(line: str) -> bool:
    sentence = _SENTENCE.fullmatch(line)
    return sentence is not None and not keyword.iskeyword(sentence[1]) and sentence[1] not in ("print", "exec")


def _has_returned(source: str) -> bool:
    match parse(source):
        case ast.Module([*_, ast.FunctionDef(body=[*_, ast.Return()])]):
            return True
    return False


def without_redefinition(source: str, name: str) -> str:
    """Return a program without its last statement, if this defines a name once more."""
    tree = parse(source)
    if tree is not None and len(tree.body) > 1 and getattr(tree.body[-1], "name", "") == name:
        before = "\n".join(source.split("\n")[: tree.body[-1].lineno - 1])
        return before if name in outline(before).defined else source
    return source


def without_trials(source: str, *, run: bool = False) -> str:
    """Return a program without the trials of its top level, or with trials that may fail if they ``run``.

    A trial is an assert, a bare expression, an annotation without a value, or ``raise SystemExit``: examples, calls of
    the program's own tests, and words of prose that happen to be Python ("Done"; "Complexity: O(n)"). All lines keep
    their number. Text that is no program is returned as it is. A ``__main__`` block may stay: programs run as modules.
    """
    tree, text = parse(source), source.encode()
    if tree is None:
        return source
    starts = [0, *itertools.accumulate(map(len, text.splitlines(keepends=True)))]
    for node, following in zip(reversed(tree.body), [None, *tree.body[:0:-1]], strict=False):
        if not _is_trial(node):
            continue
        start = starts[node.lineno - 1] + node.col_offset
        if run and not node.col_offset and (following is None or following.lineno > (node.end_lineno or 0)):
            text = text[:start] + _SUPPRESS.encode() + text[start:]
            continue
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        lines = len((text[start:end] + b"|").splitlines()) - 1
        text = text[:start] + b"\n" * lines + b"pass" + text[end:]
    return text.decode()


def _is_trial(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(ast.Constant()):
            return False
        case ast.Assert() | ast.Expr() | ast.AnnAssign(value=None):
            return True
        case ast.Raise(ast.Name("SystemExit") | ast.Call(ast.Name("SystemExit"))):
            return True
    return False


def completed(source: str, earlier: Sequence[str]) -> str:
    """Return a program behind those earlier parts of its text that bind what it lacks."""
    # An import from the future stays where it is, at the head.
    _, lacking = _names(source) if "__future__" not in source else (set(), set[str]())
    for part in reversed(earlier[-_MOST_PARTS:]):
        if lacking and _names(part)[0] & lacking:
            source = f"{part.rstrip()}\n\n{source}"
            _, lacking = _names(source)
    return source


@_remember
def _names(source: str) -> tuple[set[str], set[str]]:
    """Return the names that the top level of a program binds, and those of others that it uses."""
    if outline(source).error_line:
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


@_remember
def canonical(source: str) -> str:
    """Return a program without layout, comments and docstrings, and text that is no program as it is."""
    tree = parse(source)
    if tree is None:
        return source.strip()
    holders = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    for node in ast.walk(tree):
        if isinstance(node, holders) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    try:
        return ast.unparse(tree)
    except RecursionError:
        return source.strip()
