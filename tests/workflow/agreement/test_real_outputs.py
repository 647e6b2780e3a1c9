"""The recorded outputs themselves: all texts, and a sample of the programs."""

from pathlib import Path

import pytest

from harness.benchmarks import Tools
from harness.benchmarks.math_verifier import MathVerifier
from harness.benchmarks.splits import keyed_order
from harness.sandbox import Sandbox
from workflow.agreement import comparing
from workflow.agreement.comparing import Comparison
from workflow.agreement.records import read
from workflow.agreement.study import grade_all
from workflow.agreement.tables import shares

pytestmark = pytest.mark.realdata

TEXTS = ("mmlu_pro", "mmlu_stem", "math", "gsm8k", "answer_pairs")
PROGRAMS = ("humaneval", "mbpp")
AGREEMENT = 0.995
# With fewer verdicts than this a single one weighs more than the agreement leaves.
FEW = 200


def under_the_same_rule(compared: list[Comparison], file: str) -> list[Comparison]:
    return [one for one in compared if one.record.file == file and one.difference is None]


@pytest.fixture(scope="module")
def graded() -> list[Comparison]:
    return []


@pytest.fixture
async def texts(graded: list[Comparison], mirror: Path) -> list[Comparison]:
    if not graded:
        records = [record for file in TEXTS for record in read(mirror, file)]
        async with Sandbox() as sandbox, MathVerifier() as math_verify:
            graded += await grade_all(records, mirror, Tools(sandbox, math_verify))
    return graded


@pytest.mark.parametrize("file", ["mmlu_pro", "math", "gsm8k"])
def test_texts_agree_under_the_same_rule(file: str, texts: list[Comparison]) -> None:
    agree, decided = shares(under_the_same_rule(texts, file))
    assert decided > FEW
    assert agree / decided >= AGREEMENT


def test_pairs_agree_under_the_same_rule(texts: list[Comparison]) -> None:
    agree, decided = shares(under_the_same_rule(texts, "answer_pairs"))
    assert decided - agree <= 1
    assert decided > 50


def test_the_headline_on_math_gives_no_credit_that_others_withhold(texts: list[Comparison]) -> None:
    headline = [one for one in texts if one.record.file == "math" and one.rule == "string rule"]
    assert headline
    assert not [one.record.key for one in headline if one.ours and not one.record.upstream_correct]


def test_every_disagreement_under_the_same_rule_is_reviewed(texts: list[Comparison]) -> None:
    disagree = [one for one in texts if one.difference is None and one.agrees is False]
    assert [one.record.key for one in disagree if one.judged[1] == "not reviewed"] == []


def test_every_reviewed_record_disagrees(texts: list[Comparison]) -> None:
    disagree = {(one.record.file, str(one.rule), one.record.key) for one in texts if one.agrees is False}
    reviewed = {
        (file, rule, key)
        for file, rules in comparing._reviewed().items()
        for rule, keys in rules.items()
        for key in keys
        if file in TEXTS
    }
    assert reviewed <= disagree


async def test_a_sample_of_programs_agrees_under_the_same_rule(mirror: Path) -> None:
    records = {f"{file}/{record.key}": record for file in PROGRAMS for record in read(mirror, file)}
    sample = [records[key] for key in keyed_order(records, "sample of outputs")[:60]]
    async with Sandbox() as sandbox, MathVerifier() as math_verify:
        compared = await grade_all(sample, mirror, Tools(sandbox, math_verify))
    agree, decided = shares(one for one in compared if one.difference is None)
    assert decided > 50
    assert agree / decided >= AGREEMENT
