"""The report on claims: files, order, warning, provenance."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from analysis.exhibit import md_escape, write
from analysis.paper.claims.declaration import CLAIMS, Claim
from analysis.paper.claims.numbers import ROWS
from analysis.paper.claims.report import ClaimsReport, build
from analysis.registry import artefact
from analysis.source import Source
from harness.runner.preset import resolve
from harness.runner.results import SIMULATED_WARNING
from tests.analysis.cells import claim

Some = tuple[list[Path], Sequence[Claim]]


@pytest.fixture
def some(write_cell: Any) -> Some:
    """Return every row of the main table on one benchmark, and a few claims."""
    kept = ("row_averages", "best_on_four", "gsm_same_pattern", "without_llm_router", "gate_entropy", "seed_overall")
    chosen = {one.key: one for one in CLAIMS if one.key in kept}
    chosen["best_on_four"] = chosen["best_on_four"].model_copy(update={"over": {"benchmark": ["gsm_hard"]}})
    cells = []
    for number, row in enumerate(ROWS):
        right = [item % 7 < number % 5 + 2 for item in range(40)]
        cost = [1e-4 * (number + item) for item in range(1, 41)]
        cells.append(write_cell(*row, "gsm_hard", correct=right, cost=cost))
    return cells, tuple(chosen.values())


def made(cells: Sequence[Path], claims: Sequence[Claim]) -> ClaimsReport:
    return build(Source(resolve("embedded"), tuple(cells), legend=artefact("claims").legend), claims)


def test_the_paper_alone() -> None:
    report = build(Source(resolve("smoke")))
    text = report.contents()["md"]
    assert all(f"; {md_escape(one.key)})" in text for one in CLAIMS)
    assert SIMULATED_WARNING not in text
    assert "In this run: 70 not run, 10 about the paper only." in text
    assert report.frame[["measured", "cells", "simulated"]].isna().all(axis=None)


def test_a_simulated_run_is_not_judged(some: Some, write_cell: Any) -> None:
    cells = [write_cell(method, backbone, "gsm_hard", simulated=True) for method, backbone in ROWS]
    report = made(cells, some[1])
    text = report.contents()["md"]
    assert SIMULATED_WARNING in text.partition("\n")[0]
    assert "\n- Its own numbers: " in text
    assert "\n- Measured: " not in text
    assert "\nIn the paper: 3 consistent, 2 partly, 1 not checkable. Of those" in text
    assert "\nIn this run: 4 not judged: simulated, 2 about the paper only.\n" in text
    assert report.frame[["measured", "low", "agrees_with_published", "missing"]].isna().all(axis=None)


def test_records_carry_numbers_and_provenance(some: Some, tmp_path: Path) -> None:
    written = write(made(*some), tmp_path, "claims")
    assert [path.name for path in written] == ["claims.md", "claims.csv", "claims.html"]
    found = list(csv.DictReader(written[1].read_text(encoding="utf-8").splitlines()))
    measured = [row for row in found if row["measured"]]
    assert {row["claim"] for row in measured} == {"best_on_four", "gsm_same_pattern"}
    for row in measured:
        assert all(row[name] for name in ("run_id", "seeds", "config_hash", "code", "data_checksum", "backbones"))
        assert row["simulated"] == "false"
        assert bool(row["measured_all_calls"]) == (row["claim"] == "gsm_same_pattern")
        assert float(row["low"]) <= float(row["measured"]) <= float(row["high"])
        assert row["agrees_with_published"] in ("true", "false")
    pattern = next(row for row in found if row["claim"] == "gsm_same_pattern")
    assert pattern["cells"] == "gmr/gsm_hard/pool/0 puppeteer/gsm_hard/qwen-2.5-32B/0"
    assert (pattern["paper_verdict"], pattern["claim_paper_verdict"]) == ("inconsistent", "partly")
    missing = next(row for row in found if row["claim"] == "without_llm_router")
    assert missing["missing"] == "gmr_no_llm_router pool on gsm_hard, seed 0"
    assert next(row for row in found if row["claim"] == "gate_entropy")["reason"].startswith("not printed: lowest")


def test_costs_are_the_paper_s_and_those_of_all_calls_are_said(write_cell: Any) -> None:
    """Half of every cost is the final call, which the paper counts of MASRouter alone."""
    cheaper = claim(lambda n: n.saving("gmr", "masrouter", "gsm_hard"), "%")
    report = made([write_cell("gmr", "pool"), write_cell("masrouter", "pool")], [cheaper])
    assert report.frame[["measured", "measured_all_calls"]].to_numpy().tolist() == [[50.0, 0.0]]
    assert "all calls: 0.00" in report.contents()["md"]
