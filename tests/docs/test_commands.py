"""Every command in README and docs is valid in this checkout, and every link leads somewhere."""

import importlib.util
import re
import shlex
import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

from harness import files
from harness.files import ROOT
from harness.runner import config
from harness.runner.preset import resolve
from tests.docs.test_adding import add, fragments, suite
from tests.planning import planner

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TARGETS = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
PROGRAMS = ("gmr", "make", "pytest", "python", "snakemake", "bash", "sbatch")
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Command(NamedTuple):
    page: str
    words: tuple[str, ...]


def shown(page: Path) -> Iterator[Command]:
    """Yield the commands in blocks of shell, without comments, assignments and redirections."""
    variables: dict[str, str] = {}
    for language, block in FENCE.findall(page.read_text(encoding="utf-8")):
        for line in block.replace("\\\n", " ").splitlines() if language in ("", "sh", "console") else ():
            for part in re.split(r"&&|[|;<>]", line.removeprefix("$ ")):
                if assigned := re.fullmatch(r"(\w+)=(\S+)", part.strip()):
                    variables["$" + assigned[1]] = assigned[2]
                text = re.sub(r"^(\w+=\S* +)*(\S*bin/)?", "", part.strip())
                if text.startswith(PROGRAMS):
                    text = re.sub(r"\$\w+", lambda name: variables.get(name[0], "."), text)
                    yield Command(page.name, tuple(shlex.split(text, comments=True)))


def everything(*programs: str) -> list[Command]:
    return [command for page in PAGES for command in shown(page) if command.words[0] in programs]


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Configure what the pages add, but for methods, whose modules this process cannot import."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    for path, new in fragments("A backbone"):
        add(tmp_path, path, new)
    monkeypatch.setattr(config, "FOLDER", tmp_path / "config")
    monkeypatch.setattr(config.catalogue, "CONFIG", tmp_path / "config" / "benchmarks.yaml")
    config.methods.cache_clear()
    yield tmp_path / "config"
    config.methods.cache_clear()


def parse(words: Sequence[str]) -> dict[str, Any]:
    """Return the parameters of a ``gmr`` command, read by its own parser."""
    from cli.main import app

    group: Any = typer.main.get_command(app)
    context = group.make_context("gmr", list(words))
    name, command, rest = group.resolve_command(context, [*context._protected_args, *context.args])
    return dict(command.make_context(name, rest, parent=context).params)


def test_commands_of_the_suite_are_parsed_and_name_what_exists(known: Path) -> None:
    commands = everything("gmr")
    assert len(commands) > 20
    for command in commands:
        given = parse(command.words[1:])
        overrides = dict(text.split("=", 1) for text in given.get("overrides") or ())
        if name := given.get("name"):
            resolve(name, {key: files.yaml_value(value) for key, value in overrides.items()})
        benchmarks = given.get("benchmark") or ()
        named = {benchmarks} if isinstance(benchmarks, str) else set(benchmarks)
        assert named <= set(files.read_yaml(known / "benchmarks.yaml")), command


def test_targets_modules_and_scripts_exist() -> None:
    asked = {word for command in everything("make") for word in command.words[1:] if "=" not in word}
    assert {"table", "test"} <= asked <= TARGETS
    for command in everything("python", "bash", "sbatch", "pytest"):
        if command.words[1] == "-m" and command.words[0] == "python":
            assert importlib.util.find_spec(command.words[2]), command
        named = [word for word in command.words[1:] if word.startswith(("tests", "serving"))]
        assert [path for path in named if not (ROOT / path.partition("::")[0]).exists()] == [], command


def parted(command: Command) -> tuple[list[str], tuple[str, ...]]:
    """Return what Snakemake's own parser takes for targets, and the other words."""
    from snakemake.cli import parse_args

    # A number, so that no word is both a target and the value of this option.
    pairs = zip(command.words, command.words[1:], strict=False)
    words = ["1" if (before, word) == ("--cores", "all") else word for before, word in pairs]
    targets = list(parse_args(words)[1].targets)
    return targets, tuple(word for word in words if word not in targets and word != "-n")


@pytest.mark.nightly
def test_runs_can_be_planned(tmp_path: Path) -> None:
    """One plan for all commands that differ in their targets only, in a suite with all that the pages add to it."""
    folder = suite(tmp_path / "suite", "A backbone", "A benchmark")
    (folder / "evidence").symlink_to(ROOT / "evidence")
    groups: defaultdict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    for command in everything("snakemake"):
        if "--unlock" not in command.words:
            targets, options = parted(command)
            groups[options] |= dict.fromkeys(targets or ["default"], str(command))
    with planner(folder) as plan:
        outcomes = plan([[*targets, *options] for options, targets in groups.items()])
    texts = [f"{list(where.values())}: {text}" for where, (_, text) in zip(groups.values(), outcomes, strict=True)]
    assert "\n".join(text for text, (status, _) in zip(texts, outcomes, strict=True) if status) == ""


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, *sorted(ROOT.glob("evidence/**/README.md"))], ids=lambda page: page.stem)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for link, anchor in re.findall(r"\]\((?!\w+:)([^)#\s]*)#?([^)\s]*)\)", text):
        target = page.parent / link if link else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), f"{link}#{anchor}"
