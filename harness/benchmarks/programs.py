"""Prompt, extraction and grading of MBPP and HumanEval, whose answers are programs. Extraction executes nothing."""

import ast
import builtins
import functools
import itertools
import keyword
import re
import symtable
import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from harness.benchmarks.base import Benchmark, Tools
from harness.benchmarks.extraction import before_fences, fenced_blocks
from harness.benchmarks.items import CodeTask, Item, Status, Verdict

PYTHON_FENCES = frozenset({"", "py", "python", "python3"})
LONGEST_PROGRAM = 1_000_000
LONGEST_SALVAGED = 30_000

# Bounds on the time to parse a hostile text. A truncated program needs two cuts of one stretch.
_MAX_STRETCHES = 8
_MAX_CUTS = 3
_MAX_SENTENCES = 4
_MAX_BLOCKS = 8
_MAX_INDENTED = 3
_OPENS = re.compile(r"(?:import|def|class|async\s+def)\s+\w|from\s+[\w.]+\s+import\b|@\w")
_TOP_LEVEL = re.compile(r"[^\s)\]}]")
# A sentence inside a definition: three words or more, of which the first is not a Python keyword.
_SENTENCE = re.compile(r"\s+([A-Za-z][\w']*)[,:;]?(?:\s+[^\s=]+){2,}\s*")
# Stretches of indented lines: Markdown's code without a fence.
_INDENTED = re.compile(r"(?:^[ \t]+\S.*\n?|^[ \t]*\n)+", re.MULTILINE)
_SUPPRESS = "with __import__('contextlib').suppress(BaseException): "
# Cached, since agents show one another the same programs.
_remember = functools.lru_cache(maxsize=512)


class CodeBenchmark(Benchmark):
    """Benchmark whose answers are programs. The tests of the question grade them in the sandbox."""

    rule_version = "8"
    role_domain = "Code"
    output_rules = (
        "Finish with exactly one fenced Python block, opened by ```python and closed by ```. The block holds the "
        "whole program: its imports, the requested function under its given name and with its given parameters, and "
        "every helper it calls. Only Python's standard library can be imported. Put no example calls, tests or input "
        "reading into it."
    )

    def find_answer(self, item: Item, text: str, stated_only: bool) -> str | None:
        """Find the last block that defines the function, and prepend earlier blocks that define names it lacks.

        If there is none, return the last block that parses. ``stated_only`` prefers closed blocks and gives None here.
        """
        # Removes byte-order marks and Llama's tokens.
        text, entry_point = re.sub(r"\ufeff|<\|python_\w+\|>", "\n", text), task_of(item).entry_point
        blocks = [block for block in fenced_blocks(text) if block.language in PYTHON_FENCES]
        sources = [textwrap.dedent(block.source) for block in blocks]
        found = [(index, sources[index], block.closed) for index, block in enumerate(blocks)][::-1]
        # Indented code counts only if there is no program: a definition inside a condition or a class is not an answer.
        is_program = any(outline(source).has_statement for source in [*sources, text])
        indented = [] if is_program else [code for code in _INDENTED.findall(text) if f"def {entry_point}" in code]
        found += [(0, text, False), *((0, textwrap.dedent(code), False) for code in indented[-_MAX_INDENTED:])]
        for closed in [(True,), (False,)] if stated_only else [(True, False)]:
            candidates = [(index, source) for index, source, is_closed in found if is_closed in closed]
            broken = [(index, salvage(source)) for index, source in candidates if outline(source).error_line]
            for index, source in [*candidates, *broken]:
                if entry_point in outline(source).defined:
                    if closed == (False,):
                        source = _without_redefinition(source, entry_point)
                    return completed(source, [salvage(before_fences(text)), *sources[:index]])
        if stated_only:
            return None
        return next((source for _, source, _ in found if outline(source).has_statement), None)

    def same(self, item: Item, a: str, b: str) -> bool:
        """Whether two programs are equal except for layout, comments and docstrings."""
        return a == b or canonical(a) == canonical(b)

    async def grade_answer(self, item: Item, answer: str, tools: Tools) -> Verdict:
        """Run the tests on the program. If it fails before they begin, retry without its top-level example calls."""
        from harness.sandbox import Outcome, Program

        task = task_of(item)
        program = Program(answer, task.setup, task.checks, task.entry_point)
        execution = await tools.sandbox.run(program)
        # The first retry ignores exceptions of example calls. The last one omits the calls, which may hit a limit.
        for run in (True, False):
            if execution.is_loaded:
                break
            source = without_example_calls(answer, run=run)
            if source != answer and (execution.outcome is Outcome.EXCEPTION or not run):
                execution = await tools.sandbox.run(replace(program, source=source))
        outcome, detail = execution.outcome, execution.detail
        status = Status.SANDBOX_ERROR if outcome is Outcome.SANDBOX_ERROR else Status.GRADED
        return Verdict(outcome is Outcome.PASSED, answer, status, f"{outcome}: {detail}" if detail else str(outcome))


def task_of(item: Item) -> CodeTask:
    if item.code is None:
        raise ValueError(f"item {item.id} of {item.benchmark} has no tests to run")
    return item.code


class Outline(NamedTuple):
    """Outline of a text that is parsed as a program."""

    error_line: int  # line of the syntax error; 0 if the text is a program
    has_statement: bool = False
    # Names of functions, classes and values at the top level. Stubs, with nothing but a docstring or ``pass``, do not
    # count: prompts and plans show them beside the function itself.
    defined: frozenset[str] = frozenset()


def parse(source: str) -> ast.Module | None:
    """Parse a program. None if the text is not a program or is longer than ``LONGEST_PROGRAM``."""
    parsed = _parsed(source)
    return parsed if isinstance(parsed, ast.Module) else None


def _parsed(source: str) -> ast.Module | int:
    """Return the syntax tree, or the number of the line with the error (1 if unknown)."""
    if len(source) > LONGEST_PROGRAM:
        return 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        except SyntaxError as error:
            return error.lineno or 1
        # A null byte raises ValueError, deep nesting one of the others.
        except (ValueError, RecursionError, MemoryError, SystemError):
            return 1


@_remember
def outline(source: str) -> Outline:
    # Trees are not cached: each takes a hundred times the memory of its text.
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
    """Extract complete statements from a truncated program or from prose, where imports or definitions begin them."""
    lines = text.replace("\r\n", "\n").split("\n") if len(text) <= LONGEST_SALVAGED else []
    kept: list[str] = []
    start = 0
    for _ in range(_MAX_STRETCHES):
        end = _end_of_parsable(lines, start)
        kept += lines[start:end]
        following = range(max(end, start + 1), len(lines))
        start = next((index for index in following if _OPENS.match(lines[index])), len(lines))
        if start == len(lines):
            break
    return "\n".join(kept)


def _end_of_parsable(lines: list[str], start: int) -> int:
    """Find the line after the complete statements that begin at ``start``. Returns ``start`` if there are none.

    A sentence of prose inside a definition is blanked. Any other error ends the statements, after a function that ends
    with a return, or else before the last top-level line.
    """
    end = len(lines)
    cuts = sentences = 0
    while cuts < _MAX_CUTS:
        if not (error_line := outline("\n".join(lines[start:end])).error_line):
            return end
        broken = start + error_line - 1
        sentence = _SENTENCE.fullmatch(lines[broken]) if sentences < _MAX_SENTENCES and broken < end else None
        if sentence and not keyword.iskeyword(sentence[1]) and sentence[1] not in ("print", "exec"):
            lines[broken] = ""
            sentences += 1
            continue
        cuts += 1
        match parse("\n".join(lines[start:broken])) if broken < end else None:
            case ast.Module([*_, ast.FunctionDef(body=[*_, ast.Return()])]):
                return broken
        candidates = range(start, min(broken + 1, end))
        end = max((index for index in candidates if _TOP_LEVEL.match(lines[index])), default=start)
    return start


def _without_redefinition(source: str, name: str) -> str:
    """Drop the last statement of a program if it defines a name a second time, since it may be cut off."""
    tree = parse(source)
    if tree is not None and len(tree.body) > 1 and getattr(tree.body[-1], "name", "") == name:
        before = "\n".join(source.split("\n")[: tree.body[-1].lineno - 1])
        return before if name in outline(before).defined else source
    return source


def without_example_calls(source: str, *, run: bool = False) -> str:
    """Remove the top-level example calls of a program or, if ``run``, let them fail. Line numbers do not change.

    These are asserts, bare expressions, annotations without a value and ``raise SystemExit``: examples, calls of the
    program's own tests, and prose that happens to be Python ("Done"; "Complexity: O(n)").
    """
    tree, text = parse(source), source.encode()
    if tree is None:
        return source
    starts = [0, *itertools.accumulate(map(len, text.splitlines(keepends=True)))]
    for node, following in zip(reversed(tree.body), [None, *tree.body[:0:-1]], strict=False):
        if not _is_example_call(node):
            continue
        start = starts[node.lineno - 1] + node.col_offset
        if run and not node.col_offset and (following is None or following.lineno > (node.end_lineno or 0)):
            text = text[:start] + _SUPPRESS.encode() + text[start:]
            continue
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        lines = len((text[start:end] + b"|").splitlines()) - 1
        text = text[:start] + b"\n" * lines + b"pass" + text[end:]
    return text.decode()


def _is_example_call(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(ast.Constant()):
            return False
        case ast.Assert() | ast.Expr() | ast.AnnAssign(value=None):
            return True
        case ast.Raise(ast.Name("SystemExit") | ast.Call(ast.Name("SystemExit"))):
            return True
    return False


def completed(source: str, earlier: Sequence[str]) -> str:
    """Prepend earlier blocks of a reply to a program if they bind names that the program uses but does not bind."""
    # A __future__ import has to stay the first statement.
    _, lacking = _names(source) if "__future__" not in source else (set(), set[str]())
    for block in reversed(earlier[-_MAX_BLOCKS:]):
        if lacking and _names(block)[0] & lacking:
            source = f"{block.rstrip()}\n\n{source}"
            _, lacking = _names(source)
    return source


@_remember
def _names(source: str) -> tuple[set[str], set[str]]:
    """Collect the names that a program binds at its top level, and the names that it uses without binding them."""
    if outline(source).error_line:
        return set(), set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            top = symtable.symtable(source, "", "exec")
        except (SyntaxError, RecursionError):  # SyntaxError: a return at the top level
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
    """Normalise a program: standard layout, no comments, no docstrings. Other text is only stripped."""
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
