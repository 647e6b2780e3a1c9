"""How many questions a run keeps: a number, a share of every split, or both."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UserError
from harness.runner import config, config_hash
from harness.runner.config import Cell, Limit


@pytest.mark.parametrize(
    ("questions", "share", "most", "kept"),
    [
        (30, 0.1, None, 3),
        (31, 0.1, None, 4),
        (416, 0.05, None, 21),
        (1, 0.001, None, 1),
        (400, 0.5, 32, 32),
        (8, 1, 9, 8),
    ],
)
def test_a_share_is_rounded_up_and_a_number_bounds_it(
    questions: int, share: float, most: int | None, kept: int
) -> None:
    assert Limit(share=share).count(questions, most) == kept


@given(st.integers(1, 20_000), st.integers(1, 1000))
def test_a_share_is_exact(questions: int, thousandths: int) -> None:
    assert Limit(share=thousandths / 1000).count(questions, None) == math.ceil(Fraction(questions * thousandths, 1000))


def test_a_share_is_part_of_what_a_result_is_known_by() -> None:
    for cell in (Cell("cot", "gsm_hard", "qwen-2.5-14B", 0), Cell("gmr", "gsm_hard", "pool", 0)):
        whole, part = (
            config_hash.of_cell(config.preset("embedded", {"limit": {"share": share}}), cell) for share in (None, 0.5)
        )
        assert whole != part
        assert part["preset"]["limit"]["share"] == 0.5


def test_a_budget_is_not() -> None:
    cell = Cell("gmr", "gsm_hard", "pool", 0)
    bounded = config.preset("smoke", {"budget": {"calls": 3, "cost": 0.5}})
    assert bounded.budget == config.Budget(calls=3, cost=0.5)
    assert config_hash.of_cell(bounded, cell) == config_hash.of_cell(config.preset("smoke"), cell)
    assert config.preset("smoke", {"budget": None}).budget is None


@pytest.mark.parametrize(
    "entry", [{"limit": {"share": 0}}, {"limit": {"share": 1.5}}, {"budget": {"calls": 0}}, {"budget": {"euros": 1}}]
)
def test_slips_are_refused(entry: dict[str, object]) -> None:
    with pytest.raises(UserError, match=next(iter(entry))):
        config.preset("smoke", entry)
