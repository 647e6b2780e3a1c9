"""The equations of the response model, and the accuracy that a router can gain."""

from statistics import NormalDist, correlation, fmean

import pytest

from harness.benchmarks.items import Item
from harness.llm.request import Metadata
from harness.simulator import response_model
from harness.simulator.answers import answers_to
from harness.simulator.response_model import draw_answer, score
from tests.harness.simulator.samples import word_problems

VALUES = response_model.load()
PHI = NormalDist().cdf


def chance(item: Item, backbone: str, told: Metadata) -> float:
    return PHI(score(item, backbone, told, VALUES))


def test_backbones_fail_on_different_questions_and_roles_of_the_domain_fit() -> None:
    items, plainly, complex_cot = word_problems(600), Metadata(), Metadata(purpose="complex")
    a, b = ([score(item, each, plainly, VALUES) for item in items] for each in ("llama-3.1-8B", "qwen-2.5-14B"))
    assert 0.3 < correlation(a, b) < 0.7, "equal spreads of what is common and what is not give one half"
    plain, styled, fitting, other = (
        fmean(score(item, "qwen-2.5-14B", each, VALUES) for item in items)
        for each in (plainly, complex_cot, Metadata("Math/Engineer"), Metadata("Code/BugFixer"))
    )
    assert styled - plain == pytest.approx(VALUES.purposes["complex"].score)
    assert fitting - plain == pytest.approx(VALUES.fitting_role, abs=0.1)
    assert other - plain == pytest.approx(VALUES.other_role, abs=0.1)


def test_earlier_answers_help_or_mislead_by_the_stated_equation() -> None:
    """Three right turns against two that agree and one more."""
    answers = answers_to(word_problems(1)[0])
    stated, score = [answers.right, "w", answers.right, "v", "w", None, answers.right], -0.3
    drawn = [draw_answer(answers, score, stated, VALUES, str(number)) for number in range(4000)]
    share = PHI(score + VALUES.evidence * (3 - 2) / (1 + 6) ** 0.5)
    assert drawn.count(answers.right) / 4000 == pytest.approx(share, abs=0.03)
    copied = (drawn.count("w") + drawn.count("v")) / (4000 * (1 - share))
    assert copied == pytest.approx(VALUES.copied_wrong, abs=0.06)
