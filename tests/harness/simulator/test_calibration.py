"""The numbers of the simulation, calibrating to them, and writing and loading a calibration."""

import asyncio
import dataclasses
import json
import re
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.benchmarks import benchmark
from harness.benchmarks.code_grading import task_of
from harness.benchmarks.items import CodeTask, Item
from harness.errors import UserError
from harness.files import read_yaml
from harness.llm.backbones import Backbone
from harness.sandbox import Limits, Outcome, Program, Sandbox
from harness.simulator import Calibration, SimulatedEndpoint, tokens
from harness.simulator.build import build_calibration, fit_benchmark, mean_tokens, programs_for
from harness.simulator.contributions import QuestionIndex
from harness.simulator.parameters import DEFAULT_FILE, STYLES, Settings, load_settings
from harness.simulator.response_model import affinity, difficulty, log_location, sigmoid

from .samples import Questions, mini, request_for, word_problems

POOL = ["llama-3.2-3B", "llama-3.1-8B", "mistral-nemo-12B", "qwen-2.5-14B", "qwen-2.5-32B"]


@pytest.mark.parametrize(("key", "items"), [("gsm_hard", word_problems(300)), ("humaneval", mini("humaneval", 160))])
def test_expected_accuracy_is_the_published_one(key: str, items: list[Item], settings: Settings) -> None:
    values = settings.parameters
    found = fit_benchmark(key, items, POOL, settings)
    assert found == fit_benchmark(key, items[::-1], POOL, settings)
    for style in STYLES:
        for backbone, published in settings.accuracy[key][style].items():
            effect = 0.0 if style == "direct" else found.style[style][backbone]
            expected = fmean(
                (1 - values.unparsable_share)
                * sigmoid(
                    values.slope * (found.ability[backbone] - difficulty(item.question, item.difficulty, values))
                    + affinity(item.question, backbone, values)
                    + effect
                )
                for item in items
            )
            assert 100 * expected == pytest.approx(published, abs=0.01)
    for effects in found.style.values():
        average = (effects["qwen-2.5-14B"] + effects["qwen-2.5-32B"]) / 2
        assert effects["llama-3.2-3B"] == pytest.approx(average, abs=1e-5), "unpublished: the average effect"


def test_what_cannot_be_calibrated_is_refused(settings: Settings, backbones: dict[str, Backbone]) -> None:
    with pytest.raises(UserError, match="no test questions"):
        fit_benchmark("gsm_hard", [], POOL, settings)
    with pytest.raises(UserError, match="'gpt-0' on 'gsm_hard' to; add it to stated_accuracy > gsm_hard > direct"):
        fit_benchmark("gsm_hard", word_problems(5), ["gpt-0"], settings)
    with pytest.raises(UserError, match=r"no reply length.*'trivia'"):
        mean_tokens(settings, "trivia", "direct", backbones, 60.0)


def test_lengths_reproduce_the_published_cost(settings: Settings, backbones: dict[str, Backbone]) -> None:
    values = settings.parameters
    lengths = {style: mean_tokens(settings, "gsm_hard", style, backbones, 60.0) for style in STYLES}
    for style in STYLES:
        rules = tokens.count(benchmark("gsm_hard").output_rules)
        prompt = 60 + rules + values.style_prompt_tokens[style] + values.message_tokens + values.prompt_tokens
        for key, cost in getattr(settings.cost["gsm_hard"], style).items():
            a_question = (prompt * backbones[key].price_in + lengths[style][key] * backbones[key].price_out) / 1e6
            assert a_question * settings.cost["gsm_hard"].n == pytest.approx(cost)
    added = fmean(lengths["complex"][key] - lengths["direct"][key] for key in ("qwen-2.5-14B", "qwen-2.5-32B"))
    assert lengths["complex"]["llama-3.2-3B"] - lengths["direct"]["llama-3.2-3B"] == pytest.approx(added)
    loan = settings.borrowed_length["mbpp"]
    lender = mean_tokens(settings, "humaneval", "direct", backbones, loan.question_tokens)
    borrowed = mean_tokens(settings, "mbpp", "direct", backbones, 1.0)
    assert borrowed == {key: pytest.approx(loan.factor * mean) for key, mean in lender.items()}


@given(st.floats(20, 2000), st.floats(0.1, 0.6), st.lists(st.integers(0, 15), min_size=1, max_size=5))
def test_location_gives_the_wanted_mean(mean: float, sd: float, floors: list[int]) -> None:
    normal = np.random.default_rng(0).standard_normal(20000)
    lengths = np.exp(log_location(mean, sd, tuple(floors)) + sd * normal)
    assert fmean(float(np.mean(np.maximum(lengths, floor))) for floor in floors) == pytest.approx(mean, rel=0.02)


def test_the_same_questions_give_the_same_bytes_and_a_loaded_calibration_answers_like_the_built_one(
    pools: dict[str, Questions],
    calibration_path: Path,
    endpoint: SimulatedEndpoint,
    settings: Settings,
    backbones: dict[str, Backbone],
) -> None:
    async def again() -> Calibration:
        turned: Any = {key: Questions(pools[key].pool[::-1]) for key in reversed(pools)}
        async with Sandbox(Limits(cpu_s=5), workers=1) as sandbox:
            return await build_calibration(turned, settings, backbones, sandbox)

    assert asyncio.run(again()).content == calibration_path.read_bytes()
    loaded = SimulatedEndpoint(Calibration.load(calibration_path, pools))  # type: ignore[arg-type]
    assert loaded.models() == endpoint.models()
    for pool in pools.values():
        for item in pool.pool[:5]:
            assert loaded.chat(request_for(item)) == endpoint.chat(request_for(item))


def test_other_questions_are_refused(calibration_path: Path, pools: dict[str, Any], tmp_path: Path) -> None:
    changed = [dataclasses.replace(pools["math"].pool[0], gold="other"), *pools["math"].pool[1:]]
    with pytest.raises(UserError, match="other questions of math"):
        Calibration.load(calibration_path, {"math": Questions(changed)})  # type: ignore[dict-item]
    record = json.loads(calibration_path.read_text())
    del record["benchmarks"]["math"]
    (tmp_path / "w.json").write_text(json.dumps(record))
    with pytest.raises(UserError, match="not math"):
        Calibration.load(tmp_path / "w.json", pools)


DOUBLE = Item(
    id="d",
    benchmark="mbpp",
    question="Write double(n). Example: assert double(0) == 0",
    gold='def double(n):\n    """Twice n."""\n    return n * 2\n',
    code=CodeTask("double", "", "assert double(0) == 0\nassert double(3) == 6", ("assert double(0) == 0",)),
)


async def test_wrong_programs_fail_and_the_deceptive_ones_are_known() -> None:
    async with Sandbox(Limits(cpu_s=5)) as sandbox:
        for item in (DOUBLE, *mini("humaneval", 2), *mini("mbpp", 2)):
            task, (right, wrong) = task_of(item), await programs_for(item, benchmark(item.benchmark), sandbox)
            assert 1 <= len(wrong) <= 4
            for program in wrong:
                graded = await sandbox.run(Program(program.source, task.setup, task.checks))
                assert graded.outcome in {Outcome.WRONG_ANSWER, Outcome.EXCEPTION}
                shown = await sandbox.run(Program(program.source, task.setup, "\n".join(task.visible)))
                assert program.passes_visible == (shown.outcome is Outcome.PASSED and bool(task.visible))
            assert (await sandbox.run(Program(right, task.setup, task.checks))).outcome is Outcome.PASSED
        assert '"""' not in (await programs_for(DOUBLE, benchmark("mbpp"), sandbox))[0]


LETTERS = st.text(st.sampled_from("ab .?\n"), max_size=80)


@given(st.lists(LETTERS.filter(str.strip), min_size=1, max_size=8), LETTERS, LETTERS, st.data())
def test_the_longest_known_question_of_a_text_is_found(
    questions: list[str], before: str, after: str, data: st.DataObject
) -> None:
    text = before + data.draw(st.sampled_from(questions)) + after
    index = QuestionIndex([Item(str(n), "math", question, "1") for n, question in enumerate(questions)])
    found = index.find(text)
    item, start, end = found
    assert end - start == max(len(one.strip()) for one in questions if one.strip() in text)
    assert text[start:end] == item.question.strip()
    assert item.id == str([question.strip() for question in questions].index(item.question.strip()))


def changed(tmp_path: Path, old: str, new: str) -> Path:
    text = DEFAULT_FILE.read_text()
    assert old in text
    path = tmp_path / "simulator.yaml"
    path.write_text(text.replace(old, new, 1))
    return path


def test_every_assumed_number_lies_in_its_range() -> None:
    for name, entry in read_yaml(DEFAULT_FILE)["parameters"].items():
        (low, high), value = entry["range"], entry["value"]
        assert low <= (1.0 if isinstance(value, dict | list) else value) <= high, name


def test_what_is_stated_stands_beside_what_is_published_and_never_in_its_place(
    tmp_path: Path, settings: Settings
) -> None:
    weekdays = "{direct: {mine: 5.0}, step_by_step: {mine: 6.0}, complex: {mine: 7.0}}"
    stated = f"stated_accuracy: {{math: {{direct: {{mine: 12.0, qwen-2.5-14B: 1.0}}}}, weekdays: {weekdays}}}"
    found = load_settings(changed(tmp_path, "stated_accuracy: {}", stated)).accuracy
    assert found["math"]["direct"] == {**settings.accuracy["math"]["direct"], "mine": 12.0}
    assert found["weekdays"]["direct"] == {"mine": 5.0}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  slope:\n", "  slop:\n", "slop"),
        ("value: 5.0", "value: fast", "slope"),
        ("stated_accuracy: {}", "stated_accuracy: {math: {direct: {mine: 143.27}}}", "143.27"),
        ("stated_accuracy: {}", "stated_accuracy: {weekdays: {direct: {mine: 3.0}}}", "at least 3 items"),
        ("stated_cost: {}", "stated_cost: {weekdays: {n: 3}}", "missing"),
        ("stated_cost: {}", "stated_cost: {gsm_hard: {direct: 5}}", "gsm_hard.direct: 5 should be a mapping"),
        ("lender: gsm_hard", "lender: gsm_hart", "did you mean 'gsm_hard'?"),
    ],
)
def test_a_broken_file_is_refused_with_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = changed(tmp_path, old, new)
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        load_settings(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
