"""From a small cell to a large one: every rule on cells whose calls are stated, and on cells that were run twice."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import config
from harness.config import Cell
from tests.workflow.forecasting.made import call, finished, prepared
from workflow.forecasting.measured import COLUMNS, CONSULTING, TEST, TRAINING, Disk, Measured, measure
from workflow.forecasting.scaling import Amounts, scaled, total
from workflow.forecasting.sizes import Size

COT = Cell("cot", "gsm_hard", "qwen-2.5-14B", 0)
GMR = Cell("gmr", "gsm_hard", "pool", 0)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    prepared("gsm_hard")
    return tmp_path


def measured(rows: list[tuple[str, int, str, float]]) -> Measured:
    """A cell of one backbone from phase, pass, question and calls."""
    columns = [
        dict.fromkeys(COLUMNS, calls) | {"phase": phase, "pass": number, "item_id": item, "backbone": "m"}
        for phase, number, item, calls in rows
    ]
    return Measured(GMR, True, pd.DataFrame(columns), Disk(), 0.0)


def asked(amounts: Amounts) -> tuple[float, float, float]:
    return tuple(float(getattr(amounts, end)["asked"].sum()) for end in ("low", "point", "high"))  # type: ignore[return-value]


def test_calls_that_a_log_answers_are_used_and_not_asked() -> None:
    finished(
        GMR,
        [call("test/0", "a"), call("test/0", "a"), call("test/1", "t")],
        [[call("train/0", "b"), call("train/0", "b")], [call("train/0", "b"), call("optimizer", "c", prompt=7)]],
    )
    found = measure(config.preset("rehearsal"), GMR)
    sums = found.rows.groupby(["phase", "pass"])[["uses", "asked", "prompt"]].sum()
    assert sums.loc[(TEST, 0)].tolist() == [3, 2, 200]
    assert sums.loc[(TRAINING, 1)].tolist() == [2, 1, 100]
    assert sums.loc[(TRAINING, 2)].tolist() == [1, 0, 0]
    assert sums.loc[(CONSULTING, 2)].tolist() == [1, 1, 7]
    assert (found.test, found.train, found.passes) == (2, 1, 2)
    assert found.disk.logs == 1000


def test_calls_that_a_shared_log_answers_are_used_and_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    other = Cell("single", "gsm_hard", "qwen-2.5-14B", 0)
    finished(other, [call("test/0", "a")])
    finished(COT, [call("test/0", "a"), call("test/1", "b")])
    preset = config.preset("rehearsal")
    assert measure(preset, COT).rows["asked"].sum() == 2
    monkeypatch.setattr(config, "sharing", lambda chosen, cell: [other])
    found = measure(preset, COT).rows
    assert (found["uses"].sum(), found["asked"].sum(), found["prompt"].sum()) == (2, 1, 100)


@settings(deadline=None)
@given(st.lists(st.integers(1, 9), min_size=5, max_size=30), st.integers(1, 500))
def test_test_questions_scale_with_their_mean(calls: list[int], wanted: int) -> None:
    cell = measured([(TEST, 0, str(number), each) for number, each in enumerate(calls)])
    low, point, high = asked(scaled(cell, Size(wanted)))
    assert point == pytest.approx(wanted * sum(calls) / len(calls))
    assert low <= point <= high
    if wanted <= len(calls) or len(set(calls)) == 1:
        assert low == pytest.approx(high)
    else:
        assert low < high


def test_a_pass_costs_what_that_pass_cost_and_one_beyond_what_the_last_did() -> None:
    passes = [(TRAINING, 1, "a", 8.0), (TRAINING, 1, "b", 8.0), (TRAINING, 2, "a", 3.0), (TRAINING, 2, "b", 3.0)]
    cell = measured([(TEST, 0, "t", 1.0), *passes])
    for number, expected in ((1, 16), (2, 22), (5, 22 + 3 * 6)):
        assert asked(scaled(cell, Size(1, 2, number)))[1] == 1 + expected
    assert asked(scaled(cell, Size(1, 20, 2)))[1] == 1 + 220


def test_calls_about_no_question_go_with_the_passes_alone() -> None:
    rows = [(TEST, 0, "t", 1.0), (TRAINING, 1, "a", 2.0), (CONSULTING, 2, "optimizer", 5.0), (TRAINING, 2, "a", 2.0)]
    assert asked(scaled(measured(rows), Size(1, 10, 2)))[1] == 1 + 10 * 4 + 5


def test_a_search_ends_between_where_it_did_and_where_it_must() -> None:
    cell = measured([(TEST, 0, "t", 1.0), *((TRAINING, number, "a", 2.0) for number in (1, 2, 3, 4))])
    low, point, high = asked(scaled(cell, Size(1, 1, 20, searches=True)))
    assert (low, point, high) == (1 + 4 * 2, 1 + (4 + 20) / 2 * 2, 1 + 20 * 2)
    assert asked(scaled(cell, Size(1, 1, 2, searches=True))) == (5, 5, 5)


def test_what_is_learned_from_other_questions_is_less_sure() -> None:
    cell = measured([(TEST, 0, "t", 4.0), (TRAINING, 1, "a", 2.0)])
    same, more = (scaled(cell, Size(1, train, 1)) for train in (1, 3))
    assert asked(same) == (6, 6, 6)
    low, point, high = asked(more)
    assert point == 10
    assert low < 10 / 1.5
    assert high > 10 * 1.5


def test_ends_add_up() -> None:
    cell = measured([(TEST, 0, "a", 1.0), (TEST, 0, "b", 3.0)])
    one = scaled(cell, Size(10))
    assert asked(total([one, one])) == pytest.approx(tuple(2 * end for end in asked(one)))
