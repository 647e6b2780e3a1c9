"""The README, docs/ and the descriptions of the environment agree with each other, the configuration and the code."""

import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from analysis import page
from analysis.published import load
from gmr.config import Config
from harness.benchmarks.catalogue import entry
from harness.files import ROOT
from harness.runner.config import methods
from harness.runner.layout import POOL, Cell
from harness.runner.preset import resolve

METHODS = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
LEDGER = (ROOT / "docs" / "deviations.md").read_text(encoding="utf-8")
ENTRY = re.compile(r"\bD-[A-Z]+-\d+\b")
HEADINGS = re.findall(r"^### (D-[A-Z]+-\d+) (.+)$", LEDGER, re.MULTILINE)
PARTS = ("baselines", "config", "docs", "gmr", "harness", "analysis", "tests", "cli")


def test_the_router_it_shows_is_the_one_that_a_command_writes() -> None:
    program = re.findall(r"```python\n(.*?)```", (ROOT / "docs/adding.md").read_text(encoding="utf-8"), re.DOTALL)[0]
    assert program in (ROOT / "baselines/cheap/logistic_router.py").read_text(encoding="utf-8")


def test_it_says_how_many_test_questions_real_models_answered_by_method_and_benchmark() -> None:
    tables = [pd.read_parquet(path) for path in (ROOT / "evidence").glob("*/outcomes.parquet")]
    answered = pd.concat(tables).query("split == 'test'").groupby(["method", "benchmark"])["item_id"].nunique()
    run = resolve("paper")
    rows: dict[tuple[str, ...], list[str]] = {}
    for method in run.methods:
        counts = tuple(str(answered.get((method, benchmark), "–")) for benchmark in run.benchmarks)
        rows.setdefault(counts, []).append(methods()[method].title)
    titles = [entry(benchmark).title for benchmark in run.benchmarks]
    lines = [("real replies, n", *titles), ("---",) * (1 + len(titles))]
    lines += [(", ".join(names), *counts) for counts, names in rows.items()]
    assert "\n".join(f"| {' | '.join(line)} |" for line in lines) in (ROOT / "README.md").read_text()


def test_self_consistency_at_the_cost_of_another_method_is_an_entry(tmp_path: Path) -> None:
    (tmp_path / "methods.yaml").write_text(re.findall(r"```yaml\n(.*?)```", METHODS, re.DOTALL)[-1])
    run = resolve("smoke", {"extra": str(tmp_path / "methods.yaml")})
    matched = run.cell(Cell(run.methods[-1], "gsm_hard", POOL, 0)).matched
    assert matched is not None
    assert (run.methods[-1], matched.method, matched.backbone) == ("consistency_masrouter", "masrouter", POOL)


def test_the_page_on_gmr_lists_every_setting_and_no_other() -> None:
    section = METHODS.split("\n### Settings\n")[1].split("\n### ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("|")]
    assert {word for cell in cells for word in re.findall(r"`([\w.]+)`", cell)} == set(Config.model_fields)


def test_the_entries_it_suggests_are_valid_and_new() -> None:
    base = methods()["gmr"]
    for key, variant in yaml.safe_load(re.findall(r"```yaml\n(.*?)```", METHODS, re.DOTALL)[0]).items():
        assert key not in methods()
        assert variant["extends"] == base.key
        assert Config(**{**base.config, **variant["config"]}) != Config(**base.config)


def test_every_citation_has_an_entry() -> None:
    known = {id_ for id_, _ in HEADINGS}
    sources = [
        path for part in PARTS for path in (ROOT / part).rglob("*") if path.suffix in {".py", ".yaml", ".md", ".smk"}
    ]
    cited = {(str(path.relative_to(ROOT)), id_) for path in sources for id_ in ENTRY.findall(path.read_text())}
    assert {(path, id_) for path, id_ in cited if id_ not in known} == set()


def test_a_page_lists_the_entries_of_its_methods_and_benchmarks() -> None:
    def listed(titles: list[str]) -> set[str]:
        runs: Any = [
            SimpleNamespace(method_title=title, benchmark=key) for title in titles for key in load().benchmarks
        ]
        return {entry.split()[0] for entries in page._deviations(runs).values() for entry in entries}

    every = {id_ for id_, _ in HEADINGS}
    assert listed([method.title for method in methods().values()]) == every
    of_gmr = {id_ for id_ in every if id_.startswith("D-GMR-")}
    assert of_gmr <= listed(["Full-History"])
    assert not of_gmr & listed(["MASRouter"])


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_conda_environment_is_what_pip_pins() -> None:
    """One Python is in the environment, in the container, and among those that CI and the package name."""
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    python, *rest = environment["dependencies"]
    assert rest == ["pip", {"pip": ["-c constraints.txt", "-e .[dev]"]}]
    name, version = python.split("=")
    assert name == "python"
    assert f"FROM python:{version}." in (ROOT / "Dockerfile").read_text()
    assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == PROJECT["version"]
    assert all(
        line.rpartition(" ")[2] in SpecifierSet(PROJECT["requires-python"])
        for line in PROJECT["classifiers"]
        if line.startswith("Programming Language")
    )
    rules = "".join(path.read_text() for path in (ROOT / "workflow" / "rules").glob("*.smk"))
    # Snakemake copies the files that rules name to where no checkout is.
    assert set(re.findall(r"conda:\n +\"(.*)\"", rules)) == {"../envs/jobs.yml"}
    assert "pip" not in yaml.safe_load((ROOT / "workflow" / "envs" / "jobs.yml").read_text())["dependencies"]


def test_constraints_pin_and_satisfy_every_dependency() -> None:
    lines = [line.split("#")[0].strip() for line in (ROOT / "constraints.txt").read_text().splitlines()]
    pins = {canonicalize_name(name): Version(version) for name, version in (one.split("==") for one in lines if one)}
    assert len(pins) == len([one for one in lines if one])
    extras = PROJECT["optional-dependencies"]
    declared = [*PROJECT["dependencies"], *(one for needs in extras.values() for one in needs)]
    for requirement in map(Requirement, declared):
        if requirement.name == PROJECT["name"]:
            assert requirement.extras <= set(extras)
        else:
            assert pins[canonicalize_name(requirement.name)] in requirement.specifier, requirement
