"""Executes the commands of the docs that are about the smoke preset, or about no run: what takes at most a minute.

    python -m tests.evidence.docs_commands

They run in a copy of the suite to which all is added that the pages on adding things say, after the main table of
`smoke`. Prints a table of what was executed, how it ended and how long it took; ends with status 1 where one failed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from harness.files import ROOT
from tests.docs import additions
from tests.docs.commands import PAGES, Command, mentioned, shown

# Far above a minute, so that a busy machine fails nothing; what is known to take longer is not begun.
LIMIT_S = 300
FIRST = ("snakemake", "--cores", "2", "reports/smoke/main_table.md")
# About no run, or about any.
ALONE = (
    ("gmr", "--help"),
    ("gmr", "claims", "--published"),
    ("gmr", "grim"),
    ("gmr", "sandbox", "doctor"),
    ("gmr", "sandbox", "proof"),
)
# What ends otherwise by design: the status says what was found.
ANSWERS = {"doctor": (0, 1)}
LONG = {
    "simulate": "a server, which runs until it is stopped",
    "all": "every artefact: nine minutes",
    "--data": "real questions",
}


class Outcome(NamedTuple):
    """What became of one command."""

    command: Command
    said: str
    seconds: float

    @property
    def failed(self) -> bool:
        return self.said.startswith("status")


def about_smoke(command: Command) -> bool:
    """Whether a command can be given here, the main table of ``smoke`` being there and no server."""
    words = command.words
    ours = words[0] in ("gmr", "snakemake")
    smoke = "--preset smoke" in " ".join(words) or any("reports/smoke/" in word for word in words)
    # The table is a file that the reader is to bring.
    return ours and "table.csv" not in words and (smoke or any(words[: len(one)] == one for one in ALONE))


def executed(command: Command, folder: Path) -> Outcome:
    """Run one command, with a minute for it."""
    reason = next(
        (reason for word, reason in LONG.items() if word in command.words[1:4] and command.words[0] == "gmr"), None
    )
    if reason:
        return Outcome(command, f"not executed: {reason}", 0)
    program, *rest = command.words
    module = {"gmr": "workflow", "snakemake": "snakemake"}[program]
    begun = time.monotonic()
    try:
        ended = subprocess.run(
            [sys.executable, "-m", module, *rest],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder)},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Outcome(command, f"longer than {LIMIT_S} s", LIMIT_S)
    allowed = next((found for word, found in ANSWERS.items() if word in rest), (0,))
    said = "as it should" if ended.returncode in allowed else f"status {ended.returncode}: {ended.stderr[-300:]}"
    return Outcome(command, said, time.monotonic() - begun)


def commands() -> list[Command]:
    """Every command once; those that set something else than the preset says come last, for they make other results."""
    found = [command for page in PAGES for command in (*shown(page), *mentioned(page)) if about_smoke(command)]
    once = {command.words: command for command in found}.values()
    return sorted(once, key=lambda command: any(word in ("--set", "--config") for word in command.words))


def main() -> int:
    with tempfile.TemporaryDirectory() as place:
        folder = additions.suite(Path(place) / "suite")
        additions.add_methods(folder)
        additions.add_backbone(folder)
        subprocess.run(
            [sys.executable, "-m", *FIRST],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder)},
            check=True,
        )
        outcomes = []
        for command in commands():
            outcomes.append(executed(command, folder))
            print(f"{outcomes[-1].seconds:6.1f} s  {command}\n          {outcomes[-1].said}", flush=True)
    failed = sum(outcome.failed for outcome in outcomes)
    print(f"{len(outcomes)} commands of {ROOT.name}, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
