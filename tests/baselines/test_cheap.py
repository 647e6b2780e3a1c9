"""Single calls, self-consistency, kNN router and cascade: the backbones called, number of calls, chosen reply."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from baselines import cot
from baselines.cheap import cascade, knn_router, self_consistency
from gmr.paths import Branch
from harness.agents import rng
from harness.agents.prompts import question_prompt
from harness.agents.roles import by_key
from harness.benchmarks.programs import fenced
from harness.errors import UserError
from harness.llm.request import Message, Reply, Request
from harness.runner.setting import Matched, build
from harness.scripted import backbones, setting
from tests.fixtures import CODE, FAILED, ITEMS, RULES, Client, embedding, log, questions, right_if, runtime, trained

TRAIN = questions(6, "t")
GOOD, BAD = fenced("def double(x): good"), fenced("def double(x): bad")


async def solved(
    method: Any, client: Client, item: Any = ITEMS[0], greedy: bool = False
) -> tuple[str, list[tuple[str, Request]]]:
    before = len(client.asked)
    context = runtime(client, greedy=greedy).context(item)
    return await method.solve(item, context), client.asked[before:]


@pytest.mark.parametrize("style", ["", "step_by_step", "complex"])
async def test_a_single_call_is_one_at_temperature_zero_static_first(style: str) -> None:
    module, config, opening = "baselines.single", dict[str, str](), ""
    if style:
        module, config, opening = "baselines.cot", {"style": style}, f"{cot.INSTRUCTIONS[style]}\n\n"
    client = Client(lambda *_: "The answer is 3")
    context = runtime(client).context(ITEMS[0])
    trajectory = context.close(await build(module, setting(), config).solve(ITEMS[0], context))
    assert trajectory.answer == "The answer is 3"
    [(backbone, request)] = client.asked
    assert backbone == "small"
    assert request.messages == (Message("user", f"{opening}{RULES}\n\nQuestion:\nQuestion q0?"),)
    assert (request.temperature, request.max_tokens, request.draw) == (0.0, 2048, 0)
    [call] = trajectory.calls
    assert (trajectory.depth, call.purpose, call.is_step) == (1, style or "solve", True)


async def test_every_backbone_is_asked_every_training_question_once_as_single_asks_it(tmp_path: Path) -> None:
    client = Client(right_if("large"))
    method = await trained(knn(), tmp_path, client, TRAIN)
    assert sorted((name, request.messages) for name, request in client.asked) == sorted(
        (name, question_prompt("", RULES, item)) for name in backbones() for item in TRAIN
    )
    assert {request.temperature for request in client.requests} == {0.0}
    assert method.correct.tolist() == [[0, 1]] * 6
    assert method.costs[0].tolist() == [one.cost(100, 10) for one in backbones().values()]
    assert log(tmp_path, "accuracy") == [0, 1]


async def test_samples_of_the_best_backbone_are_added_until_they_cost_what_is_to_be_met(tmp_path: Path) -> None:
    """Two and a half calls a question are two or three of them, as the question's number says."""
    client, counts = Client(right_if("large")), []
    method = await trained(consistency(), tmp_path, client, TRAIN)
    for item in questions(40):
        # Samples are drawn in a run that decodes greedily, too: else the vote would be one reply's.
        _, asked = await solved(method, client, item, greedy=len(counts) % 2 == 1)
        number = 3 - (rng.uniform("0", "0", "0", "toy", item.id, "1", "spared part of a sample", "0") >= 0.5)
        assert [(name, request.temperature) for name, request in asked] == [("large", 0.7)] * number
        assert len({request.draw for _, request in asked}) == number
        counts.append(number)
    assert math.isclose(np.mean(counts), 2.5, abs_tol=0.25)
    # Dear samples are fewer, and a single one may cost more than what is to be met.
    for tokens, number in (((1000, 100), 1), ((0, 0), 1), ((50, 5), 5)):
        client = Client(right_if("large"), tokens)
        numbers = [len((await solved(method, client, item))[1]) for item in questions(40)]
        assert {number} == set(numbers)
    with pytest.raises(UserError, match="under `matches` of its entry"):
        build("baselines.cheap.self_consistency", setting("pool"), {})


async def test_of_equally_good_backbones_the_cheapest_is_sampled(tmp_path: Path) -> None:
    assert (await trained(consistency(), tmp_path, Client(lambda *_: "right"), TRAIN)).best == "small"


@pytest.mark.parametrize(
    ("item", "texts", "winner"),
    [
        (ITEMS[0], ["answer is 1", "so answer is 2", "answer is 2"], 1),
        (ITEMS[0], ["answer is 1", "answer is 2", "answer is 02"], 1),
        (ITEMS[0], ["answer is 1", "answer is 2", "none"], 0),
        (ITEMS[0], ["", "answer is ", "answer is 2"], 2),
        (CODE, [BAD, BAD, GOOD], 2),
    ],
)
async def test_the_most_frequent_answer_wins_or_a_program_that_passes(item: Any, texts: list[str], winner: int) -> None:
    context = runtime(Client()).context(item)
    assert await self_consistency.vote(texts, item, context) == texts[winner]


async def test_the_backbone_that_is_worth_most_on_the_nearest_questions_is_asked(tmp_path: Path) -> None:
    """Small is right on even training questions, large on the first four; where both are, small is cheaper."""

    def answering(backbone: str, request: Request) -> str:
        number = next((at for at in range(6) if f"t{at}?" in request.messages[-1].content), 0)
        return "right" if (number % 2 == 0 if backbone == "small" else number < 4) else "wrong"

    client = Client(answering)
    worth = np.array([[1 - number % 2, number < 4] for number in range(6)], float)
    costs = np.array([one.cost(100, 10) for one in backbones().values()])
    vectors = np.stack([embedding(item.question) for item in TRAIN])
    for neighbours, weight in ((1, 0.0), (1, 20.0), (3, 20.0), (100, 20.0), (3, 0.5 / costs[1])):
        method = await trained(knn(neighbours, weight), tmp_path / f"{neighbours} {weight}", client, TRAIN)
        for item in ITEMS:
            nearest = np.argsort(-vectors @ embedding(item.question))[:neighbours]
            expected = list(backbones())[int((worth[nearest] - weight * costs).mean(axis=0).argmax())]
            _, [(name, request)] = await solved(method, client, item)
            assert (name, request.temperature) == (expected, 0.0)
            assert request.messages == question_prompt("", RULES, item)


@pytest.mark.parametrize(
    ("config", "item", "replies", "asked", "tests"),
    [
        ({}, ITEMS[0], ["so answer is 7", "answer is 7"], "ss", []),
        ({}, ITEMS[0], ["answer is 7", "answer is 8", "answer is 9"], "ssl", []),
        ({}, ITEMS[0], ["answer is ", "answer is ", "nothing"], "ssl", []),
        ({}, ITEMS[0], [FAILED, FAILED, FAILED], "ssl", []),
        ({}, CODE, [GOOD], "s", ["passed"]),
        ({}, CODE, [BAD, "no program"], "sl", ["failed"]),
        ({"without_tests": "accept"}, ITEMS[0], ["answer is "], "s", []),
        ({"order": "dearest_first", "without_tests": "accept"}, ITEMS[0], ["answer is "], "l", []),
        ({"order": "dearest_first"}, CODE, [BAD, BAD], "ls", ["failed"]),
    ],
)
async def test_a_cascade_stops_where_samples_agree_or_tests_pass(
    config: dict[str, Any], item: Any, replies: list[str | Reply], asked: str, tests: list[str]
) -> None:
    client = Client(lambda *_: replies[len(client.asked) - 1])
    pool = dict(reversed(backbones().items()))
    method = cascade.build(setting("pool", pool=pool, benchmark="toy"), cascade.Config(**config))
    context = runtime(client, greedy=True).context(item)
    trajectory = context.close(await method.solve(item, context))
    accepted = replies[0 if asked == "ss" else -1]
    assert trajectory.answer == ("" if accepted is FAILED else accepted)
    assert "".join(name[0] for name, _ in client.asked) == asked
    assert [decision.choice for decision in trajectory.decisions] == tests
    temperatures = [0.7 if asked[:2] == "ss" and name == "small" else 0.0 for name, _ in client.asked]
    assert [request.temperature for request in client.requests] == temperatures
    places = [(1, 0), (1, 1), (2, 0)] if asked[:2] == "ss" else [(1, 0), (2, 0)]
    assert [(call.step, call.slot) for call in trajectory.calls] == places[: len(asked)]
    assert len({request.key for request in client.requests}) == len(asked)
    assert (trajectory.failed_call is not None) == (FAILED in replies)


async def test_a_cascade_of_roles_asks_what_an_enumeration_asked() -> None:
    keys = ["Code/ProgrammingExpert", "Code/AlgorithmDesigner"]
    client, other = (Client(lambda *_: BAD) for _ in keys)
    method = cascade.build(setting("small"), cascade.Config(roles=keys, without_tests="accept"))
    context = runtime(client).context(CODE)
    trajectory = context.close(await method.solve(CODE, context))
    assert [(call.role, call.step) for call in trajectory.calls if call.is_step] == [(keys[0], 1), (keys[1], 2)]
    for key in keys:
        await Branch(by_key()[key], "small", True).solve(CODE, runtime(other).context(CODE))
    assert [request.key for request in client.requests] == [request.key for request in other.requests]


def consistency(**changes: Any) -> self_consistency.SelfConsistency:
    matched = Matched("gmr", 2.5 * backbones()["large"].cost(100, 10), 2.0)
    row = setting("pool", **{"benchmark": "toy", "matched": matched, **changes})
    return self_consistency.build(row, self_consistency.Config())


def knn(neighbours: int = 1, cost_weight: float = 20.0, **changes: Any) -> knn_router.KNNRouter:
    row = setting("pool", **{"benchmark": "toy", **changes})
    return knn_router.build(row, knn_router.Config(neighbours=neighbours, cost_weight=cost_weight))
