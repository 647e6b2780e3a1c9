"""Simulated replies: reading of prompts, content, length, the response model; the same in process and over HTTP."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist, correlation, fmean, median
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from harness.agents.prompts import HINTS_HEADER, Record, question_prompt, team_prompt
from harness.agents.roles import catalogue
from harness.benchmarks.catalogue import benchmark, keys
from harness.benchmarks.items import Item
from harness.benchmarks.prepare import load_items
from harness.errors import UserError
from harness.files import ROOT
from harness.llm.backbones import ENDPOINTS, Endpoint, load
from harness.llm.request import SIMULATED, Message, Metadata, Request
from harness.runner import cell
from harness.runner.plan import plan
from harness.runner.results import SIMULATED_WARNING, TABLES
from harness.simulator import response_model
from harness.simulator.answers import answers_to
from harness.simulator.endpoint import QuestionIndex, SimulatedEndpoint, count_tokens, read, records
from harness.simulator.response_model import draw_answer, score
from tests.faults import Simulation
from tests.harness.llm.serving import served_at
from tests.small_run import GMR, SINGLE, prepare_questions, results, smoke

Questions = dict[str, list[Item]]
MODELS = load(ROOT / "config" / "backbones.yaml")
VALUES = response_model.load()
PHI = NormalDist().cdf


def word_problems(count: int) -> list[Item]:
    texts = "Crate {} weighs {} grams and holds {} jars. What do {} crates weigh?"
    numbers = [(n, n * 37 + 5, n % 11, n % 7 + 3) for n in range(count)]
    return [Item(str(row[0]), "gsm_hard", texts.format(*row), repr(float(row[1] * row[3]))) for row in numbers]


def mini(key: str, count: int) -> list[Item]:
    return load_items(key, "embedded").items[:count]


ITEM = word_problems(1)[0]


@pytest.fixture(scope="module")
def questions() -> Questions:
    sizes = {"math": 160, "mbpp": 3, "humaneval": 3, "mmlu_pro": 100}
    return {"gsm_hard": word_problems(400), **{key: mini(key, size) for key, size in sizes.items()}}


@pytest.fixture(scope="module")
def endpoint(questions: Questions) -> SimulatedEndpoint:
    return SimulatedEndpoint(VALUES, MODELS.values(), questions)


def request_for(item: Item, backbone: str = "qwen-2.5-14B", purpose: str = "solve", **fields: Any) -> Request:
    prompt = question_prompt("", benchmark(item.benchmark).output_rules, item)
    return replace(asked(prompt, backbone, purpose=purpose), **fields)


def asked(messages: Sequence[Message], backbone: str = "qwen-2.5-14B", **told: str) -> Request:
    return Request(MODELS[backbone].model, SIMULATED, tuple(messages), max_tokens=4096, metadata=Metadata(**told))


@pytest.mark.parametrize(("backbone", "purpose"), [("llama-3.2-3B", "my own"), ("qwen-2.5-32B", "complex")])
def test_accuracy_and_lengths(endpoint: SimulatedEndpoint, questions: Questions, backbone: str, purpose: str) -> None:
    skill, told = VALUES.backbones[backbone], VALUES.purpose(Metadata("", purpose))
    all_answers = [answers_to(item) for item in questions["gsm_hard"]]
    replies = [endpoint.complete(request_for(answers.item, backbone, purpose)).text for answers in all_answers]
    pairs = zip(all_answers, replies, strict=True)
    share = fmean(answers.find_answer(reply) == answers.right for answers, reply in pairs)
    expected = skill.skill * (1 - VALUES.malformed)
    assert expected - 0.08 < share < expected + 0.08 + told.score / 3
    wanted = skill.tokens * told.length
    assert median(map(count_tokens, replies)) == pytest.approx(wanted, rel=0.1)


def test_replies_parse_and_are_right_or_from_the_pool(endpoint: SimulatedEndpoint, questions: Questions) -> None:
    malformed = []
    for item in (item for items in questions.values() for item in items):
        answers = answers_to(item)
        assert not any(answers.benchmark.same(item, wrong, item.gold) for wrong in answers.wrong)
        answer = answers.find_answer(endpoint.complete(request_for(item)).text)
        malformed.append(answer is None)
        assert answer in (None, answers.right, *answers.wrong)
    expected = VALUES.malformed * len(malformed)
    assert 0 < sum(malformed) < expected + 4 * expected**0.5


def test_what_changes_a_reply_and_what_does_not(endpoint: SimulatedEndpoint, questions: Questions) -> None:
    item = ITEM
    plain = endpoint.complete(request_for(item))
    assert endpoint.complete(request_for(item, revision=endpoint.revision)) == plain
    for change in ({"draw": 1}, {"max_tokens": 4000}, {"temperature": 0.7}, {"metadata": Metadata("a")}):
        assert endpoint.complete(request_for(item, **change)) != plain
    assert endpoint.complete(request_for(item, "qwen-2.5-32B")) != plain
    turned = {key: items[::-1] for key, items in reversed(questions.items())}
    again = SimulatedEndpoint(VALUES, list(MODELS.values())[::-1], turned)
    assert again.complete(request_for(item)) == plain, "whatever the order of questions and backbones"
    others = {**questions, "math": questions["math"][1:]}
    assert SimulatedEndpoint(VALUES, MODELS.values(), others).revision != endpoint.revision


def test_usage_counts_the_texts_and_the_template_and_truncation_really_cuts(endpoint: SimulatedEndpoint) -> None:
    request = request_for(ITEM, "llama-3.2-3B")
    for limit in (4000, 40, 7, 1):
        reply = endpoint.complete(replace(request, max_tokens=limit))
        assert reply.finish_reason == ("stop" if limit == 4000 else "length")
        [message] = request.messages
        prompt, completion = count_tokens(message.content), count_tokens(reply.text)
        assert (reply.prompt_tokens, reply.completion_tokens) == (prompt + 14, completion)
        assert limit in (completion, 4000)


def test_an_over_long_prompt_is_refused_and_a_long_one_clamps(endpoint: SimulatedEndpoint) -> None:
    room = MODELS["qwen-2.5-14B"].context_length
    refused = endpoint.complete(asked((Message("user", "word " * (room + 5)),)))
    assert f"maximum context length is {room} tokens" in refused.error
    reply = endpoint.complete(asked((Message("user", "word " * (room - 17)),)))
    assert reply.prompt_tokens + reply.completion_tokens == room
    assert (reply.error, reply.finish_reason) == (None, "length")


def test_a_backbone_without_a_skill_and_a_broken_file_are_refused_in_one_line(tmp_path: Any) -> None:
    with pytest.raises(UserError, match=r"did you mean 'llama-3.2-3B'\?.*config/simulator.yaml; state its skill"):
        VALUES.skill("llama-3.2-3b")
    (tmp_path / "simulator.yaml").write_text(response_model.FILE.read_text().replace("skill: 0.4", "skill: 40", 1))
    with pytest.raises(UserError, match=r"^[^\n]*skill[^\n]*$"):
        response_model.load(tmp_path / "simulator.yaml")


def test_records_are_found_where_they_begin_in_turn() -> None:
    shown = [Record("Engineer", "First.\n\nStill first."), Record("Economist", "Second.")]
    for hints in ("", f"{HINTS_HEADER} 1; 2"):
        prompt = team_prompt(("An engineer.", "RULES"), ITEM, shown, hints)
        assert read(prompt, QuestionIndex([ITEM])) == (ITEM, [record.text for record in shown])
    assert records("Intro\n[1] A:\nx\n[2] B:\nz") == ["x", "z"]
    assert records("no records [1] here: none") == []
    assert records(f"[1] A:\nx\n\n{HINTS_HEADER} 1; 2\n\n[2] B:\ny") == [f"x\n\n{HINTS_HEADER} 1; 2", "y"]


def test_only_simulated_weights_are_told_what_a_call_is_for() -> None:
    told = Metadata("Math/Critic", "critique")
    for revision, is_told in ((None, False), ("0123abc", False), ("simulated-1-2-1", True)):
        plain, critique = (Request("m", revision, (), metadata=metadata) for metadata in (None, told))
        assert (plain.key != critique.key, critique.record != plain.record) == (is_told, is_told)
        assert critique.body().get("metadata") == (told._asdict() if is_told else None)


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


@pytest.mark.parametrize("key", keys())
def test_an_oracle_beats_the_best_constant_choice_by_ten_points(key: str) -> None:
    told = [Metadata(), *(Metadata(role.key) for role in catalogue())]
    options = [(backbone, one) for backbone in VALUES.backbones for one in told]
    chances = np.array([[PHI(score(item, *option, VALUES)) for option in options] for item in mini(key, 160)])
    constant, oracle = chances.mean(axis=0).max(), chances.max(axis=1).mean()
    assert oracle - constant > 0.1


@pytest.mark.usefixtures("no_waiting")
async def test_a_cell_has_the_same_bytes_through_delays_and_faults(folder: Path) -> None:
    prepare_questions()
    planned = plan(smoke(), GMR)
    await cell.run(planned)
    in_process = results(folder, str(planned.folder))
    shutil.rmtree(planned.folder)
    async with served_at(Simulation(planned.in_process, share=0.3, latency_s=0.01, hang_s=0.2)) as url:
        there = dict.fromkeys(planned.cell.backbones, Endpoint(url=url))
        await cell.run(replace(planned, endpoints=there, in_process=None))
    assert results(folder, str(planned.folder)) == in_process
    assert "MalformedReplyError: " in (planned.folder / "attempts.jsonl").read_text()


@pytest.mark.parametrize(
    ("left_out", "weights", "revision"),
    [(("owned_by",), None, None), (("owned_by", "root"), "random", "0123abc")],
)
async def test_whatever_names_a_simulation_or_stands_in_for_a_model_marks_a_run(
    left_out: Sequence[str], weights: str | None, revision: str | None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare_questions()
    planned = plan(smoke(), SINGLE)
    simulation, original = planned.in_process, planned.cell.backbones[SINGLE.backbone].model
    monkeypatch.setattr(simulation, "revision", revision or simulation.revision)
    monkeypatch.setenv(ENDPOINTS, "endpoints.yaml")
    async with served_at(Simulation(simulation, without=left_out)) as url:
        Path("endpoints.yaml").write_text(f"{SINGLE.backbone}: {{url: {url!r}, served_name: {original}}}")
        asked = plan(smoke(endpoints="served", weights=weights), SINGLE)
        made = await cell.run(asked)
    assert made["simulated"]
    for name in TABLES:
        assert pq.read_schema(asked.folder / f"{name}.parquet").metadata[b"simulated"].decode() == SIMULATED_WARNING
