"""The page on the sandbox says what the code does, and what it shows is what the commands print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from harness.files import ROOT
from harness.sandbox import Limits, Outcome
from harness.sandbox.jail.channel import LONGEST_ORDER
from harness.sandbox.levels import LEVELS, best_level
from harness.sandbox.orders import BOX_BYTES, BOX_ENTRIES, CHECKS_USER, PROGRAM_USER

PAGE = (ROOT / "docs" / "sandbox.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```\n(\$ .*?)```", PAGE, re.DOTALL)


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its head."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def words(cells: list[str]) -> list[str]:
    return [word for cell in cells for word in re.findall(r"`([\w/-]+)`", cell)]


def test_every_level_is_there_from_the_strongest_to_the_weakest() -> None:
    assert words([row[0] for row in rows("Levels")]) == list(LEVELS)


def test_every_outcome_is_there() -> None:
    assert sorted(words([row[0] for row in rows("Outcomes")])) == sorted(Outcome)


def test_limits_are_the_usual_ones() -> None:
    stated = {row[0]: row[1] for row in rows("Limits")}
    usual = Limits()
    assert stated == {
        "processor time": f"{usual.cpu_s} s",
        "time by the clock": f"{usual.wall_s:g} s",
        "memory": f"{usual.memory_mib} MiB",
        "output": f"{usual.output_kib} KiB",
        "one file": f"{usual.file_mib} MiB",
        "all files": f"{BOX_BYTES >> 20} MiB, {BOX_ENTRIES} files and folders",
        "open files": str(usual.open_files),
        "threads": str(usual.threads),
        "processes": "none beside its own",
        "source": f"{LONGEST_ORDER >> 20} MiB",
    }
    assert f"programs run as user {PROGRAM_USER} and checks as user {CHECKS_USER}" in PAGE


def test_programs_end_as_shown(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    place = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    executed = 0
    for block in BLOCKS:
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            if command.startswith("cat "):
                (tmp_path / command.removeprefix("cat ")).write_text(shown)
            elif "gmr sandbox run" in command:
                done = subprocess.run(command, shell=True, cwd=tmp_path, env=place, capture_output=True, text=True)  # noqa: S602
                printed = done.stdout.replace(f"level     {best_level()}\n", "level     full\n")
                assert printed.replace(f'"level": "{best_level()}"', '"level": "full"') == shown, done.stderr
                executed += 1
    assert executed == 3
