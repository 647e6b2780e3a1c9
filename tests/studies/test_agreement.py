"""The graders against recorded outputs: all texts, and a sample of the programs."""

import asyncio
import os
from pathlib import Path

import pandas as pd
import pytest

from harness.benchmarks.items import keyed_order
from studies import agreement
from studies.agreement import STRING, compare, function_under_test, read

pytestmark = pytest.mark.realdata

TEXTS = ("mmlu_pro", "math", "gsm8k")
PROGRAMS = ("humaneval", "mbpp")
AGREEMENT = 0.995
# With fewer verdicts than this a single one weighs more than the agreement leaves.
FEW = 200


@pytest.fixture(scope="module")
def texts() -> pd.DataFrame:
    """Grade every recorded text under every rule."""
    if not (named := os.environ.get("GMR_DATA_DIR")):
        pytest.skip("GMR_DATA_DIR is not set: no recorded outputs")
    folder = Path(named)
    return asyncio.run(compare([record for file in TEXTS for record in read(folder, file)], folder))


def agreeing(compared: pd.DataFrame) -> tuple[int, int]:
    """Return how many verdicts under the same rule agree, and how many there are."""
    same = compared[compared["upstream's rule"] == "the same"]
    return (same["class"] == "").sum(), len(same)


def test_texts_agree_under_the_same_rule(texts: pd.DataFrame) -> None:
    for file in TEXTS:
        agree, decided = agreeing(texts[texts["file"] == file])
        assert decided > FEW
        assert agree / decided >= AGREEMENT


def test_the_headline_on_math_gives_no_credit_that_others_withhold(texts: pd.DataFrame) -> None:
    headline = texts[(texts["file"] == "math") & (texts["our rule"] == STRING)]
    assert len(headline)
    assert not (headline["ours"].astype(bool) & ~headline["upstream"].astype(bool)).any()


def test_what_disagrees_under_the_same_rule_is_reviewed_and_what_is_reviewed_disagrees(texts: pd.DataFrame) -> None:
    disagree = texts[texts["class"] != ""]
    assert "not reviewed" not in set(disagree["reason"])
    reviewed = {
        (file, rule, key)
        for file, rules in agreement._REVIEWED.items()
        for rule, keys in rules.items()
        for key in keys
        if file in TEXTS
    }
    assert reviewed <= set(disagree[["file", "our rule", "record"]].itertuples(index=False, name=None))


@pytest.mark.parametrize(
    ("tests", "name"),
    [
        ("assert sum(10, 15) == 6\nassert sum(1, 2) == 1", "sum"),
        ("assert sum(f(1)) == 6 and abs(g(1)) < 1", "f"),
        ("assert math.isclose(f(1), 2)", "f"),
        ("def check(candidate):\n    assert candidate(1) == 2\ncheck(next)", "next"),
        ("x = 1", ""),
    ],
)
def test_the_function_that_tests_are_about(tests: str, name: str) -> None:
    assert function_under_test(tests) == name


async def test_a_sample_of_programs_agrees_under_the_same_rule(mirror: Path) -> None:
    records = {f"{file}/{record.key}": record for file in PROGRAMS for record in read(mirror, file)}
    sample = [records[key] for key in keyed_order(records, "sample of outputs")[:60]]
    agree, decided = agreeing(await compare(sample, mirror))
    assert decided > 50
    assert agree / decided >= AGREEMENT
