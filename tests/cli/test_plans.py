"""The jobs planned for a target, and the settings of profiles and rules."""

import re
from collections import Counter
from collections.abc import Mapping

import pytest
import yaml

from analysis.registry import all_cells, artefacts
from harness.files import ROOT
from harness.runner import layout
from harness.runner.preset import resolve
from harness.simulator.endpoint import CODE
from tests.planning import planner

EMBEDDED = resolve("embedded")
# Targets and settings, and the jobs that run for them.
PLANS: Mapping[str, tuple[str, str]] = {
    "main table": ("reports/main_table.tex", "data 5, cell 75, learned_cell 30, table 1, link 1"),
    "real main table": ("reports/paper/main_table.tex", "data 5, servers 1, cell 75, learned_cell 90, table 1"),
    "one ablation": (
        "reports/ablation/no_write_gate.tex --config preset=smoke",
        "data 2, learned_cell 4, table 1, link 1",
    ),
    "a cell that meets the cost of another": (
        "results/smoke/cells/self_consistency/gsm_hard/pool/seed0/run.json",
        "data 2, learned_cell 2",
    ),
    "settings that the default preset would refuse": (
        "reports/recorded/main_table.md --config endpoints=[recorded,served]",
        "data 4, servers 1, cell 16, learned_cell 8, table 1",
    ),
}
REFUSED: Mapping[str, str] = {
    "Not a directory: 'results'": "--directory broken reports/smoke/main_table.tex",
    "depth cannot be made of preset smoke, which has no benchmark it is made from": "reports/smoke/depth.png",
    "No rule to produce reports/smokee/main_table.tex; did you mean 'reports/smoke/": "reports/smokee/main_table.tex",
    "unknown preset 'xyz'; known: cpu_server, embedded, ": "--config preset=xyz",
    """preset "['smoke']": String should match pattern""": "--config preset=[smoke]",
}


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """Status and output of every plan, made by one process outside of a checkout."""
    commands = {**{name: words for name, (words, _) in PLANS.items()}, "embedded": "", **REFUSED}
    folder = tmp_path_factory.mktemp("plans")
    (folder / "broken").mkdir()
    (folder / "broken" / "results").touch()
    with planner(folder) as plan:
        planned = plan([["-s", str(ROOT / "Snakefile"), *words.split()] for words in commands.values()])
    return dict(zip(commands, planned, strict=True))


def jobs(outcome: tuple[int, str]) -> dict[str, int]:
    status, text = outcome
    assert status == 0, text
    table = text.split("Job stats:")[1].split("\n\n")[0]
    numbers = {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", table, re.MULTILINE)}
    assert numbers.pop("total") == sum(numbers.values())
    return numbers


@pytest.mark.parametrize("name", PLANS)
def test_a_target_runs_what_it_is_made_from_and_nothing_else(said: dict[str, tuple[int, str]], name: str) -> None:
    expected = dict(part.split() for part in PLANS[name][1].split(", "))
    assert jobs(said[name]) == {rule: int(number) for rule, number in expected.items()}


def test_everything_is_every_artefact_with_the_claims(said: dict[str, tuple[int, str]]) -> None:
    numbers = jobs(said["embedded"])
    kinds = Counter(
        artefact.kind for artefact in artefacts().values() if not (artefact.optional or artefact.lacking(EMBEDDED))
    )
    assert (numbers["table"], numbers["figure"]) == (kinds["table"], kinds["figure"])
    assert numbers["report"] == 1
    distinct = {layout.cell("embedded", cell) for cell in {*all_cells(EMBEDDED), *EMBEDDED.cells()}}
    assert numbers["cell"] + numbers["learned_cell"] == len(distinct)


@pytest.mark.parametrize("message", REFUSED)
def test_a_mistake_is_one_line(said: dict[str, tuple[int, str]], message: str) -> None:
    status, text = said[message]
    *_, last = text.splitlines()
    assert (bool(status), last.startswith("error: "), "Traceback" in text) == (True, True, False)
    assert message in last


# Imports of the simulator that change no reply: requests, how many run at once, declarations, paths, errors.
NO_SOURCE = {"concurrency", "errors", "files", "fingerprint", "llm", "runner"}


def test_what_a_simulated_reply_is_made_of_makes_a_new_revision() -> None:
    text = "".join(path.read_text() for path in (ROOT / "harness" / "simulator").glob("*.py"))
    made_of = {*re.findall(r"from harness\.(\w+)", text)} - NO_SOURCE
    assert {"simulator", "benchmarks", "agents"} <= made_of
    for part in made_of:
        assert {f"harness/{part}", f"harness/{part}.py"} & {*CODE}, part


def test_profiles_name_options_and_rules_that_exist() -> None:
    from snakemake.cli import get_argument_parser

    pytest.importorskip("snakemake_executor_plugin_slurm", reason="the extra `slurm` is not installed")
    rules = "\n".join(path.read_text() for path in (ROOT / "workflow" / "rules").glob("*.smk"))
    options = get_argument_parser()._option_string_actions
    for path in (ROOT / "profiles").glob("*/config.yaml"):
        profile = yaml.safe_load(path.read_text())
        assert [name for name in profile if f"--{name}" not in options] == []
        named = {rule for setting in ("set-threads", "set-resources") for rule in profile.get(setting, {})}
        assert all(f"rule {rule}:" in rules for rule in named)
