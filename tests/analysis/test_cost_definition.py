"""Which calls a claim about costs counts; half of every cost made here is the final call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analysis.claims.declared import claim
from analysis.claims.judge import judge
from analysis.claims.measured import Measured, Run, Seeds
from analysis.claims.numbers import Numbers, Value
from analysis.claims.report import Report, line
from analysis.frames import Results
from analysis.published import load
from analysis.results import read_all

ROWS = (("gmr", "pool"), ("masrouter", "pool"), ("puppeteer", "qwen-2.5-32B"))


@pytest.fixture
def cells(write_cell: Any) -> list[Path]:
    return [write_cell(method, backbone) for method, backbone in ROWS]


def test_claims_are_judged_on_the_paper_s_cost_and_say_the_other(cells: list[Path]) -> None:
    @claim("Cost", "somewhere", "%")
    def cheaper(n: Numbers) -> Value:
        return n.saving("gmr", "masrouter", "gsm_hard")

    found = Results(read_all(cells))
    run = Run(found.trainings, seeds=Seeds(own=dict.fromkeys(ROWS, (0,))))
    judged = judge(cheaper, load(), run)
    [part] = judged.parts
    assert (part.value, part.all_calls) == (50.0, 0.0)
    report = Report((judged,), load(), found.cells, run)
    assert report.records[0]["measured_all_calls"] == "0"
    assert "all calls: 0.00" in line(judged, report)["fields"][2][0]
    assert not Measured(load(), run).charged
