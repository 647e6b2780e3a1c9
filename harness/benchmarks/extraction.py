"""Find fenced blocks and the start of a further question in a reply, in linear time and without evaluation."""

import itertools
import re
import string
from typing import NamedTuple

from harness.benchmarks.statements import IS, PROGRAM, pattern

_FEW_WORDS = 12
_FEW_LETTERS = 8
_LONGEST_QUESTION = 2000  # characters
_STATEMENT = pattern(rf"{IS['lead'].pattern}|\\(?:boxed|fbox)\s*\{{|```")
_QUOTED_FENCE = re.compile(r"^[ \t]*>[ \t>]*(?:```|~~~)", re.MULTILINE)
_QUOTE = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)
# A language on the line below its fence (Qwen2.5-Coder-0.5B), and a program that begins on the line of its fence.
_LANGUAGE_BELOW = pattern(r"^([ \t]*(?:```|~~~))[ \t]*\n[ \t]*(python3?|py)[ \t]*$")
_CODE_AFTER_FENCE = pattern(
    r"^([ \t]*(?:```|~~~)[ \t]*(?:python3?|py)?):?[ \t]*(?=(?:import|from|def|class|async)\s|[@\#]\w)"
)
_LANGUAGE_CHARACTERS = string.ascii_letters + string.digits + "_+#.-"


def before_next_question(text: str, question: str) -> str:
    """Return the text before the first question other than ``question``. The whole text if there is none."""
    programs = [program.span() for program in PROGRAM.finditer(text) if program.group().endswith("```")]
    found = IS["next question"].finditer(text)
    marks = [mark for mark in found if not any(start < mark.start() < end for start, end in programs)]
    last_statement = max((match.start() for match in _STATEMENT.finditer(text)), default=-1) if marks else -1
    own = letters_and_digits(question)
    for mark, following in itertools.zip_longest(marks, marks[1:]):
        start = mark.end()
        end = min(following.start() + 1 if following else len(text), start + _LONGEST_QUESTION)
        if mark["options"]:
            start, end = text.rfind("\n", 0, mark.start()) + 1, mark.start() + 1
        is_turn = not (mark["label"] or mark["inline"] or mark["options"])
        if is_turn or _asks_another(text, start, end, own, last_statement):
            return text[: mark.start()]
    return text


def _asks_another(text: str, start: int, end: int, own: str, last_statement: int) -> bool:
    """Whether a passage asks a question other than the reply's own, which the text after it may answer."""
    body = text[start:end]
    for answer in (IS["its answer"].search(body), _STATEMENT.search(body)):
        body = body[: answer.start()] if answer else body
    questions = [match for match in re.finditer(r"[^.!?\n]+(\?)?", body) if match[1]]
    for match in questions:
        asked = match.group().rpartition(":")[2]
        is_own = len(letters := letters_and_digits(asked)) >= _FEW_LETTERS and letters in own
        is_doubt = IS["doubt"].match(asked) or (IS["of replies"].search(asked) and len(asked.split()) <= _FEW_WORDS)
        if not (is_own or is_doubt or _is_answered(text, start + match.end(), len(body.split()), last_statement)):
            return True
    if any(len(letters := letters_and_digits(line)) >= _FEW_LETTERS and letters in own for line in body.split("\n")):
        return False
    return not body.strip() or bool(IS["options"].search(body) or (not questions and IS["task"].search(body)))


def _is_answered(text: str, end: int, words: int, last_statement: int) -> bool:
    """Whether a question is answered at once in another form ("yes", "because") and a statement follows later."""
    line, _, following = text[end : end + _LONGEST_QUESTION].partition("\n")
    if not line.strip(" *_") and words <= _FEW_WORDS and IS["its answer"].match(following):
        line = f"{line}\n{following.partition(chr(10))[0]}"
    return bool(line.strip(" *_")) and not _STATEMENT.search(line) and last_statement >= end + len(line)


class Block(NamedTuple):
    """A fenced block of text."""

    language: str  # first word after the opening fence, in lower case; may be empty
    source: str  # the lines between the fences
    closed: bool = True  # whether a fence ends the block


def fenced_blocks(text: str) -> list[Block]:
    r"""Return all fenced blocks of a text.

    The last block may be unclosed. A fence may follow prose on its line. A fence with a language also ends a block.

    >>> fenced_blocks("First:\n```python\nx = 1\n```python\ny = 2")
    [Block(language='python', source='x = 1\n', closed=True), Block(language='python', source='y = 2\n', closed=False)]
    """
    text = text.replace("\r\n", "\n").removesuffix("\n")
    if _QUOTED_FENCE.search(text):
        text = _QUOTE.sub("", text)
    if "```" not in text and "~~~" not in text:
        text = IS["marked program"].sub(_with_fences, text)
    text = _CODE_AFTER_FENCE.sub(r"\1\n", _LANGUAGE_BELOW.sub(r"\1\2", text))
    blocks: list[Block] = []
    opened: _Fence | None = None
    lines: list[str] = []
    for line in text.split("\n"):
        fence = _fence_at_end(line)
        if opened is None:
            opened, lines = (fence if fence and fence.marks not in fence.before else None), []
        elif fence and fence.marks.startswith(opened.marks):
            kept = [*lines, fence.before] if fence.before.strip() else lines
            blocks.append(Block(opened.language, "".join(f"{line}\n" for line in kept)))
            opened, lines = (fence if fence.language else None), []
        else:
            lines.append(line)
    if opened:
        blocks.append(Block(opened.language, "".join(f"{line}\n" for line in lines), closed=False))
    return blocks


def _with_fences(match: re.Match[str]) -> str:
    closing = "" if match["marked"] is not None and match["end"] is None else "\n```\n"
    return f"```\n{match['marked'] or match['continued'] or match['quoted'] or ''}{closing}"


def before_fences(text: str) -> str:
    return "\n".join(itertools.takewhile(lambda line: _fence_at_end(line) is None, text.split("\n")))


def fenced(program: str) -> str:
    """Put a program between fences longer than any run of backticks in it."""
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", program))])
    return f"{fence}python\n{program.rstrip()}\n{fence}"


class _Fence(NamedTuple):
    before: str
    marks: str
    language: str


def _fence_at_end(line: str) -> _Fence | None:
    """Parse the fence at the end of a line, from the right. Parsing from the left would take quadratic time."""
    body = line.rstrip()
    head = body.rstrip(_LANGUAGE_CHARACTERS)
    language = body[len(head) :].lower()
    head = head.rstrip(" \t")
    before = head.rstrip(head[-1]) if head.endswith(("`", "~")) else head
    marks = head[len(before) :]
    if len(marks) < 3:
        return None
    return _Fence(before, marks, language if language[:1].isalpha() else "")


def letters_and_digits(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))
