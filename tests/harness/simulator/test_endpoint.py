from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from harness.agents.prompts import Record, agent_prompt, team_prompt
from harness.agents.roles import role
from harness.benchmarks import benchmark
from harness.benchmarks.items import Item
from harness.files import ROOT
from harness.llm.backbones import Backbone
from harness.simulator import SimulatedEndpoint, World, tokens
from harness.simulator.contributions import Contribution
from harness.simulator.parameters import STYLES, Settings
from harness.simulator.reading import Reading
from harness.simulator.replies import Writer

from .samples import Questions, choices, request_for, word_problems

Ask = Callable[[dict[str, Any]], str]
AGGREGATOR = "Weigh the analyses of the others and commit to the single most reliable answer."


KEYS = ["math", "gsm_hard", "mbpp", "humaneval", "mmlu_pro"]
INSTRUCTIONS = ["Solve.", "Make a plan.", "Point out the worst flaw.", AGGREGATOR]
RECORDS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
    st.sampled_from(
        ["", "```python\n```", "```python\n#\n```", "The answer is", "The answer is 1e999", "\\boxed{}", "hello"]
    ),
    st.from_regex(r"\A(The answer is )?\\boxed\{[-A-J0-9./{}x ]*\}\Z"),
)
# Other work on the machine must not decide whether a property holds.
relaxed = hypothesis_settings(deadline=None)


def messages(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"role": role, "content": content} for role, content in pairs]


def correct(item: Item, text: str) -> bool:
    answer = benchmark(item.benchmark).extract(item, text)
    return answer is not None and benchmark(item.benchmark).same(item, answer, item.gold)


def test_accuracy_and_lengths_land_on_their_targets(
    ask: Ask, world: World, settings: Settings, pools: dict[str, Questions], backbones: dict[str, Backbone]
):
    items = pools["gsm_hard"].pool
    for style in STYLES:
        for backbone, published in settings.accuracy["gsm_hard"][style].items():
            replies = [ask(request_for(item, backbone, style)) for item in items]
            share = fmean(correct(item, reply) for item, reply in zip(items, replies, strict=True))
            # Most questions are decided by their latents, so the binomial error is an upper bound.
            deviation = (published * (100 - published) / len(items)) ** 0.5
            assert abs(100 * share - published) < 3.5 * deviation, (style, backbone)
            target = world.benchmarks["gsm_hard"].tokens[style][backbone]
            spread = settings.parameters.length_sd / len(items) ** 0.5
            assert fmean(map(tokens.count, replies)) == pytest.approx(target, rel=4 * spread + 0.01)


def test_replies_of_every_benchmark_parse_and_are_right_or_from_the_pool(
    ask: Ask, world: World, pools: dict[str, Questions]
):
    for pool in pools.values():
        unparsable = 0
        for item in pool.pool:
            known = world.answers(item)
            for seed in range(3):
                text = ask(request_for(item, seed=seed))
                answer = known.benchmark.extract(item, text)
                if answer is None or not (item.code is None or f"def {item.code.entry_point}" in answer):
                    unparsable += 1
                    continue
                allowed = (item.gold, known.right, *known.wrong)
                assert any(known.benchmark.same(item, answer, one) for one in allowed), (item.id, answer)
        assert unparsable <= 0.01 * 3 * len(pool.pool) + 4 * (0.03 * len(pool.pool)) ** 0.5


def test_wrong_answers_follow_their_weights(world: World, settings: Settings):
    writer = Writer(world, 1.0)
    answers = world.answers(word_problems(1)[0])
    counts = Counter(answers.wrong.index(writer.wrong(answers, f"key {n}")) for n in range(2000))
    for place, weight in enumerate(settings.parameters.wrong_weights):
        assert abs(counts[place] / 2000 - weight) < 4 * (weight * (1 - weight) / 2000) ** 0.5


def test_the_stated_share_is_unparsable_and_holds_no_answer(ask: Ask, pools: dict[str, Questions]):
    items = pools["gsm_hard"].pool
    texts = [(item, ask(request_for(item, seed=seed))) for item in items for seed in range(5)]
    missing = [text for item, text in texts if benchmark("gsm_hard").extract(item, text) is None]
    assert abs(len(missing) - 0.01 * len(texts)) < 4 * (0.01 * 0.99 * len(texts)) ** 0.5
    for key in ("math", "mmlu_pro", "mbpp", "humaneval"):
        item = pools[key].pool[0]
        for text in missing:
            answer = benchmark(key).extract(item, text)
            assert answer is None, (key, text)


def test_order_and_process_change_nothing(
    endpoint: SimulatedEndpoint, world_path: Any, pools: dict[str, Questions], settings: Settings, world: World
):
    requests = [request_for(item, name) for item in word_problems(12) for name in ("llama-3.1-8B", "qwen-2.5-32B")]
    forwards = [endpoint.chat(request) for request in requests]
    backwards = [SimulatedEndpoint(world).chat(request) for request in reversed(requests)]
    assert forwards == backwards[::-1]
    code = (
        "import json, sys, pathlib\n"
        "sys.path.insert(0, 'tests/harness')\n"
        "from simulator.samples import Questions, word_problems, request_for\n"
        "from harness.simulator import SimulatedEndpoint, World\n"
        "pools = {'gsm_hard': Questions(word_problems(400))}\n"
        "endpoint = SimulatedEndpoint(World.load(pathlib.Path(sys.argv[1]), pools))\n"
        "requests = [request_for(i, n) for i in word_problems(12) for n in ('llama-3.1-8B', 'qwen-2.5-32B')]\n"
        "print(json.dumps([endpoint.chat(request) for request in requests]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(world_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == json.loads(json.dumps(forwards))


def test_what_changes_a_reply_and_what_does_not(endpoint: SimulatedEndpoint):
    item = word_problems(1)[0]
    plain = endpoint.chat(request_for(item))[1]
    assert endpoint.chat({**request_for(item), "temperature": 0, "top_p": 0.5, "user": "x"})[1] == plain
    assert endpoint.chat(request_for(item, seed=1))[1]["id"] != plain["id"]
    assert endpoint.chat(request_for(item, max_tokens=4000))[1]["id"] != plain["id"]
    assert endpoint.chat(request_for(item, temperature=0.7))[1]["id"] != plain["id"]
    hub_name = endpoint.models()["data"][3]["id"]
    named = endpoint.chat(request_for(item, hub_name))[1]
    assert named["choices"] == plain["choices"]


def test_evidence_moves_the_probability(world: World):
    writer, gold = Writer(world, 1.0), "The answer is {}"
    for item in word_problems(30):
        answers = world.answers(item)

        def probability(*texts: str, answers: Any = answers, item: Item = item) -> float:
            contributions = [Contribution(text, own=False) for text in texts]
            reading = Reading(
                item, "direct", "aggregate", None, contributions, feedback=False, program=False, choice=False
            )
            return writer.probability("qwen-2.5-32B", answers, reading)

        right, wrong = gold.format(item.gold), gold.format(answers.wrong[0])
        assert probability(right) > probability() > probability(wrong)
        assert probability(right, "Hence so.\n" + right) > probability(right, "Hence so.\n" + wrong)


def test_wrong_replies_often_copy_a_wrong_record(ask: Ask, world: World):
    copied = own = 0
    for item in word_problems(400):
        strange = repr(float(item.gold) * 7 + 3)
        prompt = agent_prompt(
            role("Math/Engineer"), benchmark("gsm_hard").output_rules, item, [Record("A", f"The answer is {strange}")]
        )
        text = ask({"model": "llama-3.2-3B", "messages": [message._asdict() for message in prompt], "max_tokens": 4096})
        answer = benchmark("gsm_hard").extract(item, text)
        if answer is not None and not correct(item, text):
            copied += float(answer) == float(strange)
            own += float(answer) != float(strange)
    assert copied + own > 200
    assert abs(copied / (copied + own) - 0.5) < 4 * 0.5 / (copied + own) ** 0.5


def test_plans_critiques_and_keywords_commit_to_nothing(ask: Ask, world: World):
    item = choices(1)[0]
    rules = benchmark("mmlu_pro").output_rules
    for key in ("Code/PlanSolver", "Commonsense/WikiSearcher"):
        prompt = agent_prompt(role(key), rules, item)
        text = ask({"model": "qwen-2.5-14B", "messages": [message._asdict() for message in prompt]})
        assert benchmark("mmlu_pro").extract(item, text) is None
    assert text == ", ".join(part for part in text.split(", ") if part in item.question)
    record = f"[1] Engineer:\n{benchmark('mmlu_pro').present(item, world.answers(item).right)}"
    critic = messages(("user", f"Point out the most important defect.\n\n{item.question}\n\n{record}"))
    text = ask({"model": "qwen-2.5-14B", "messages": critic})
    stance = world.answers(item).stance(text)
    assert stance is not None
    assert not stance.final
    assert stance.right == ("no fault" in text)


def test_an_executing_role_writes_a_program_that_computes_the_answer(ask: Ask):
    for item in word_problems(5):
        prompt = agent_prompt(role("Math/ProgrammingExpert"), benchmark("gsm_hard").output_rules, item)
        text = ask({"model": "qwen-2.5-14B", "messages": [message._asdict() for message in prompt], "max_tokens": 4096})
        if "```python" not in text:
            continue
        names: dict[str, Any] = {}
        exec(text.split("```python\n")[1].split("```")[0], names)  # noqa: S102 - one assignment of our own
        assert float(names["answer"]) == float(benchmark("gsm_hard").extract(item, text) or "nan")


def test_a_program_is_written_wherever_one_is_asked_for(ask: Ask):
    item = word_problems(1)[0]
    asked = messages(("user", f"Write a program that leaves its result in a variable named answer.\n\n{item.question}"))
    text = ask({"model": "qwen-2.5-14B", "messages": asked, "max_tokens": 4096})
    assert "```python\nanswer = " in text
    assert "```python" not in ask({"model": "qwen-2.5-14B", "messages": messages(("user", item.question))})


def test_a_choice_names_the_candidate_that_has_the_answer(ask: Ask, world: World):
    """Of three candidates with different answers, the right one is named most often and a wrong one at times."""
    named: Counter[str] = Counter()
    for item in word_problems(40):
        known, its = world.answers(item), benchmark("gsm_hard")
        shown = [*known.wrong[:2], known.right]
        records = [
            Record(f"Candidate {letter}", its.present(item, one)) for letter, one in zip("ABC", shown, strict=True)
        ]
        prompt = team_prompt(["Name the letter of the candidate that is most consistent."], item, records)
        text = ask({"model": "qwen-2.5-32B", "messages": [message._asdict() for message in prompt]})
        named[text.rpartition("Candidate ")[2]] += 1
    assert sum(named[letter] for letter in "ABC") >= 35, "all but what cannot be parsed"
    assert named["C"] > named["A"] > 0


def test_a_prompt_without_a_known_question_gets_a_generic_reply(ask: Ask):
    text = ask({"model": "qwen-2.5-14B", "messages": messages(("user", "Who goes there?"))})
    assert text
    assert not any(character.isdigit() for character in text)


def test_a_schema_is_answered_by_an_instance(ask: Ask):
    wanted = {"type": "object", "properties": {"next": {"enum": ["a", "b"]}}, "required": ["next"]}
    asked = {"type": "json_schema", "json_schema": {"name": "step", "schema": wanted}}
    valid = 0
    for n in range(200):
        request = request_for(word_problems(1)[0], seed=n, response_format=asked)
        try:
            valid += json.loads(ask(request))["next"] in {"a", "b"}
        except ValueError:
            continue
    assert 180 <= valid < 200


@pytest.mark.parametrize("limit", [1, 7, 40])
def test_truncation_really_cuts(endpoint: SimulatedEndpoint, limit: int):
    item = word_problems(1)[0]
    _, body = endpoint.chat(request_for(item, "llama-3.2-3B", max_tokens=limit))
    choice, usage = body["choices"][0], body["usage"]
    assert choice["finish_reason"] == "length"
    assert usage["completion_tokens"] == limit == tokens.count(choice["message"]["content"])
    assert usage["total_tokens"] == usage["prompt_tokens"] + limit


def test_usage_counts_the_texts_and_the_template(endpoint: SimulatedEndpoint, settings: Settings):
    request = request_for(word_problems(1)[0])
    _, body = endpoint.chat(request)
    values = settings.parameters
    prompt = tokens.count(request["messages"][0]["content"]) + values.message_tokens + values.prompt_tokens
    assert body["usage"]["prompt_tokens"] == prompt
    assert body["usage"]["completion_tokens"] == tokens.count(body["choices"][0]["message"]["content"])
    assert body["choices"][0]["finish_reason"] == "stop"


def test_length_scale_shortens_and_decides_nothing(world: World, endpoint: SimulatedEndpoint):
    short = SimulatedEndpoint(world, length_scale=0.2)
    items = word_problems(100)
    pairs = [(endpoint.chat(request_for(item))[1], short.chat(request_for(item))[1]) for item in items]
    lengths = [[body["usage"]["completion_tokens"] for body in side] for side in zip(*pairs, strict=True)]
    assert fmean(lengths[1]) == pytest.approx(0.2 * fmean(lengths[0]), rel=0.1)
    for item, (long, brief) in zip(items, pairs, strict=True):
        texts = [body["choices"][0]["message"]["content"] for body in (long, brief)]
        assert correct(item, texts[0]) == correct(item, texts[1])


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"model": "nobody"}, 404),
        ({"model": None}, 404),
        ({"messages": []}, 400),
        ({"messages": [{"role": "user"}]}, 400),
        ({"messages": [{"role": "robot", "content": "x"}]}, 400),
        ({"messages": [{"role": "user", "content": "\ud800"}]}, 400),
        ({"messages": "hello"}, 400),
        ({"max_tokens": 0}, 400),
        ({"max_tokens": True}, 400),
        ({"max_tokens": "many"}, 400),
        ({"temperature": "hot"}, 400),
        ({"seed": 0.5}, 400),
        ({"stream": True}, 400),
        ({"n": 2}, 400),
    ],
)
def test_bad_requests_are_refused_in_the_usual_form(endpoint: SimulatedEndpoint, change: dict[str, Any], status: int):
    found, body = endpoint.chat({**request_for(word_problems(1)[0]), **change})
    assert found == status
    assert set(body["error"]) == {"message", "type", "param", "code"}


def test_an_over_long_prompt_is_refused_and_a_long_one_clamps(endpoint: SimulatedEndpoint):
    room = next(entry["max_model_len"] for entry in endpoint.models()["data"] if entry["root"] == "qwen-2.5-14B")
    request = {"model": "qwen-2.5-14B", "messages": messages(("user", "word " * (room + 5)))}
    status, body = endpoint.chat(request)
    assert status == 400
    assert body["error"]["code"] == "context_length_exceeded"
    nearly = {"model": "qwen-2.5-14B", "messages": messages(("user", "word " * (room - 17))), "max_tokens": 4000}
    status, body = endpoint.chat(nearly)
    assert status == 200
    assert body["usage"]["total_tokens"] <= room
    assert body["choices"][0]["finish_reason"] == "length"


@relaxed
@given(st.lists(RECORDS, max_size=3), st.sampled_from(KEYS), st.sampled_from(INSTRUCTIONS))
def test_any_record_is_survived(
    endpoint: SimulatedEndpoint, pools: dict[str, Questions], records: list[str], key: str, task: str
):
    item = pools[key].pool[0]
    block = "\n".join(f"[{n}] Someone:\n{text}" for n, text in enumerate(records, 1))
    request = {"model": "llama-3.2-3B", "messages": messages(("user", f"{task}\n{item.question}\n{block}"))}
    status, body = endpoint.chat(request)
    assert status == 200
    assert body["choices"][0]["message"]["content"]


def test_models_say_that_they_are_simulated(endpoint: SimulatedEndpoint, backbones: dict[str, Backbone]):
    entries = endpoint.models()["data"]
    assert [entry["id"] for entry in entries] == [backbone.model for backbone in backbones.values()]
    assert {entry["owned_by"] for entry in entries} == {"simulated"}
