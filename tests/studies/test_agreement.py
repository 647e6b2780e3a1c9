"""The graders against recorded outputs: all texts, and a sample of the programs."""

from pathlib import Path

import pytest

from harness.benchmarks.splits import keyed_order
from studies import agreement
from studies.agreement import Comparison, compare, read, shares

pytestmark = pytest.mark.realdata

TEXTS = ("mmlu_pro", "mmlu_stem", "math", "gsm8k", "answer_pairs")
PROGRAMS = ("humaneval", "mbpp")
AGREEMENT = 0.995
# With fewer verdicts than this a single one weighs more than the agreement leaves.
FEW = 200


@pytest.fixture(scope="module")
def graded() -> list[Comparison]:
    return []


@pytest.fixture
async def texts(graded: list[Comparison], mirror: Path) -> list[Comparison]:
    if not graded:
        graded += await compare([record for file in TEXTS for record in read(mirror, file)], mirror)
    return graded


def of(compared: list[Comparison], file: str) -> list[Comparison]:
    return [one for one in compared if one.record.file == file and one.difference is None]


def test_texts_agree_under_the_same_rule(texts: list[Comparison]) -> None:
    for file in ("mmlu_pro", "math", "gsm8k"):
        agree, decided = shares(of(texts, file))
        assert decided > FEW
        assert agree / decided >= AGREEMENT
    agree, decided = shares(of(texts, "answer_pairs"))
    assert decided - agree <= 1
    assert decided > 50


def test_the_headline_on_math_gives_no_credit_that_others_withhold(texts: list[Comparison]) -> None:
    headline = [one for one in texts if one.record.file == "math" and one.rule == "string rule"]
    assert headline
    assert not [one.record.key for one in headline if one.ours and not one.record.upstream_correct]


def test_what_disagrees_under_the_same_rule_is_reviewed_and_what_is_reviewed_disagrees(texts: list[Comparison]) -> None:
    disagree = [one for one in texts if one.agrees is False]
    assert [one.record.key for one in disagree if not one.difference and one.judged[1] == "not reviewed"] == []
    reviewed = {
        (file, rule, key)
        for file, rules in agreement._REVIEWED.items()
        for rule, keys in rules.items()
        for key in keys
        if file in TEXTS
    }
    assert reviewed <= {(one.record.file, str(one.rule), one.record.key) for one in disagree}


async def test_a_sample_of_programs_agrees_under_the_same_rule(mirror: Path) -> None:
    records = {f"{file}/{record.key}": record for file in PROGRAMS for record in read(mirror, file)}
    compared = await compare([records[key] for key in keyed_order(records, "sample of outputs")[:60]], mirror)
    agree, decided = shares(one for one in compared if one.difference is None)
    assert decided > 50
    assert agree / decided >= AGREEMENT
