r"""Find the answers that a text states as its own: in boxes, on answer lines, under headings, in tags and in JSON.

A statement does not count if the text denies it, attributes it to somebody else ("agent 1 says the answer is 5") or
only describes the answer ("is rounded to 2 decimals"). Time is linear, and nothing is evaluated.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeVar

from harness.files import read_yaml

T = TypeVar("T")
Mark = tuple[int, int, re.Match[str] | str]  # start, end, and the lead of a statement or the content of a box

PROGRAM = re.compile(r"```py.*?(?:```|\Z)", re.DOTALL | re.IGNORECASE)
# LaTeX commands for the font of their argument; they may be nested.
FONT = r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|boldsymbol|mbox|underline)\s*"
# Without a brace, TeX takes the next token as the argument: "\boxed 5", "\boxed\frac12".
_BARE_BOX = re.compile(r"\\(?:boxed|fbox)\s*((?:\\[a-zA-Z]+|(?<!box)(?<!boxed)(?<!\s)\{[^{}]*\}|[^\s{}$\\])+)")
# Full-width, mathematical and circled characters, and fractions that are one character.
_FORMS = re.compile("[\uff01-\uffe6\U0001d400-\U0001d7ff①-⓪⅐-⅞¼-¾]")
_MARKS = str.maketrans({"\u3000": " ", "。": ". ", "【": "[", "】": "]", "「": "“", "」": "”", "⁄": "/"})

_FILE = read_yaml(Path(__file__).with_name("patterns.yaml"))


def pattern(source: str) -> re.Pattern[str]:
    """Compile a verbose, case-insensitive pattern. Names of ``words`` in patterns.yaml stand for their patterns."""
    for name, words in reversed(_FILE["words"].items()):
        source = source.replace(name, f"(?:{words.strip()})")
    return re.compile(source, re.IGNORECASE | re.MULTILINE | re.VERBOSE)


IS = {name: pattern(source) for name, source in _FILE["patterns"].items()}
_CONTEXT = 200  # characters that are read before and after a mark
_MAX_MARKS = 500


class Statement(NamedTuple):
    """An answer that a text states."""

    text: str  # from the value to the next statement, or the content of a box
    is_direct: bool  # the text begins with the value
    is_box: bool = False

    @property
    def line(self) -> str:
        return self.text.split("\n", 1)[0].strip()


def statements(text: str, cut_off: bool = False) -> list[Statement]:
    r"""Return a text's own statements, in order.

    If the text is cut off, its last statement counts only if it is complete.

    >>> [statement.line for statement in statements("The draft says the answer is 7.\nThe answer is 8, not 7.")]
    ['8, not 7.']
    """
    text = IS["quoted"].sub("\n", PROGRAM.sub("\n", text))
    marks: list[Mark] = [*((mark.start(), mark.end(), mark) for mark in IS["lead"].finditer(text)), *_boxes(text)]
    marks = [*sorted(marks, key=lambda mark: mark[0])[-_MAX_MARKS:], (len(text), 0, "")]
    sentences = [0, *(end.end() for end in IS["sentence"].finditer(text))]
    found: list[Statement] = []
    previous, is_own = 0, True
    for (start, end, mark), (stop, *_) in pairwise(marks):
        sentence = sentences[bisect_right(sentences, start) - 1]
        before, after = text[max(previous, sentence, start - _CONTEXT) : start], text[end : end + _CONTEXT]
        # If no word separates two marks, the second one counts only if the first does.
        is_own = is_own or previous < sentence or any(map(str.isalnum, before))
        if isinstance(mark, str):
            is_own = is_own and _is_own(before, before, "", after) and not re.search(r"\bnot\W*$", before)
            found += [Statement(mark, True, True)] * (is_own and mark != "")
            continue
        previous, line = end, text[max(0, start - _CONTEXT) : start].rpartition("\n")[2]
        lead = mark[0].removesuffix(mark["hedges"] or "")
        is_own = is_own and not mark["end"] and _is_own(line, before, lead, after)
        is_own = bool(mark["json"]) or (is_own and not IS["denied"].search(IS["clause"].split(before)[-1] + lead))
        if is_own and (not cut_off or stop < len(text) or IS["ended"].search(text, end)):
            found += filter(None, [_statement(mark, before, text[end:stop], after)])
    return found


def decided(found: Sequence[Statement], read: Callable[[Statement], T | None]) -> T | None:
    """Return the value of the last direct statement that has one, or else of the last other statement that has one."""
    values = (read(each) for is_direct in (True, False) for each in reversed(found) if each.is_direct is is_direct)
    return next((value for value in values if value is not None), None)


def own_sentences(text: str) -> str:
    """Select a text's own sentences, without remarks. If none of these has a digit, return all sentences."""
    sentences = re.split(r"(?<=[.!?])\s+(?=[A-Z])|\n", PROGRAM.sub("\n", text))
    own = [sentence for sentence in sentences if not IS["remark"].match(sentence) and _is_own(sentence, sentence)]
    return next((found for found in ("\n".join(own), "\n".join(sentences)) if re.search(r"\d", found)), "")


def _is_own(line: str, before: str, lead: str = "", after: str = "") -> bool:
    """Whether a statement is the text's own, judged by the words before it (line and sentence) and after it."""
    is_labelled = IS["label"].match(line) and not IS["own"].match(before)
    is_attributed = is_labelled or IS["others"].search(IS["clause"].split(before)[-1]) or IS["others"].search(lead)
    return not (is_attributed and not IS["agreed"].search(before)) and not IS["rejected"].match(after)


def _statement(mark: re.Match[str], before: str, stated: str, after: str) -> Statement | None:
    """Parse the statement after a mark. None if it states no value or only describes the answer."""
    if mark["subject"]:
        return Statement(mark["subject"], bool(mark["of"]))
    is_heading, is_section = mark["heading"] is not None, mark["tag"] is not None or mark["heading"] is not None
    if mark["json"]:
        stated = mark["json"].strip("\"' ").replace("\\\\", "\\")
    stated = IS["hedges"].sub("", _focus(stated) if is_section else stated, count=1)
    if denied := IS["negation"].match(stated):
        stated = stated[denied.end() :] if denied["but"] else ""
    is_weak = mark["choice"] or mark["key"] or IS["condition"].search(before + mark[0])
    is_direct = bool(not is_weak and IS["value"].match(stated))
    if not is_direct and (mark["label"] or is_heading):
        # After a label or heading, words count as a statement only if it says "final" or ends the text.
        is_last = len(after) < _CONTEXT and "\n" not in after.strip()
        stated = _focus(stated) if is_last or re.search("final|correct", before[-20:] + mark[0], re.I) else ""
    elif not is_direct and not is_section and IS["about"].match(stated):
        return None
    return Statement(stated, is_direct) if re.search(r"[^\s$*\\{}.,:()_`]", stated) else None


def _focus(section: str) -> str:
    """Find the part of a section that states its value: the last list item, or else the emphasised value."""
    lines = [line for line in section.split("\n") if line.strip()] or [""]
    items = [IS["item"].sub("", line, count=1) for line in lines if IS["item"].match(line)]
    line = items[-1] if items else lines[0]
    emphasis = None if IS["value"].match(line) else IS["emphasis"].search(line)
    return next(filter(None, emphasis.groups())) if emphasis else line if items else section


def last_box(text: str) -> str | None:
    return next((content for *_, content in reversed(_boxes(text)) if content), None)


def _boxes(text: str) -> list[tuple[int, int, str]]:
    """Find start, end and content of the innermost balanced boxes or, if there are none, of boxes without braces."""
    pending: list[re.Match[str]] = []
    found: list[tuple[int, int, str]] = []
    for mark in re.finditer(r"(\\(?:boxed|fbox)\s*\{)|\\.|[{}]", text, re.DOTALL):
        if mark[1] or mark[0] == "{":
            pending.append(mark)
        elif mark[0] == "}" and pending:
            opened = pending.pop()
            if opened[1] and (not found or found[-1][0] < opened.start()):
                found.append((opened.start(), mark.end(), text[opened.end() : mark.start()].strip()))
    bare = [] if found else [(box.start(), box.end(), box[1].rstrip(".,;:!?")) for box in _BARE_BOX.finditer(text)]
    return found or [box for box in bare if len(box[2]) == 1 or re.search(r"\d|\\", box[2])]


def plain(text: str, *, fonts: bool) -> str:
    """Replace special forms of characters by plain characters. Remove LaTeX's font commands unless ``fonts``."""
    text = re.sub(r"(?<=\d) ?(?=[¼-¾⅐-⅞])", " ", text)
    text = _FORMS.sub(lambda form: unicodedata.normalize("NFKC", form[0]), text).translate(_MARKS)
    for _ in range(0 if fonts else 3):
        text = re.sub(rf"{FONT}\{{([^{{}}]*)\}}", r"\1", text)
    return re.sub(r"</?(?:b|strong|em|i|u|p|span|code|mark)>", "", text)
