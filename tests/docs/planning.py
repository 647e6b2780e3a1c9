"""Plans runs of Snakemake without running them: one process that has loaded it, and a child of it for each plan.

Reads a JSON list of argument lists from standard input, in a folder that runs as the checkout does, and prints a JSON
list of what each said that could not be planned, ``null`` for the others.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import snakemake.cli

# What the Snakefile imports, loaded once for all children.
import workflow.reports  # noqa: F401

_AT_ONCE = 2


def plan(words: Sequence[str], said: Path) -> int:
    """Begin a plan in a child; what it says goes to a file.

    Returns:
        The child's process id.
    """
    if child := os.fork():
        return child
    with said.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        sys.argv = ["snakemake", *words]
        try:
            snakemake.cli.main(list(words))
            status = 0
        except SystemExit as ended:
            # sys.exit takes a number, or a line that is to be printed.
            status = ended.code if isinstance(ended.code, int) else 1
            file.write(ended.code if isinstance(ended.code, str) else "")
        except BaseException as error:
            status = 1
            file.write(repr(error))
        file.flush()
        os._exit(status)


def plans(commands: Sequence[Sequence[str]], folder: Path) -> list[str | None]:
    """What each said that failed."""
    failed: dict[int, str] = {}
    running: dict[int, int] = {}
    for number, words in enumerate(commands):
        running[plan([*words, "--dry-run", "--quiet", "all", "--nolock"], folder / str(number))] = number
        while len(running) == _AT_ONCE or (running and number == len(commands) - 1):
            child, status = os.wait()
            ended = running.pop(child)
            if status:
                failed[ended] = (folder / str(ended)).read_text() or f"status {status}, and no word"
    return [failed.get(number) for number in range(len(commands))]


def gather(commands: Sequence[Sequence[str]], folder: Path) -> list[str | None]:
    """The same, with one plan for all commands that differ in their targets only; where it fails, one for each."""
    groups: defaultdict[tuple[str, ...], dict[int, list[str]]] = defaultdict(dict)
    for number, words in enumerate(commands):
        targets, options = _parted(words)
        groups[options][number] = targets or ["default"]
    wholes = [[*dict.fromkeys(chain(*members.values())), *options] for options, members in groups.items()]
    failed: dict[int, str | None] = {}
    suspects: list[int] = []
    for members, word in zip(groups.values(), plans(wholes, folder), strict=True):
        if word and len(members) > 1:
            suspects += members
        else:
            failed |= dict.fromkeys(members, word)
    failed |= dict(zip(suspects, plans([commands[number] for number in suspects], folder), strict=True))
    return [failed[number] for number in range(len(commands))]


def _parted(words: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """What Snakemake's own parser takes for targets, and the other words; a command that it refuses has no targets."""
    where = words.index("--cores") + 1 if "--cores" in words else None
    # A number, so that no word is both a target and the value of this option.
    own = ["1" if place == where else word for place, word in enumerate(words) if word != "-n"]
    try:
        targets = list(snakemake.cli.parse_args(own)[1].targets)
    except SystemExit:
        return [], tuple(own)
    return targets, tuple(word for word in own if word not in targets)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        json.dump(gather(json.load(sys.stdin), Path(folder)), sys.stdout)
