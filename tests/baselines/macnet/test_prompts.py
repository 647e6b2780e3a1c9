"""What the agents are told, and that simulated backbones take each turn for what it is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baselines import macnet
from harness.agents.roles import catalogue
from harness.benchmarks import benchmark
from harness.benchmarks.loading import load_items
from harness.simulator.contributions import Reading
from harness.simulator.contributions import read as read_prompt
from harness.simulator.world import QuestionIndex

KEYS = ["math", "gsm_hard", "mbpp", "humaneval", "mmlu_pro"]


def read(key: str, make: Any, *shown: Any) -> Reading:
    its = benchmark(key)
    item = load_items(key, "embedded").items[0]
    checks = [macnet.CHECKS[its.role_domain]] if make is macnet.critique_prompt else []
    messages = make(*checks, its.output_rules, item, *shown)
    reading = read_prompt([message._asdict() for message in messages], None, QuestionIndex([item]))
    assert reading.item == item
    assert not any(contribution.own for contribution in reading.contributions)
    return reading


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    ("make", "shown", "texts"),
    [
        (macnet.solve_prompt, (), []),
        (macnet.critique_prompt, ("A solution.",), ["A solution."]),
        (macnet.revise_prompt, ("A solution.", "Some advice."), ["A solution.", "Some advice."]),
        (macnet.revise_prompt, ("A solution.", ""), ["A solution.", "None."]),
        (macnet.merge_prompt, (["A solution.", "Another."],), ["A solution.", "Another."]),
    ],
)
def test_what_is_shown_is_found(key: str, make: Any, shown: Any, texts: list[str]) -> None:
    reading = read(key, make, *shown)
    assert [contribution.text for contribution in reading.contributions] == texts
    assert not reading.feedback


@pytest.mark.parametrize("key", KEYS)
def test_that_there_is_no_advice_passes_for_no_answer(key: str) -> None:
    its = benchmark(key)
    item = load_items(key, "embedded").items[0]
    assert its.extract(item, macnet.NO_ADVICE) is None


def test_every_domain_of_a_benchmark_or_a_role_has_checks() -> None:
    assert set(macnet.CHECKS) == {benchmark(key).role_domain for key in KEYS} == {r.domain for r in catalogue()}


def test_what_critics_check_covers_the_kind_of_question() -> None:
    for domain, words in {
        "Math": ("logic", "arithmetic", "units", "form"),
        "Code": ("signature", "examples", "edge cases", "syntax"),
        "Commonsense": ("each option", "letter"),
    }.items():
        assert all(word in macnet.CHECKS[domain] for word in words)


@pytest.mark.parametrize(
    "critique",
    [
        "NO REVISION NEEDED",
        "  No revision needed.\n",
        "**NO REVISION NEEDED**",
        "All steps hold.\n\n> `No revision needed`",
        "",
        " \n ",
    ],
)
def test_approval_and_silence_are_no_advice(critique: str) -> None:
    assert macnet.advice_in(critique) == ""


@pytest.mark.parametrize(
    "critique",
    ["No revision needed, except for the sign.", "The sign is wrong; otherwise: NO REVISION NEEDED", "REVISION NEEDED"],
)
def test_approval_with_a_restriction_is_advice(critique: str) -> None:
    assert macnet.advice_in(f"\n{critique} ") == critique


@given(st.text())
def test_advice_is_the_critique_or_nothing(critique: str) -> None:
    assert macnet.advice_in(critique) in ("", critique.strip())
