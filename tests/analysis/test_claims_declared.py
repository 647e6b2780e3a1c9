"""The declaration of the claims: read strictly, with slips named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from analysis.claims.declared import PATH, Bounds, load
from analysis.claims.judge import Run, judge
from analysis.claims.vocabulary import FUNCTIONS, Vocabulary
from analysis.published import load as load_published
from harness.errors import UserError

CLAIM: dict[str, Any] = {
    "section": "Main results",
    "place": "abstract",
    "says": "One is above another.",
    "quantity": "accuracy('gmr', 'math') - accuracy('masrouter', 'math')",
    "unit": "points",
    "holds": {"above": 0},
}


def write(tmp_path: Path, **changes: Any) -> Path:
    entry = {key: value for key, value in {**CLAIM, **changes}.items() if value is not None}
    path = tmp_path / "claims.yaml"
    path.write_text(yaml.safe_dump({"one": entry}))
    return path


def test_every_claim_of_the_paper_can_be_evaluated_on_both_sides() -> None:
    claims = load()
    assert len({claim.key for claim in claims}) == len(claims) >= 60
    for claim in claims:
        judge(claim, load_published(), Run())


def test_every_function_has_a_definition_and_a_claim() -> None:
    text = PATH.read_text(encoding="utf-8")
    for name in FUNCTIONS:
        assert callable(getattr(Vocabulary, name))
        assert f"{name}(" in text, f"{name} is used by no claim"


def test_every_function_is_documented() -> None:
    page = (PATH.parents[1] / "docs" / "claims.md").read_text(encoding="utf-8")
    assert [name for name in FUNCTIONS if f"`{name}" not in page] == []


def test_parts_are_all_combinations_and_mappings_set_what_they_name(tmp_path: Path) -> None:
    over = {"benchmark": ["math", "mbpp"], "row": [{"method": "gmr", "backbone": "pool"}, {"method": "cot", "n": 1}]}
    (claim,) = load(write(tmp_path, over=over))
    assert list(claim.parts()) == [
        {"benchmark": "math", "method": "gmr", "backbone": "pool"},
        {"benchmark": "math", "method": "cot", "n": 1},
        {"benchmark": "mbpp", "method": "gmr", "backbone": "pool"},
        {"benchmark": "mbpp", "method": "cot", "n": 1},
    ]


@pytest.mark.parametrize(
    ("holds", "bounds"),
    [
        ({"above": 1}, Bounds(low=1)),
        ({"below": "1 + 1"}, Bounds(high="1 + 1")),
        ({"between": [1, 2]}, Bounds(1, 2, closed=True)),
    ],
)
def test_bounds(tmp_path: Path, holds: dict[str, Any], bounds: Bounds) -> None:
    (claim,) = load(write(tmp_path, holds=holds))
    assert claim.holds == bounds


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"holds": None}, "one: neither `stated` nor `holds`"),
        ({"says": None}, r"one\.says: missing"),
        ({"sayz": "x"}, "unknown key 'sayz'; did you mean 'says'"),
        ({"unit": "percent"}, r"one\.unit: 'percent' should be 'points'"),
        ({"tolerance": 1}, "`tolerance` is of `stated`, which is missing"),
        ({"holds": {"above": 0, "below": 1}}, "should be one of above, below, between"),
        ({"holds": {"between": [1]}}, r"one\.holds\.between: .* at least 2 items"),
        ({"stated": 1, "tolerance": -1}, r"one\.tolerance: -1 should be a number of at least 0"),
        ({"exact": False}, "`exact` can only be true"),
        ({"over": {"benchmark": []}}, r"one\.over\.benchmark: \[\] should"),
        ({"quantity": "acuracy('gmr', 'math')"}, "claim one: unknown function 'acuracy'; did you mean 'accuracy'"),
        ({"quantity": "accuracy(gmr, 'math')"}, "claim one: .*names 'gmr'"),
        ({"stated": "besst"}, "claim one: .*names 'besst'"),
        ({"published": "1 +"}, "claim one: expression"),
        ({"over": {"accuracy": ["math"]}}, "the name of a function"),
    ],
)
def test_slips_are_named(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        load(write(tmp_path, **changes))


def test_a_claim_stands_once(tmp_path: Path) -> None:
    path = tmp_path / "claims.yaml"
    path.write_text(yaml.safe_dump({"one": CLAIM}) * 2)
    with pytest.raises(UserError, match="duplicate key 'one'"):
        load(path)


@pytest.mark.parametrize(
    ("quantity", "message"),
    [
        ("accuracy('gmrr', 'math')", "unknown method 'gmrr'; did you mean 'gmr'"),
        ("accuracy('gmr', 'maths')", "unknown benchmark 'maths'; did you mean 'math'"),
        ("accuracy('gmr', 'math', 'qwen')", "unknown row 'qwen'"),
        ("price_in('pool')", "unknown backbone 'pool'"),
        ("depth('gmr', 'maths')", "unknown benchmark 'maths'"),
        ("accuracy('gmr')", "correct the arguments"),
    ],
)
def test_a_slip_in_a_name_is_no_missing_number(tmp_path: Path, quantity: str, message: str) -> None:
    (claim,) = load(write(tmp_path, quantity=quantity))
    with pytest.raises(UserError, match=message):
        judge(claim, load_published(), Run())
