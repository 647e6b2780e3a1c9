"""Every command that README and docs show is one that this checkout understands."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import typer

from harness import files
from harness.files import ROOT
from harness.runner import config
from tests.docs import additions
from tests.docs.commands import FOREIGN, OURS, PAGES, Command, mentioned, shown

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
    folder = additions.suite(tmp_path_factory.mktemp("docs") / "suite")
    additions.add_methods(folder)
    additions.add_backbone(folder)
    additions.add_benchmark(folder)
    return folder


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


@pytest.mark.parametrize("page", SHOWN)
def test_commands_of_the_suite_are_parsed(page: str, known: Path) -> None:
    for command in SHOWN[page]:
        if command.words[0] == "gmr":
            check_names(parse(command.words[1:]), known)


@pytest.mark.parametrize("page", MENTIONED)
def test_commands_in_a_sentence_have_no_option_that_does_not_exist(page: str) -> None:
    for command in MENTIONED[page]:
        if command.words[0] == "gmr":
            parse(command.words[1:], whole=False)


@pytest.mark.parametrize(
    "words",
    ["vaildate", "validate --colour", "cell --preset smoke", "report --preset", "show gmr"],
)
def test_the_parser_refuses_what_is_wrong(words: str) -> None:
    with pytest.raises(Exception, match=r"(?i)no such|missing|requires|option"):
        parse(words.split())


def test_half_a_command_is_refused_for_what_it_has() -> None:
    parse(["report"], whole=False)
    with pytest.raises(Exception, match="No such"):
        parse(["reports"], whole=False)


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


def test_no_command_hides_in_an_indented_block() -> None:
    hidden = re.compile(rf"^    ({'|'.join(OURS)}) ", re.MULTILINE)
    assert [page.name for page in PAGES if hidden.search(page.read_text())] == []


def plannable(words: Sequence[str]) -> bool:
    return words[1:] != () and not any(stop in word for stop in NOT_PLANNED for word in words)


# A minute of one processor, which a busy machine can stretch.
@pytest.mark.timeout(900)
def test_runs_can_be_planned(suite: Path) -> None:
    found = {command.words[1:]: str(command) for command in everything("snakemake") if plannable(command.words)}
    nonsense = [("reports/main_tabel.tex",), ("all", "--config", "presets=smoke"), ("all", "--cors", "2")]
    said = planned(suite, [*found, *nonsense])
    assert {where: word for where, word in zip(found.values(), said, strict=False) if word} == {}
    assert all(said[-len(nonsense) :])
    assert "main_tabel" in str(said[-3])


def planned(folder: Path, commands: Sequence[Sequence[str]]) -> list[str | None]:
    """What Snakemake says of each run that it cannot plan."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.docs.planning"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])},
        input=json.dumps(list(commands)),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(ended.stdout)
