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

from analysis import registry
from harness import files
from harness.files import ROOT
from harness.runner import config
from tests.docs import additions
from tests.docs.commands import FOREIGN, OURS, PAGES, Command, mentioned, shown
from tests.planning import plans

SHOWN = {page.name: shown(page) for page in PAGES}
MENTIONED = {page.name: mentioned(page) for page in PAGES}
TARGETS = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
# No bundle was unpacked here; tests/workflow/test_bundle.py plans in one.
NOT_PLANNED = ("--unlock", "--directory")


def everything(*programs: str) -> list[Command]:
    found = [*SHOWN.values(), *MENTIONED.values()]
    return [command for commands in found for command in commands if command.words[0] in programs]


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


def parse(words: Sequence[str], whole: bool = True) -> dict[str, Any]:
    """The parameters of a ``gmr`` command, read by its own parser; of half a command, those that are there."""
    import workflow.cli
    from workflow.app import app

    assert workflow.cli.COMMANDS
    command: Any = typer.main.get_command(app)
    name, rest, context = "gmr", list(words), None
    while True:
        try:
            context = command.make_context(name, rest, parent=context, resilient_parsing=not whole)
        except typer.Exit:
            return {}  # --help was asked for
        rest = [*context._protected_args, *context.args]
        if not hasattr(command, "resolve_command") or not rest:
            assert not rest, f"No such thing: {rest[0]}"
            return dict(context.params)
        found = command.resolve_command(context, rest)
        assert found[1], f"No such command: {rest[0]}"
        name, command, rest = found


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
    for command in (one for commands in SHOWN.values() for one in commands if one.words[0] == "gmr"):
        check_names(parse(command.words[1:]), known)
    for command in (one for commands in MENTIONED.values() for one in commands if one.words[0] == "gmr"):
        parse(command.words[1:], whole=False)


@pytest.mark.parametrize("words", ["vaildate", "validate --colour", "cell --preset smoke", "report --preset"])
def test_the_parser_refuses_what_is_wrong(words: str) -> None:
    with pytest.raises(Exception, match=r"(?i)no such|missing|requires|option"):
        parse(words.split())


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


def test_other_programs_are_known() -> None:
    programs = {command.words[0]: str(command) for commands in SHOWN.values() for command in commands}
    assert {name: where for name, where in programs.items() if name not in (*OURS, *FOREIGN)} == {}


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


def test_targets_of_runs_are_rules_or_files_that_one_makes() -> None:
    text = "".join(path.read_text() for path in (ROOT / "workflow" / "rules").glob("*.smk"))
    rules = {"all", *re.findall(r"^rule (\w+):", text, re.MULTILINE)}
    reports = {"claims", "learning", "learning_curves", "search_history", "index", "inspect", *registry.artefacts()}
    for command in everything("snakemake"):
        for target in parted(command)[0] if plannable(command.words) else ():
            folder, _, name = target.partition("/")
            preset, _, within = name.partition("/")
            named = preset.partition("@")[0] in {*config.preset_names(), "weekdays"}
            key = (within if named else name).rpartition(".")[0] or within
            assert (folder == "reports" and key in reports) or folder == "results" or target in rules, command


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
