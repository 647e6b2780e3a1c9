"""README and docs: commands are valid, links lead somewhere, and what docs/adding.md adds runs in a copy."""

import importlib.util
import json
import re
import shlex
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pyarrow.parquet as pq
import pytest
import typer
import yaml

from harness import files
from harness.files import ROOT
from harness.runner import config
from harness.runner.preset import resolve
from tests.command import program
from tests.planning import copied_suite, planner

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


# A copy of the suite with the additions of docs/adding.md, and what runs in it, with code taken from that page.


def section(name: str) -> str:
    text = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")
    return text.split(f"\n## {name}\n")[1].split("\n## ")[0]


def programs(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", section(name), re.DOTALL)


def fragments(name: str) -> list[tuple[str, dict[str, Any]]]:
    found = re.findall(r"```yaml\n# (\S+/\S+)\n(.*?)```", section(name), re.DOTALL)
    return [(path, yaml.safe_load(text)) for path, text in found]


def add(folder: Path, path: str, new: Mapping[str, Any]) -> None:
    """Merge a YAML fragment into a file of entries, which is created if missing."""
    file = folder / path
    old = yaml.safe_load(file.read_text()) if file.exists() else {}
    extended = {key: {**old.get(key, {}), **value} for key, value in new.items()}
    file.write_text(yaml.safe_dump({**old, **extended}, sort_keys=False))


def suite(folder: Path, *sections: str) -> Path:
    """Copy the suite, and add two methods and the additions of the page's sections."""
    copied_suite(folder)
    (folder / "my").mkdir()
    # What `gmr new method` makes, and the preset that the page on models of one's own shows.
    for name, template in (("my_router", "logistic_router.py"), ("drawn", "random_router.py")):
        shutil.copy(ROOT / "baselines" / "cheap" / template, folder / "my" / f"{name}.py")
        entry = {"module": name, "title": name, "rows": "pool", "trained": name == "my_router"}
        add(folder, "my/methods.yaml", {name: entry})
    page = (ROOT / "docs" / "own-models.md").read_text(encoding="utf-8")
    (folder / "config" / "presets" / "mine.yaml").write_text(page.split("```yaml\n")[1].split("```")[0])
    for path, new in (one for name in sections for one in fragments(name)):
        add(folder, path, new)
    (folder / "my" / "weekdays.py").write_text(programs("A benchmark")[1])
    return folder


BACKBONE = "qwen-2.5-7B"
# Several commands in one process, which loads everything once.
_COMMANDS = """
import json, sys
from cli import main
for words in json.loads(sys.argv[1]):
    main.app(words, standalone_mode=False)
"""


def commands(preset: str, *commands: str, **settings: str) -> list[list[str]]:
    overrides = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    return [[*command.split(), "--preset", preset, *overrides] for command in commands]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, graphs: Path) -> Path:
    """Run a method on the backbone, one on the benchmark, and the page's program, in one process."""
    folder = suite(tmp_path_factory.mktemp("adding") / "suite", "A backbone", "A benchmark")
    few = {"limit": "{test: 6}", "benchmarks": "[gsm_hard]", "methods": "[single]", "backbones": f"[{BACKBONE}]"}
    days = {"limit": "{test: 10}", "benchmarks": "[weekdays]", "methods": "[cot]", "backbones": "[qwen-2.5-14B]"}
    single = f"cell --method single --benchmark gsm_hard --backbone {BACKBONE}"
    cot = "cell --method cot --benchmark weekdays --backbone qwen-2.5-14B"
    words = [
        *commands("smoke", "data --benchmark gsm_hard", single, "report main_table", **few),
        *commands("embedded", "data --benchmark weekdays", cot, "report main_table", extra="my/methods.yaml", **days),
    ]
    start = "\n".join([programs("A benchmark")[0], _COMMANDS, programs("As a library")[0]])
    environment = {"PYTHONPATH": str(folder), "GMR_CACHE_DIR": str(graphs)}
    program(sys.executable, "-c", start, json.dumps(words), folder=folder, **environment)
    return folder


def test_a_backbone_is_an_entry_and_what_is_assumed_of_it(ran: Path) -> None:
    facts = orjson.loads((ran / f"results/smoke/cells/single/gsm_hard/{BACKBONE}/seed0/run.json").read_bytes())
    assert list(facts["backbones"]) == [BACKBONE]
    table = (ran / "reports/smoke/main_table.md").read_text()
    assert any("Single LLM" in line for line in table.splitlines() if BACKBONE in line)


def test_a_benchmark_goes_from_its_file_to_its_column(ran: Path) -> None:
    cell = ran / "results/embedded/cells/cot/weekdays/qwen-2.5-14B/seed0"
    items = pq.read_table(cell / "items.parquet").to_pylist()
    assert len(items) == 10
    assert {item["status"] for item in items} == {"graded"}
    table = (ran / "reports/embedded/main_table.md").read_text()
    assert "Weekdays Sim." in table
    row = next(line for line in table.splitlines() if line.startswith("| CoT"))
    assert f"{10 * sum(one['correct'] for one in items):.2f}" in row


def test_a_program_trains_and_tests_a_cell_without_a_workflow(ran: Path) -> None:
    assert pq.read_metadata(ran / "results/smoke/cells/gmr/gsm_hard/pool/seed0/items.parquet").num_rows == 4
