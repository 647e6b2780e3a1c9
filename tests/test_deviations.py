"""Every cited deviation exists, and the page of a run lists those of its methods and benchmarks."""

import re
from types import SimpleNamespace
from typing import Any

from analysis import page
from analysis.published import load
from harness.files import ROOT
from harness.runner import config

LEDGER = (ROOT / "docs" / "deviations.md").read_text(encoding="utf-8")
ENTRY = re.compile(r"\bD-[A-Z]+-\d+\b")
HEADINGS = re.findall(r"^### (D-[A-Z]+-\d+) (.+)$", LEDGER, re.MULTILINE)
PARTS = ("baselines", "config", "docs", "gmr", "harness", "analysis", "tests", "cli")


def test_every_citation_has_an_entry() -> None:
    known = {id_ for id_, _ in HEADINGS}
    sources = [
        path for part in PARTS for path in (ROOT / part).rglob("*") if path.suffix in {".py", ".yaml", ".md", ".smk"}
    ]
    cited = {(str(path.relative_to(ROOT)), id_) for path in sources for id_ in ENTRY.findall(path.read_text("utf-8"))}
    assert {(path, id_) for path, id_ in cited if id_ not in known} == set()


def test_a_page_lists_the_entries_of_its_methods_and_benchmarks() -> None:
    def listed(titles: list[str]) -> set[str]:
        runs: Any = [
            SimpleNamespace(method_title=title, benchmark=key) for title in titles for key in load().benchmarks
        ]
        return {entry.split()[0] for entries in page._deviations(runs).values() for entry in entries}

    every = {id_ for id_, _ in HEADINGS}
    assert listed([method.title for method in config.methods().values()]) == every
    of_gmr = {id_ for id_ in every if id_.startswith("D-GMR-")}
    assert of_gmr <= listed(["Full-History"])
    assert not of_gmr & listed(["MASRouter"])
