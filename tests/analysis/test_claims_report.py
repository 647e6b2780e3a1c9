"""The report on the claims: files, order, warning, provenance, and the command that writes them."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from analysis.claims import render
from analysis.claims.declared import Claim, claim
from analysis.claims.numbers import Numbers, Value
from analysis.claims.render import line, number
from analysis.claims.report import Report, build
from analysis.claims.statements import CLAIMS
from analysis.provenance import SIMULATED
from analysis.published import load
from analysis.source import Source
from harness.errors import UserError
from harness.runner import config
from tests.analysis.spending import spend

EMBEDDED = config.preset("embedded")
Some = tuple[list[Path], Sequence[Claim]]
VOID = {"meta", "br", "hr", "img", "link"}


@pytest.fixture(scope="module")
def print_only() -> Report:
    return build()


@pytest.fixture
def some(write_cell: Any) -> Some:
    """Every row of the main table on one benchmark, and a few claims."""
    kept = ("row_averages", "best_on_four", "gsm_same_pattern", "without_llm_router", "gate_entropy", "seed_overall")
    chosen = {one.key: one for one in CLAIMS if one.key in kept}
    chosen["best_on_four"] = replace(chosen["best_on_four"], over={"benchmark": ["gsm_hard"]})
    cells = []
    for place, row in enumerate(load().rows):
        right = [item % 7 < place % 5 + 2 for item in range(40)]
        calibrated = row.method in ("single", "cot", "complex_cot")
        cells.append(write_cell(row.method, row.backbone, "gsm_hard", correct=right, calibrated=calibrated))
        spend(cells[-1], [1e-4 * (place + item) for item in range(1, 41)])
    return cells, tuple(chosen.values())


def source(cells: list[Path]) -> Source:
    return Source(tuple(cells), preset=EMBEDDED)


class _Balanced(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO("\n".join(one for one in text.splitlines() if not one.startswith("#")))))


def test_every_format_has_every_claim(print_only: Report) -> None:
    keys = [claim.key for claim in CLAIMS]
    page = _Balanced()
    page.feed(render.html(print_only))
    assert page.ids == keys
    assert page.open == []
    assert list(dict.fromkeys(row["claim"] for row in print_only.records)) == keys
    text = render.markdown(print_only)
    for key in keys:
        assert key.replace("_", "\\_") in text


def test_no_run_no_warning(print_only: Report) -> None:
    for text in (render.html(print_only), render.markdown(print_only)):
        assert SIMULATED not in text
        assert "reproduced," not in text.lower()
        assert "No finished cell" in text
    assert all(row["measured"] == row["cells"] == row["simulated"] == "" for row in print_only.records)


def test_a_simulated_run_says_so_everywhere(some: Some) -> None:
    report = build(source(some[0]), some[1])
    page = render.html(report)
    assert page.index(SIMULATED) < page.index("<html")
    assert "<title>SIMULATED" in page
    for text in (page, render.markdown(report)):
        assert SIMULATED in text or SIMULATED.replace("_", "\\_") in text
    assert not any(row["verdict"] in ("reproduced", "contradicted") for row in report.records)
    assert {one.claim.key: one.verdict.value for one in report.judged} == {
        "row_averages": "about the print only",
        "best_on_four": "rehearsed",
        "gsm_same_pattern": "rehearsed",
        "without_llm_router": "not run",
        "gate_entropy": "not run",
        "seed_overall": "about the print only",
    }


def test_records_carry_provenance(some: Some, tmp_path: Path) -> None:
    report = build(source(some[0]), some[1])
    written = render.write(report, tmp_path / "out")
    assert [path.name for path in written] == ["claims.html", "claims.md", "claims.csv"]
    found = rows((tmp_path / "out" / "claims.csv").read_text(encoding="utf-8"))
    assert (tmp_path / "out" / "claims.csv").read_text(encoding="utf-8").startswith(f"# {SIMULATED}\n")
    measured = [row for row in found if row["measured"]]
    assert {row["claim"] for row in measured} == {"best_on_four", "gsm_same_pattern"}
    for row in measured:
        assert all(
            row[name] for name in ("cells", "run_id", "seeds", "config_hash", "code", "data_checksum", "backbones")
        )
        assert row["simulated"] == "true"
        assert bool(row["measured_all_calls"]) == (row["claim"] == "gsm_same_pattern")
        assert float(row["low"]) <= float(row["measured"]) <= float(row["high"])
    pattern = next(row for row in found if row["claim"] == "gsm_same_pattern")
    assert pattern["cells"] == "gmr/gsm_hard/pool/0 puppeteer/gsm_hard/qwen-2.5-32B/0"
    assert pattern["print_verdict"] == "inconsistent"
    assert pattern["claim_print_verdict"] == "partly"
    missing = next(row for row in found if row["claim"] == "without_llm_router")
    assert missing["missing"] == "gmr_no_llm_router pool on gsm_hard, seed 0"


def test_calibrated_cells_are_marked(some: Some) -> None:
    report = build(source(some[0]), some[1])
    texts = {one.claim.key: line(one, report).measured for one in report.judged}
    assert all("†" in text for text in texts["best_on_four"])
    assert not any("†" in text for text in texts["gsm_same_pattern"])
    assert any(note.startswith("†") for note in report.notes)
    fitted = {row["calibrated"]: row["contains_published"] for row in report.records if row["low"]}
    assert set(fitted) == {"true", "false"}
    assert (fitted["true"], bool(fitted["false"])) == ("", True)


def test_conditions_are_counted(some: Some, write_cell: Any) -> None:
    other = write_cell("gmr", "pool", "mbpp", notes=["length_scale 0.2"])
    notes = build(source([*some[0], other]), some[1]).notes
    assert "Conditions of this run: length_scale 0.2 (only GMR (LLM Pool) on MBPP)." in notes


def test_the_report_says_which_seeds_it_asks_for(some: Some) -> None:
    def said(seeds: list[int]) -> str:
        chosen = Source(tuple(some[0]), preset=config.preset("embedded", {"seeds": seeds}))
        return next(note for note in build(chosen, some[1]).notes if note.startswith("Seeds: "))

    assert said([0]).startswith("Seeds: 0; 0/1/2 in statements about training seeds.")
    assert said([3, 4]).startswith("Seeds: 3/4, 3 of methods that learn nothing; 0/1/2 in")


def test_cells_without_a_preset_are_refused(some: Some) -> None:
    with pytest.raises(UserError, match="made of a preset"):
        build(Source.of(some[0]), some[1])


def test_the_order_of_cells_does_not_matter(some: Some) -> None:
    first, second = build(source(some[0]), some[1]), build(source(some[0][::-1]), some[1])
    for make in (render.html, render.markdown):
        assert make(first) == make(second)
    assert first.records == second.records


def test_text_of_a_claim_is_no_markup() -> None:
    @claim(section="<b>", place="a | b", unit="points", stated=2, note="</table>")
    def one(n: Numbers) -> Value:
        """<script>x</script> *y*"""
        return 1 + 1

    report = build(claims=[one])
    page = render.html(report)
    assert "<script>" not in page
    assert page.count("</table>") == 1
    text = render.markdown(report)
    assert r"a \| b" in text
    assert r"\*y\*" in text


@pytest.mark.parametrize(
    ("value", "digits", "text"), [(-1.236, 2, "−1.24"), (-0.001, 2, "0.00"), (26.0, 0, "26"), (0.004673, 5, "0.00467")]
)
def test_numbers(value: float, digits: int, text: str) -> None:
    assert number(value, digits) == text


def test_it_is_made_of_whatever_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write_cell: Any) -> None:
    from workflow import reports

    cell = write_cell("single", "qwen-2.5-14B", "gsm_hard", preset="smoke")
    place = tmp_path / "results" / "smoke" / "cells" / "single" / "gsm_hard" / "qwen-2.5-14B" / "seed0"
    place.parent.mkdir(parents=True)
    cell.rename(place)
    monkeypatch.chdir(tmp_path)
    reports.write("claims", config.preset("smoke"))
    assert sorted(path.name for path in (tmp_path / "reports" / "smoke").iterdir()) == [
        "claims.csv",
        "claims.html",
        "claims.md",
    ]
