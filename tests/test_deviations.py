"""The ledger of deviations is complete in itself, and whatever cites an entry cites one that exists."""

import re

from harness.files import ROOT

LEDGER = (ROOT / "docs" / "deviations.md").read_text(encoding="utf-8")
ENTRY = re.compile(r"\bD-[A-Z]+-\d+\b")
HEADINGS = re.findall(r"^### (D-[A-Z]+-\d+) (.+)$", LEDGER, re.MULTILINE)
PARTS = ("baselines", "config", "docs", "gmr", "harness", "analysis", "tests", "cli")


def anchor(heading: str) -> str:
    """Return the fragment that a rendered heading gets: lower case, spaces to hyphens, other punctuation gone."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_every_entry_has_an_id_of_its_own_and_says_what_upstream_does_what_we_do_and_why() -> None:
    ids = [id_ for id_, _ in HEADINGS]
    assert len(ids) == len(set(ids)) > 0
    for id_ in ids:
        entry = re.search(rf"^### {id_} .*?(?=^##|\Z)", LEDGER, re.MULTILINE | re.DOTALL)
        assert entry
        assert re.findall(r"\*\*(\w+)\.\*\*\s+\S", entry[0]) == ["Upstream", "Here", "Why"], id_


def test_contents_link_to_headings_that_exist_and_miss_none() -> None:
    contents, _, _ = LEDGER.partition("\n## All methods")
    anchors = {anchor(f"{id_} {title}"): id_ for id_, title in HEADINGS}
    links = dict(re.findall(r"\[(D-[A-Z]+-\d+)\]\(#([^)]*)\)", contents))
    assert {id_: anchors.get(target) for id_, target in links.items()} == {id_: id_ for id_ in links}
    assert set(links) == {id_ for id_, _ in HEADINGS}


def test_every_citation_has_an_entry() -> None:
    known = {id_ for id_, _ in HEADINGS}
    sources = [
        path for part in PARTS for path in (ROOT / part).rglob("*") if path.suffix in {".py", ".yaml", ".md", ".smk"}
    ]
    cited = {(str(path.relative_to(ROOT)), id_) for path in sources for id_ in ENTRY.findall(path.read_text("utf-8"))}
    assert {(path, id_) for path, id_ in cited if id_ not in known} == set()
