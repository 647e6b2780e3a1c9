"""Finding an answer in any text in linear time, evaluating nothing: boxes, answer lines, fenced blocks."""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Iterator
from typing import NamedTuple

_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
# TeX takes what follows for the argument where no brace opens one: "\boxed 5", "\boxed\frac12".
_BARE_BOX = re.compile(r"\\(?:boxed|fbox)\s*((?:\\[a-zA-Z]+|(?<!box)(?<!boxed)(?<!\s)\{[^{}]*\}|[^\s{}$\\])+)")
# "Answer:" counts where a formula or a number follows: "Answer: let me think" states nothing. So does a heading without
# a colon ("**Final Answer**"), but above no list. A display formula may open on the line before its content.
_VALUE = r"(?=[\s:*_]*[-+−–.(\[{$\\\d])"
_ANSWER_IS = re.compile(
    rf"(?:(?:\bthe\s+)?\b(?:answer|final\s+result)(?:\s+is\b|[*_]*\s*:{_VALUE})|<answer>"
    rf"|^[ \t>#*_]*(?:the\s+)?(?:(?:final|correct)\s+)?(?:answer|result)[ \t*_#]*\n{_VALUE}(?!\s*\d+[.)]\s))[\s:*_]*"
    r"(?:(?:\$\$|\\\[)[ \t]*\n\s*)?",
    re.IGNORECASE | re.MULTILINE,
)
# What may begin another question: a line such as "Question: ...", "### Problem 2" or "Q3. ...", "Question:" behind a
# sentence, or a question mark with options under it, if it asks; and what always does: the next turn of a dialogue.
_NEXT_QUESTION = re.compile(
    r"""
    ^ (?: \#+[ \t*_]* | [ \t>*_]* ) (?:
        (?P<label>
            (?:next\s+)? (?:question|problem) [ \t]*\d*[*_]* (?: [ \t]*[:.] | [ \t]*$ ) | q[ \t]*\d*[*_]*[ \t]*[:.]
        )
        | (?:user|human)[*_]*: | <\|(?:user\b|im_start\|>user\b)
        | the\ following\ (?:is|are)\ (?:a\ )?multiple[ -]choice
    )
    | (?P<inline> (?<=[.!]\ ) question [ \t]*\d*: )
    | (?P<options>
        \? [ \t*_]* \n \s* (?: [*_]* (?:options|choices) [*_]*:[*_]* \s* )? \(?A[.):] [^\n]* \n \s* \(?B[.):]
    )
    | <\|(?:im_end|eot_id|endoftext|end_of_text)\|>(?=\s*\S)
    """,
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
# Critics and revisers put headings like these over a fault ("Problem: the tax was left out."), a doubt that they answer
# themselves ("Q: Is that right? A: No.") or the question they were asked. None of them is a question of a benchmark,
# whose answer has the demanded form: "yes" and "because" have not.
_DOUBT = re.compile(
    r"""
    \W* (?: (?:but|and|so|or|then|now|wait|hmm|ok(?:ay)?|first|next)\b\W* )*
    (?: (?:is|are|was|were|am|do|does|did|can|could|should|would|will|has|have|had|may|might|must)(?:n['’]t)?\b
      | why\b | how\ (?:so|come)\b | what\ (?:about|if|now|else)\b | (?:really|right|correct|sure)\W*$ )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_OF_REPLIES = re.compile(
    r"\b(?:agents?|drafts?|wrong|miss(?:ed|ing)|forg[eo]t\w*|left out|overlook\w*|mistakes?|errors?|previous|above"
    r"|earlier|repl(?:y|ies)|critics?|critique|candidates?|go(?:es)? right)\b",
    re.IGNORECASE,
)
_FEW_WORDS = 12
# "Problem: Find the sum of all." asks; "Compute it again" is a critic's.
_TASK = re.compile(
    r"""
    (?:^|[.!:]\s+|\n) [\s*_]*
    (?: find|compute|calculate|determine|evaluate|solve|simplify|express|write\ (?:an?|the|code|python)|prove|factor
      | complete|choose|select|convert|implement
    ) \b (?! \s*\( ) (?! [^.!?\n]*\b(?:again|also|too|instead|as\ well|properly|correctly)\b )
    """,
    re.IGNORECASE | re.VERBOSE,
)
# "A: Two." or "**Answer:** 4" under a question of the text.
_ITS_ANSWER = re.compile(
    r"^[ \t*_>#]*(?:a|(?:(?:correct|final)\s)?answer|solution|response)[*_]*[ \t]*:", re.IGNORECASE | re.MULTILINE
)
_OPTIONS = re.compile(r"\n[ \t]*\(?A[.):][^\n]*\n\s*\(?B[.):]")
_FEW_LETTERS = 8
_LONGEST_QUESTION = 2000  # characters
# Commands that set their argument in another font.
FONT = r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|boldsymbol|mbox)\s*"
_STATEMENT = re.compile(rf"(?im:{_ANSWER_IS.pattern})|{_BOX.pattern}|```")
_PROGRAM = re.compile(r"```py.*?(?:```|\Z)", re.DOTALL | re.IGNORECASE)
# "I hope this answer is helpful" states nothing.
_PRAISE = re.compile(
    r"(?:\w+ly\s+)?(?:not\s+)?(?:(?:in)?correct|right|wrong|(?:un)?clear|helpful|useful|satisfactory)\b", re.I
)
# Ends a statement, so that it is whole even if the text breaks off: the end of its line, sentence, clause or formula,
# or a word behind its number.
_ENDED = re.compile(r"\n|[.!?](?=\s|$)|,\s+[A-Za-z]|\d\s+[A-Za-z]|\$[^$]+\$|\\[)\]]")
# Programs between marks that are no fence: Code Llama's and MBPP's own, tags, and quotation marks for backticks. A
# prompt may have written the first mark.
_MARKED_PROGRAM = re.compile(
    r"""
    ^[ \t]* [\[<](?:python|code|begin)[\]>] (?P<marked>.*?)
        (?: (?P<end> [\[<]/(?:python|code)[\]>] | (?-i:\[DONE\])[ \t]*$ ) | \Z )
    | \A (?P<continued>.*?) (?: [\[<]/(?:python|code)[\]>] | (?<!\w)(?-i:\[DONE\]) | (?-i:\[DONE\])\s*\Z )
    | ^(?P<quotes>\'\'\'|\"\"\")(?:python3?|py)[ \t]*\n (?P<quoted>.*?) (?: ^(?P=quotes)[ \t]*$ | \Z )
    """,
    re.DOTALL | re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_QUOTED_FENCE = re.compile(r"^[ \t]*>[ \t>]*(?:```|~~~)", re.MULTILINE)
_QUOTE = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)
# A language on the first line of a block instead of behind its fence, as Qwen2.5-Coder-0.5B writes it.
_LANGUAGE_LINE = re.compile(r"\s*(python3?|py)\s*", re.IGNORECASE)
_LANGUAGE_CHARACTERS = string.ascii_letters + string.digits + "_+#.-"


def boxes_from_last(text: str) -> Iterator[str]:
    r"""Iterate over the contents of balanced ``\boxed{...}`` and ``\fbox{...}`` that hold no other, the last first."""
    closing = _closing_braces(text)
    next_start, has_box = len(text), False
    for match in reversed(list(_BOX.finditer(text))):
        end = closing.get(match.end() - 1)
        if end is not None:
            if end < next_start:
                yield text[match.end() : end].strip()
                has_box = True
            next_start = match.start()
    if not has_box:
        bare = [match[1].rstrip(".,;:!?") for match in _BARE_BOX.finditer(text)]
        yield from (content for content in reversed(bare) if len(content) == 1 or re.search(r"\d|\\", content))


def last_box(text: str) -> str | None:
    """Return the content of the last balanced box that has one, None if there is none."""
    # A box that is spoken of is empty, as that of a prompt is.
    return next(filter(None, boxes_from_last(text)), None)


def _closing_braces(text: str) -> dict[int, int]:
    pairs: dict[int, int] = {}
    pending: list[int] = []
    for match in re.finditer(r"\\.|[{}]", text, re.DOTALL):
        if match.group() == "{":
            pending.append(match.start())
        elif match.group() == "}" and pending:
            pairs[pending.pop()] = match.start()
    return pairs


def after_answer_is(text: str, cut_off: bool = False) -> list[str]:
    """Return the text behind each "answer is" or "final result:", up to the end of the line or the next of them.

    Praise is left out. The last of a text that is cut off counts if what it states has ended.
    """
    statements = _ANSWER_IS.split(without_programs(text))[1:]
    if cut_off and statements and not _ENDED.search(statements[-1]):
        statements.pop()
    lines = [re.split(r"\n|</answer>", statement, maxsplit=1)[0].strip() for statement in statements]
    return [line for line in lines if not _PRAISE.match(line)]


def without_programs(text: str) -> str:
    """Return the text without its blocks of Python, which calculate and print but state nothing."""
    return _PROGRAM.sub("\n", text)


def before_next_question(text: str, question: str) -> str:
    """Return the text up to where it goes on to another question than the one it answers, all of it if it does not."""
    programs = [program.span() for program in _PROGRAM.finditer(text) if program.group().endswith("```")]
    found = _NEXT_QUESTION.finditer(text)
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
    """Return whether a stretch of text asks another question than the reader's own, to be answered in what follows."""
    body = text[start:end]
    for answer in (_ITS_ANSWER.search(body), _STATEMENT.search(body)):
        body = body[: answer.start()] if answer else body
    questions = [match for match in re.finditer(r"[^.!?\n]+(\?)?", body) if match[1]]
    for match in questions:
        asked = match.group().rpartition(":")[2]
        is_own = len(letters := letters_and_digits(asked)) >= _FEW_LETTERS and letters in own
        is_doubt = _DOUBT.match(asked) or (_OF_REPLIES.search(asked) and len(asked.split()) <= _FEW_WORDS)
        if not (is_own or is_doubt or _is_answered(text, start + match.end(), len(body.split()), last_statement)):
            return True
    if any(len(letters := letters_and_digits(line)) >= _FEW_LETTERS and letters in own for line in body.split("\n")):
        return False
    return not body.strip() or bool(_OPTIONS.search(body)) or (not questions and _TASK.search(body) is not None)


def _is_answered(text: str, end: int, words: int, last_statement: int) -> bool:
    """Return whether a question has an answer of another form at once, and a statement follows on it."""
    line, _, following = text[end : end + _LONGEST_QUESTION].partition("\n")
    if not line.strip(" *_") and words <= _FEW_WORDS and _ITS_ANSWER.match(following):
        line = f"{line}\n{following.partition(chr(10))[0]}"
    return bool(line.strip(" *_")) and not _STATEMENT.search(line) and last_statement >= end + len(line)


class Block(NamedTuple):
    """A fenced block of text."""

    language: str  # first word after the opening fence, in lower case; may be empty
    source: str  # the lines between the fences
    closed: bool = True  # whether a fence ends it


def fenced_blocks(text: str) -> list[Block]:
    """Return all blocks, the last perhaps unclosed; a fence may follow prose or, with a language, end a block."""
    text = text.replace("\r\n", "\n").removesuffix("\n")
    if _QUOTED_FENCE.search(text):
        text = _QUOTE.sub("", text)
    if "```" not in text and "~~~" not in text:
        text = _MARKED_PROGRAM.sub(_with_fences, text)
    blocks: list[Block] = []
    opened: _Fence | None = None
    lines: list[str] = []
    for line in text.split("\n"):
        fence = _fence_at_end(line)
        if opened is None:
            opened, lines = (fence if fence and fence.marks not in fence.before else None), []
        elif fence and fence.marks.startswith(opened.marks):
            kept = [*lines, fence.before] if fence.before.strip() else lines
            blocks.append(_block(opened, kept))
            opened, lines = (fence if fence.language else None), []
        else:
            lines.append(line)
    return [*blocks, _block(opened, lines, closed=False)] if opened else blocks


def _with_fences(match: re.Match[str]) -> str:
    closing = "" if match["marked"] is not None and match["end"] is None else "\n```\n"
    return f"```\n{match['marked'] or match['continued'] or match['quoted'] or ''}{closing}"


def _block(opened: _Fence, lines: list[str], *, closed: bool = True) -> Block:
    named = _LANGUAGE_LINE.fullmatch(lines[0]) if lines and not opened.language else None
    return (
        Block(named[1].lower(), _joined(lines[1:]), closed) if named else Block(opened.language, _joined(lines), closed)
    )


def before_fences(text: str) -> str:
    """Return the lines before the first one that ends in a fence."""
    return "\n".join(itertools.takewhile(lambda line: _fence_at_end(line) is None, text.split("\n")))


def fenced(program: str) -> str:
    """Write a program in a fence that nothing inside it can close."""
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", program))])
    return f"{fence}python\n{program.rstrip()}\n{fence}"


class _Fence(NamedTuple):
    before: str
    marks: str
    language: str


def _fence_at_end(line: str) -> _Fence | None:
    """Return the fence at the end of a line, read from the right: from the left, time is quadratic in the marks."""
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
    """Return the letters and digits of a text, in one case."""
    return "".join(filter(str.isalnum, text.casefold()))


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
