r"""When two mathematical answers are the same string: the rule set that MATH was published with.

The rules bring two spellings of one value to one string and go no further: ``0.25`` and ``\frac{1}{4}`` stay
different. That is on purpose, since published accuracies were counted this way. Our one addition is that a percent
sign counts as unwritten with or without its backslash.
"""

from __future__ import annotations

import re

_INTEGER_RATIO = re.compile(r"(-?\d+)/(-?\d+)")
_TOKEN = re.compile(r"\\[a-zA-Z]+|[^\s{}\[\]\\]")


def equivalent(a: str, b: str) -> bool:
    """Whether two answers are equal once normalised."""
    return a == b or normalise(a) == normalise(b)


def normalise(answer: str) -> str:
    """The one spelling that stands for all spellings the rules call equal."""
    text = _without_decoration(answer)
    text = _without_unit(text)
    text = _with_leading_zeros(text)
    text = _without_variable(text)
    text = _with_braced_arguments(text, r"\sqrt", arguments=1)
    text = _with_braced_arguments(text, r"\frac", arguments=2)
    text = re.sub(r"\s+", "", text)
    return _as_fraction(text)


def _without_decoration(text: str) -> str:
    r"""Drop what changes the look and not the value: spacing, sizes, degree, dollar and percent signs."""
    text = text.replace("\n", "").replace(r"\!", "").replace(r"\\", "\\")
    text = text.replace(r"\tfrac", r"\frac").replace(r"\dfrac", r"\frac")
    for mark in (r"\left", r"\right", r"^{\circ}", r"^\circ", r"\$", r"\%", "%"):
        text = text.replace(mark, "")
    return text


def _without_unit(text: str) -> str:
    r"""Cut from ``\text{ `` on: with that blank the text is a unit behind a number, without it the answer itself."""
    return text.split(r"\text{ ", 1)[0]


def _with_leading_zeros(text: str) -> str:
    text = text.replace(" .", " 0.").replace("{.", "{0.")
    return f"0{text}" if text.startswith(".") else text


def _without_variable(text: str) -> str:
    """Keep the right side of ``x = 5``; a longer left side is part of the answer."""
    left, _, right = text.partition("=")
    return right if right and "=" not in right and len(left) <= 2 else text


def _with_braced_arguments(text: str, command: str, arguments: int) -> str:
    r"""Write ``\frac12`` as ``\frac{1}{2}`` and ``\sqrt3`` as ``\sqrt{3}``, at any depth."""
    head, *tails = re.split(re.escape(command) + r"(?![a-zA-Z])", text)
    return head + "".join(command + _braced(tail, arguments) for tail in tails)


def _braced(text: str, arguments: int) -> str:
    """Put braces round the leading single-token arguments; stop where an argument is braced or is no token."""
    done = ""
    for _ in range(arguments):
        rest = text.lstrip()
        token = _TOKEN.match(rest)
        if token is None:
            break
        done, text = f"{done}{{{token.group()}}}", rest[token.end() :]
    return done + text


def _as_fraction(text: str) -> str:
    if text == "0.5":
        return r"\frac{1}{2}"
    ratio = _INTEGER_RATIO.fullmatch(text)
    return rf"\frac{{{ratio[1]}}}{{{ratio[2]}}}" if ratio else text
