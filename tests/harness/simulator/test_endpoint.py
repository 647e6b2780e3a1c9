"""Replies: what calibration promises of them, what they hold, what decides about them, and what is refused."""

from collections import Counter
from collections.abc import Callable
from statistics import fmean
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.agents.prompts import Record, team_prompt
from harness.benchmarks import benchmark
from harness.benchmarks.items import Item
from harness.llm.request import Message
from harness.simulator import Calibration, SimulatedEndpoint, tokens
from harness.simulator.parameters import STYLES, Settings

from .samples import Questions, request_for, word_problems

Ask = Callable[[dict[str, Any]], str]
RULES = benchmark("gsm_hard").output_rules


def asked(messages: tuple[Message, ...], backbone: str = "qwen-2.5-14B", **told: str) -> dict[str, Any]:
    shown = [message._asdict() for message in messages]
    return {"model": backbone, "messages": shown, "max_tokens": 4096, "metadata": told}


def said(body: dict[str, Any]) -> str:
    return body["choices"][0]["message"]["content"]


def correct(item: Item, text: str) -> bool:
    answer = benchmark(item.benchmark).extract(item, text)
    return answer is not None and benchmark(item.benchmark).same(item, answer, item.gold)


def test_accuracy_and_lengths_land_on_their_targets(
    ask: Ask, calibration: Calibration, settings: Settings, pools: dict[str, Questions]
) -> None:
    items = pools["gsm_hard"].pool
    for style in STYLES:
        for backbone, published in settings.accuracy["gsm_hard"][style].items():
            replies = [ask(request_for(item, backbone, style)) for item in items]
            share = fmean(correct(item, reply) for item, reply in zip(items, replies, strict=True))
            # Most questions are decided by their latents, so the binomial error is an upper bound.
            deviation = (published * (100 - published) / len(items)) ** 0.5
            assert abs(100 * share - published) < 3.5 * deviation, (style, backbone)
            target = calibration.benchmarks["gsm_hard"].tokens[style][backbone]
            spread = settings.parameters.length_sd / len(items) ** 0.5
            assert fmean(map(tokens.count, replies)) == pytest.approx(target, rel=4 * spread + 0.01)


def test_replies_of_every_benchmark_parse_and_are_right_or_from_the_pool(
    ask: Ask, calibration: Calibration, pools: dict[str, Questions]
) -> None:
    unparsable = asked = 0
    for pool in pools.values():
        for item in pool.pool:
            known = calibration.answers(item)
            for seed in range(3):
                asked += 1
                answer = known.benchmark.extract(item, ask(request_for(item, seed=seed)))
                if answer is None or not (item.code is None or f"def {item.code.entry_point}" in answer):
                    unparsable += 1
                    continue
                allowed = (item.gold, known.right, *known.wrong)
                assert any(known.benchmark.same(item, answer, one) for one in allowed), (item.id, answer)
    assert 0 < unparsable < 0.01 * asked + 4 * (0.01 * asked) ** 0.5


def test_what_changes_a_reply_and_what_does_not(endpoint: SimulatedEndpoint) -> None:
    item = word_problems(1)[0]
    plain = endpoint.chat(request_for(item))[1]
    assert endpoint.chat({**request_for(item), "temperature": 0, "top_p": 0.5, "user": "x"})[1] == plain
    for change in ({"seed": 1}, {"max_tokens": 4000}, {"temperature": 0.7}):
        assert endpoint.chat({**request_for(item), **change})[1]["id"] != plain["id"]
    assert endpoint.chat(request_for(item, "qwen-2.5-32B"))[1]["id"] != plain["id"]
    hub_name = endpoint.models()["data"][3]["id"]
    assert endpoint.chat(request_for(item, hub_name))[1]["choices"] == plain["choices"]


def test_prompts_that_differ_in_wording_alone_get_the_same_reply(endpoint: SimulatedEndpoint) -> None:
    """Of the same seed; only the tokens of the prompt differ."""
    for item in word_problems(40):
        shown = [Record("A", f"The answer is {item.gold}"), Record("B", "The answer is 7")]
        for told in ({"kind": "aggregate"}, {"kind": "critique"}, {"role": "Math/Engineer", "style": "step_by_step"}):
            plain, wordy = (
                endpoint.chat(asked(team_prompt([words], item, shown, header=words), **told))[1]
                for words in ("Weigh these:", "Rewrite what colleagues have handed in, step by step, and make a plan:")
            )
            assert plain["choices"] == wordy["choices"]
            assert plain["usage"]["prompt_tokens"] < wordy["usage"]["prompt_tokens"]
    turns = ({}, {"role": "a"}, {"instruction": "a"}, {"kind": "revise"}, {"style": "complex"})
    assert len({said(endpoint.chat({**request_for(item), "metadata": turn})[1]) for turn in turns}) == len(turns)


def test_wrong_replies_often_copy_a_wrong_record(ask: Ask) -> None:
    copied = own = 0
    for item in word_problems(400):
        strange = repr(float(item.gold) * 7 + 3)
        prompt = team_prompt(("An engineer.", RULES), item, [Record("A", f"The answer is {strange}")])
        text = ask(asked(prompt, "llama-3.2-3B", role="Math/Engineer"))
        answer = benchmark("gsm_hard").extract(item, text)
        if answer is not None and not correct(item, text):
            copied += float(answer) == float(strange)
            own += float(answer) != float(strange)
    assert copied + own > 200
    assert abs(copied / (copied + own) - 0.5) < 4 * 0.5 / (copied + own) ** 0.5


def test_plans_critiques_and_keywords_commit_to_nothing(
    ask: Ask, calibration: Calibration, pools: dict[str, Questions]
) -> None:
    item, its = pools["mmlu_pro"].pool[0], benchmark("mmlu_pro")
    record = Record("Engineer", its.present(item, calibration.answers(item).right))
    texts = {kind: ask(asked(team_prompt([], item, [record]), kind=kind)) for kind in ("plan", "search", "critique")}
    assert [its.extract(item, text) for text in texts.values()] == [None] * 3
    assert all(word in item.question for word in texts["search"].split(", "))
    stance = calibration.answers(item).stance(texts["critique"])
    assert not stance.is_final
    assert stance.is_right == ("no fault" in texts["critique"])


def test_a_choice_names_the_candidate_that_has_the_answer(ask: Ask, calibration: Calibration) -> None:
    """Of three candidates with different answers, the right one is named most often and a wrong one at times."""
    named: Counter[str] = Counter()
    for item in word_problems(40):
        known, its = calibration.answers(item), benchmark("gsm_hard")
        shown = zip("ABC", [*known.wrong[:2], known.right], strict=True)
        records = [Record(f"Candidate {letter}", its.present(item, one)) for letter, one in shown]
        text = ask(asked(team_prompt(["Which?"], item, records), "qwen-2.5-32B", kind="aggregate", form="letter"))
        named[text.rpartition("Candidate ")[2]] += 1
    assert sum(named[letter] for letter in "ABC") >= 35, "all but what cannot be parsed"
    assert named["C"] > named["A"] > 0


def test_usage_counts_the_texts_and_the_template_and_truncation_really_cuts(
    endpoint: SimulatedEndpoint, settings: Settings
) -> None:
    request, values = request_for(word_problems(1)[0], "llama-3.2-3B"), settings.parameters
    whole = endpoint.chat(request)[1]
    prompt = tokens.count(request["messages"][0]["content"]) + values.message_tokens + values.prompt_tokens
    text = said(whole)
    assert whole["choices"][0]["finish_reason"] == "stop"
    assert whole["usage"] == {
        "prompt_tokens": prompt,
        "completion_tokens": tokens.count(text),
        "total_tokens": prompt + tokens.count(text),
    }
    for limit in (1, 7, 40):
        [choice], usage = (endpoint.chat({**request, "max_tokens": limit})[1][part] for part in ("choices", "usage"))
        assert choice["finish_reason"] == "length"
        assert usage["completion_tokens"] == limit == tokens.count(choice["message"]["content"])


@pytest.mark.parametrize(
    "change",
    [
        {"model": "nobody"},
        {"messages": []},
        {"max_tokens": 0},
        {"stream": True},
        {"response_format": {"type": "json_schema"}},
        {"metadata": {"kind": "solved"}},
    ],
)
def test_bad_requests_are_refused_in_the_usual_form(endpoint: SimulatedEndpoint, change: dict[str, Any]) -> None:
    found, body = endpoint.chat({**request_for(word_problems(1)[0]), **change})
    assert found == (404 if "model" in change else 400)
    assert set(body["error"]) == {"message", "type", "param", "code"}


def test_an_over_long_prompt_is_refused_and_a_long_one_clamps(endpoint: SimulatedEndpoint) -> None:
    room = next(entry["max_model_len"] for entry in endpoint.models()["data"] if entry["root"] == "qwen-2.5-14B")
    status, body = endpoint.chat(asked((Message("user", "word " * (room + 5)),)))
    assert status == 400
    assert body["error"]["code"] == "context_length_exceeded"
    status, body = endpoint.chat(asked((Message("user", "word " * (room - 17)),)))
    assert status == 200
    assert body["usage"]["total_tokens"] <= room
    assert body["choices"][0]["finish_reason"] == "length"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=300), st.integers(0, 40))
@example("a\x1cb\x85c\u2028d\u00a0e", 3)
@example("e\u0301 \u0301x 漢字 and [SEP]glued [MASK]", 5)
@example("x" * 250 + " \r\n\t y", 9)
@example("word " * 5000, 4999)
@example("", 0)
def test_counts_and_cuts_are_the_tokenizer_s(text: str, limit: int) -> None:
    def directly(one: str) -> int:
        return len(tokens._tokenizer().encode(one, add_special_tokens=False).ids)

    kept = tokens.cut(text, limit)
    assert tokens.count(text) == directly(text)
    assert text.startswith(kept)
    assert directly(kept) <= limit
    assert kept == text or directly(text) > limit
