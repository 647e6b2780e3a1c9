"""Programs as answers: MBPP and HumanEval. Extraction executes nothing; grading runs the tests in the sandbox."""

import ast
import functools
import itertools
import re
import textwrap
import warnings
from dataclasses import replace
from typing import NamedTuple

from harness import fingerprint
from harness.benchmarks.base import Benchmark, Tools
from harness.benchmarks.items import CodeTask, Item, Status, Verdict

PYTHON_FENCES = frozenset({"", "py", "python", "python3"})
LONGEST_PROGRAM = 1_000_000
LONGEST_SALVAGED = 30_000

_FENCE = re.compile(r"(`{3,})[ \t]*([A-Za-z][\w+#.-]*)?")
_OPENS = re.compile(r"(?:import|def|class|async\s+def)\s+\w|from\s+[\w.]+\s+import\b|@\w")
_TOP_LEVEL = re.compile(r"[^\s)\]}]")
# Bounds on the time to parse a hostile text.
_MAX_STRETCHES = 3
_MAX_CUTS = 1
# Cached, since agents show one another the same programs.
_remember = functools.lru_cache(maxsize=512)


class CodeBenchmark(Benchmark):
    """Benchmark whose answers are programs. The tests of the question grade them in the sandbox."""

    rule_version = "9"
    role_domain = "Code"
    output_rules = (
        "Finish with exactly one fenced Python block, opened by ```python and closed by ```. The block holds the "
        "whole program: its imports, the requested function under its given name and with its given parameters, and "
        "every helper it calls. Only Python's standard library can be imported. Put no example calls, tests or input "
        "reading into it."
    )

    def find_answer(self, item: Item, text: str, cut_off: bool) -> str | None:
        """Find the last block, or else the text, that defines the function.

        What does not parse counts by its complete statements. If nothing defines the function, return the last block
        that parses, or None if ``cut_off``.
        """
        name = task_of(item).entry_point
        sources = [textwrap.dedent(block.source) for block in fenced_blocks(text) if block.language in PYTHON_FENCES]
        found = [*sources[::-1], text]
        broken = [salvage(source) for source in found if outline(source).error_line]
        defining = (source for source in [*found, *broken] if name in outline(source).defined)
        parsing = (source for source in found if not cut_off and outline(source).has_statement)
        return next(itertools.chain(defining, parsing), None)

    def same(self, item: Item, a: str, b: str) -> bool:
        """Whether two programs are equal except for layout, comments and docstrings."""
        return a == b or canonical(a) == canonical(b)

    async def grade_answer(self, item: Item, answer: str, tools: Tools) -> Verdict:
        """Run the tests on the program. If it fails before they begin, retry without its top-level example calls."""
        from harness.sandbox import Outcome, Program

        task = task_of(item)
        program = Program(answer, task.setup, task.checks, task.entry_point)
        execution = await tools.sandbox.run(program)
        if not execution.is_loaded and (source := without_example_calls(answer)) != answer:
            execution = await tools.sandbox.run(replace(program, source=source))
        outcome, detail = execution.outcome, execution.detail
        status = Status.SANDBOX_ERROR if outcome is Outcome.SANDBOX_ERROR else Status.GRADED
        return Verdict(outcome is Outcome.PASSED, answer, status, f"{outcome}: {detail}" if detail else str(outcome))


def task_of(item: Item) -> CodeTask:
    if item.code is None:
        raise ValueError(f"item {item.id} of {item.benchmark} has no tests to run")
    return item.code


class Block(NamedTuple):
    """A fenced block of text."""

    language: str  # first word after the opening fence, in lower case; may be empty
    source: str  # the lines between the fences
    closed: bool = True  # whether a fence ends the block


def fenced_blocks(text: str) -> list[Block]:
    r"""Return all fenced blocks of a text. The last block may be unclosed.

    >>> fenced_blocks("First:\n```python\nx = 1\n```\nThen:\n```\ny = 2")
    [Block(language='python', source='x = 1\n', closed=True), Block(language='', source='y = 2\n', closed=False)]
    """
    blocks: list[Block] = []
    opened: re.Match[str] | None = None
    lines: list[str] = []
    for line in text.replace("\r\n", "\n").removesuffix("\n").split("\n"):
        fence = _FENCE.fullmatch(line.strip())
        if opened and fence and fence[1].startswith(opened[1]):
            blocks.append(Block((opened[2] or "").lower(), "".join(lines)))
            opened = None
        elif opened:
            lines.append(f"{line}\n")
        else:
            opened, lines = fence, []
    if opened:
        blocks.append(Block((opened[2] or "").lower(), "".join(lines), closed=False))
    return blocks


def fenced(program: str) -> str:
    """Put a program between fences longer than any run of backticks in it."""
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", program))])
    return f"{fence}python\n{program.rstrip()}\n{fence}"


class Outline(NamedTuple):
    """Outline of a text that is parsed as a program."""

    error_line: int  # line of the syntax error; 0 if the text is a program
    has_statement: bool = False
    defined: frozenset[str] = frozenset()  # names of functions, classes and values at the top level


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
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                names.add(name)
            case ast.Assign(targets):
                bound = (node for target in targets for node in getattr(target, "elts", [target]))
                names.update(node.id for node in bound if isinstance(node, ast.Name))
            case ast.AnnAssign(ast.Name(name), value=ast.expr()):
                names.add(name)
    return Outline(0, bool(tree.body), frozenset(names))


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

    An error ends the statements before the last top-level line above it.
    """
    end = len(lines)
    for _ in range(_MAX_CUTS + 1):
        if not (error_line := outline("\n".join(lines[start:end])).error_line):
            return end
        candidates = range(start, min(start + error_line, end))
        end = max((index for index in candidates if _TOP_LEVEL.match(lines[index])), default=start)
    return start


def without_example_calls(source: str) -> str:
    """Remove the top-level example calls of a program. Line numbers do not change.

    These are asserts, bare expressions, annotations without a value and ``raise SystemExit``: examples, calls of the
    program's own tests, and prose that happens to be Python ("Done"; "Complexity: O(n)").
    """
    tree, text = parse(source), source.encode()
    if tree is None:
        return source
    starts = [0, *itertools.accumulate(map(len, text.splitlines(keepends=True)))]
    for node in filter(_is_example_call, reversed(tree.body)):
        start = starts[node.lineno - 1] + node.col_offset
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


@_remember
def canonical(source: str) -> str:
    """Normalise a program: standard layout, no comments, no docstrings. Other text is only stripped."""
    tree = parse(source)
    try:
        return source.strip() if tree is None else fingerprint.canonical(tree)
    except RecursionError:
        return source.strip()
