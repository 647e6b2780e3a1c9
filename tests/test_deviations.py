"""The ledger of deviations is complete in itself, and whatever cites an entry cites one that exists."""

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


def test_every_entry_has_an_id_of_its_own_and_says_what_upstream_does_what_we_do_and_why() -> None:
    ids = [id_ for id_, _ in HEADINGS]
    assert len(ids) == len(set(ids)) > 0
    for id_ in ids:
        entry = re.search(rf"^### {id_} .*?(?=^##|\Z)", LEDGER, re.MULTILINE | re.DOTALL)
        assert entry
        assert re.findall(r"\*\*(\w+)\.\*\*\s+\S", entry[0]) == ["Upstream", "Here", "Why"], id_


def test_contents_miss_no_entry() -> None:
    """That each of their links leads to a heading, the strict build of the site checks."""
    contents, _, _ = LEDGER.partition("\n## All methods")
    links = re.findall(r"\[(D-[A-Z]+-\d+)\]\(#(\w+-\w+-\d+)-", contents)
    assert {id_: target.upper() for id_, target in links} == {id_: id_ for id_, _ in HEADINGS}


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
