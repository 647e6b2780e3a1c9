"""The commands that README and docs show, read as a shell would read them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from harness.files import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

# What stands for a reader's own choice, and what is tried in its place.
PLACEHOLDERS = {
    "<what the selector adds for CPU>": "",
    "TARGET": "reports/main_table.tex",
    "gmr report NAME": "gmr report main_table",
    "studies.NAME": "studies.grim",
    "reports/P/NAME.tex": "reports/smoke/main_table.tex",
    "preset=P ": "preset=smoke ",
    "gmr --log FILE COMMAND": "gmr --log run.log validate",
    "gmr COMMAND": "gmr validate",
    "--preset NAME": "--preset smoke",
    "--preset PRESET": "--preset smoke",
    "--data-dir FOLDER": "--data-dir /data/mirror",
}


_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SHELLS = ("", "sh", "console")
_ASSIGNMENT = re.compile(r"([A-Z_a-z]\w*)=(.*)", re.DOTALL)
OURS = ("gmr", "make", "pytest", "python", "snakemake")


class Command(NamedTuple):
    """One command: where it is shown, and its words, the program first."""

    page: str
    line: int
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {shlex.join(self.words)}"


def shown(page: Path) -> list[Command]:
    """What stands in blocks of shell, in the order of the page."""
    text = page.read_text(encoding="utf-8")
    return [
        Command(page.name, text.count("\n", 0, block.start()) + 2 + number, words)
        for block in _FENCE.finditer(text)
        if block[1] in _SHELLS
        for number, words in _commands(block[2])
    ]


def _commands(block: str) -> list[tuple[int, tuple[str, ...]]]:
    """The commands of a block with their lines in it; none where it is no shell, but a tree, a table or an output."""
    lines = list(enumerate(block.replace("\\\n", "  ").splitlines()))
    prompted = [(number, line[2:]) for number, line in lines if line.startswith("$ ")]
    variables: dict[str, str] = {}
    found = [one for number, line in prompted or lines for one in _split(number, line, variables)]
    known = prompted or any(words[0] in OURS for _, words in found)
    return found if known else []


def _split(number: int, line: str, variables: dict[str, str]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The commands of a line, without what only the shell sees: comments, assignments, redirections."""
    for placeholder, value in PLACEHOLDERS.items():
        line = line.replace(placeholder, value)
    for operator, group in groupby(_words(line), key=lambda word: word in ("&&", "||", "|", ";")):
        words = [] if operator else _redirected(list(group))
        while words and (assigned := _ASSIGNMENT.fullmatch(words[0])):
            variables[assigned[1]] = assigned[2]
            words = words[1:]
        if not words:
            continue
        words = [re.sub(r"\$(\w+)", lambda name: variables.get(name[1], "."), word) for word in words]
        yield number, (words[0].rpartition("bin/")[2], *words[1:])


def _words(line: str) -> list[str]:
    try:
        reader = shlex.shlex(line, posix=True, punctuation_chars=True)
        reader.whitespace_split = True
        return list(reader)
    except ValueError:
        # A quotation that does not end: in a tree or an output it is nothing, in a command it is what a parser refuses.
        return line.split()


def _redirected(words: list[str]) -> list[str]:
    where = [place for place, word in enumerate(words) if word in ("<", ">", ">>")]
    return [word for place, word in enumerate(words) if place not in where and place - 1 not in where]
