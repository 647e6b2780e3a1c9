"""The report on the claims: files, order, warning, provenance."""

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.claims.declaration import Claim, claim
from analysis.claims.numbers import ROWS, Numbers, Value
from analysis.claims.report import ClaimsReport, build
from analysis.claims.statements import CLAIMS
from analysis.exhibit import md_escape, write
from analysis.source import Source
from harness.runner import config
from harness.runner.results import SIMULATED_WARNING

Some = tuple[list[Path], Sequence[Claim]]


@pytest.fixture
def some(write_cell: Any) -> Some:
    """Return every row of the main table on one benchmark, and a few claims."""
    kept = ("row_averages", "best_on_four", "gsm_same_pattern", "without_llm_router", "gate_entropy", "seed_overall")
    chosen = {one.key: one for one in CLAIMS if one.key in kept}
    chosen["best_on_four"] = replace(chosen["best_on_four"], over=[["gsm_hard"]])
    cells = []
    for place, (method, backbone) in enumerate(ROWS):
        right = [item % 7 < place % 5 + 2 for item in range(40)]
        cost = [1e-4 * (place + item) for item in range(1, 41)]
        cells.append(write_cell(method, backbone, "gsm_hard", correct=right, cost=cost))
    return cells, tuple(chosen.values())


def made(some: Some, *more: Path, **overrides: Any) -> ClaimsReport:
    return build(Source((*some[0], *more), preset=config.preset("embedded", overrides)), some[1])


def test_the_paper_alone() -> None:
    report = build(Source(preset=config.preset("smoke")))
    text = report.contents()["md"]
    assert all(f"; {md_escape(one.key)})" in text for one in CLAIMS)
    assert SIMULATED_WARNING not in text
    assert "In this run: 70 not run, 10 about the paper only." in text
    assert report.frame[["measured", "cells", "simulated"]].isna().all(axis=None)


def test_a_simulated_run_is_not_judged_and_its_power_is_said(some: Some, write_cell: Any) -> None:
    cells = [write_cell(method, backbone, "gsm_hard", simulated=True) for method, backbone in ROWS]
    report = made((cells, some[1]))
    assert SIMULATED_WARNING in report.contents()["md"].partition("\n")[0]
    paper, run = report.summary
    assert (
        paper
        == "In the paper: 3 consistent, 2 partly, 1 not checkable. Of those that its numbers contradict: 2 stated."
    )
    assert run == "In this run: 4 not judged: simulated, 2 about the paper only."
    assert report.frame[["measured", "low", "agrees_with_published", "missing"]].isna().all(axis=None)
    chances = report.frame.set_index("claim")["chance"].dropna().groupby("claim").first()
    assert {"best_on_four", "gsm_same_pattern"} <= set(chances.index)


def test_records_carry_numbers_and_provenance(some: Some, tmp_path: Path) -> None:
    written = write(made(some), tmp_path / "out", "claims")
    assert sorted(path.name for path in written) == ["claims.csv", "claims.html", "claims.md"]
    text = (tmp_path / "out" / "claims.csv").read_text(encoding="utf-8")
    found = list(csv.DictReader(io.StringIO(text)))
    measured = [row for row in found if row["measured"]]
    assert {row["claim"] for row in measured} == {"best_on_four", "gsm_same_pattern"}
    for row in measured:
        assert all(row[name] for name in ("run_id", "seeds", "config_hash", "code", "data_checksum", "backbones"))
        assert row["simulated"] == "false"
        assert bool(row["measured_all_calls"]) == (row["claim"] == "gsm_same_pattern")
        assert float(row["low"]) <= float(row["measured"]) <= float(row["high"])
        assert row["agrees_with_published"] in ("True", "False")
    pattern = next(row for row in found if row["claim"] == "gsm_same_pattern")
    assert pattern["cells"] == "gmr/gsm_hard/pool/0 puppeteer/gsm_hard/qwen-2.5-32B/0"
    assert (pattern["paper_verdict"], pattern["claim_paper_verdict"]) == ("inconsistent", "partly")
    missing = next(row for row in found if row["claim"] == "without_llm_router")
    assert missing["missing"] == "gmr_no_llm_router pool on gsm_hard, seed 0"
    assert next(row for row in found if row["claim"] == "gate_entropy")["reason"].startswith("not printed: lowest")


def test_costs_are_the_paper_s_and_those_of_all_calls_are_said(write_cell: Any) -> None:
    """Half of every cost is the final call, which the paper counts of MASRouter alone."""

    @claim("Cost", "somewhere", "%")
    def cheaper(n: Numbers) -> Value:
        return n.saving("gmr", "masrouter", "gsm_hard")

    report = made(([write_cell("gmr", "pool"), write_cell("masrouter", "pool")], [cheaper]))
    assert report.frame[["measured", "measured_all_calls"]].to_numpy().tolist() == [[50.0, 0.0]]
    assert "all calls: 0.00" in report.contents()["md"]
