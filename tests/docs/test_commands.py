"""Every command that README and docs show is one that this checkout understands."""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import typer

from harness import files
from harness.files import ROOT
from harness.runner import config
from tests.docs import additions
from tests.docs.commands import PAGES, Command, shown
from tests.planning import plans

SHOWN = [command for page in PAGES for command in shown(page)]
TARGETS = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
# No bundle was unpacked here; tests/workflow/test_bundle.py plans in one.
NOT_PLANNED = ("--unlock", "--directory")


def everything(*programs: str) -> list[Command]:
    return [command for command in SHOWN if command.words[0] in programs]


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the suite in which everything stands that the pages add to it."""
    return additions.suite(tmp_path_factory.mktemp("docs") / "suite", "A backbone", "A benchmark")


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The names there are when the pages have added theirs; methods apart, whose modules this process cannot import."""
    folder = tmp_path_factory.mktemp("names")
    shutil.copytree(ROOT / "config", folder / "config")
    for path, new in (*additions.fragments("A backbone"), *additions.fragments("A benchmark")):
        additions.add(folder, path, new)
    return folder


def parse(words: Sequence[str]) -> dict[str, Any]:
    """The parameters of a ``gmr`` command, read by its own parser; AssertionError where it does not exist."""
    import workflow.cli
    from workflow.app import app

    assert workflow.cli.COMMANDS
    group: Any = typer.main.get_command(app)
    try:
        context = group.make_context("gmr", list(words))
        name, command, rest = group.resolve_command(context, [*context._protected_args, *context.args])
        assert command, name
        return dict(command.make_context(name, rest, parent=context).params)
    except typer.Exit:
        return {}  # --help was asked for


def check_names(given: dict[str, Any], root: Path) -> None:
    """Names in options are names of what exists."""
    # What begins with @ is the file of a run.
    overrides = dict(text.split("=", 1) for text in given.get("overrides") or () if not text.startswith("@"))
    if preset := given.get("preset"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(config, "FOLDER", root / "config")
            patch.setattr(config.registry, "CONFIG", root / "config" / "benchmarks.yaml")
            config.methods.cache_clear()
            config.preset(preset, {key: files.yaml_value(value) for key, value in overrides.items()})
        config.methods.cache_clear()
    benchmarks = given.get("benchmark") or ()
    known = set(files.read_yaml(root / "config" / "benchmarks.yaml"))
    assert {benchmarks} if isinstance(benchmarks, str) else set(benchmarks) <= known


def test_commands_of_the_suite_are_parsed(known: Path) -> None:
    commands = everything("gmr")
    assert len(commands) > 20
    for command in commands:
        check_names(parse(command.words[1:]), known)


def test_targets_of_make_exist() -> None:
    asked = {word for command in everything("make") for word in command.words[1:] if "=" not in word}
    assert {"table", "test"} <= asked <= TARGETS


def test_modules_and_tests_exist() -> None:
    for command in everything("python"):
        if command.words[1] == "-m":
            assert importlib.util.find_spec(command.words[2]), command
        else:
            assert (ROOT / command.words[1]).exists() or command.words[1] == "weekdays_questions.py", command
    for command in everything("bash", "sbatch"):
        named = [word for word in command.words[1:] if word.endswith(".sh")]
        assert named, command
        assert [path for path in named if not (ROOT / path).exists()] == [], command
    for command in everything("pytest"):
        paths = [word for word in command.words[1:] if word.startswith("tests")]
        assert paths, command
        assert [path for path in paths if not (ROOT / path.partition("::")[0]).exists()] == [], command


def plannable(words: Sequence[str]) -> bool:
    return words[1:] != () and not any(stop in word for stop in NOT_PLANNED for word in words)


def parted(command: Command) -> tuple[list[str], tuple[str, ...]]:
    """What Snakemake's own parser takes for targets, and the other words."""
    from snakemake.cli import parse_args

    # A number, so that no word is both a target and the value of this option.
    pairs = zip(command.words, command.words[1:], strict=False)
    words = ["1" if (before, word) == ("--cores", "all") else word for before, word in pairs]
    targets = list(parse_args(words)[1].targets)
    return targets, tuple(word for word in words if word not in targets and word != "-n")


@pytest.mark.nightly
def test_runs_can_be_planned(suite: Path) -> None:
    """One plan for all commands that differ in their targets only."""
    groups: defaultdict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    for command in everything("snakemake"):
        if plannable(command.words):
            targets, options = parted(command)
            groups[options] |= dict.fromkeys(targets or ["default"], str(command))
    nonsense = [["reports/main_tabel.tex"], ["all", "--config", "presets=smoke"], ["all", "--cors", "2"]]
    found = plans(suite, [*([*targets, *options] for options, targets in groups.items()), *nonsense])
    said = [f"{list(where.values())}: {text}" for where, (_, text) in zip(groups.values(), found, strict=False)]
    assert [text for text, (status, _) in zip(said, found, strict=False) if status] == []
    assert all(status for status, _ in found[-len(nonsense) :])
