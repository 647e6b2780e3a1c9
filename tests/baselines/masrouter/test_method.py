"""Training and test as a whole: budget, learning, resumption, determinism, a router elsewhere."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from baselines.masrouter import build
from baselines.masrouter.method import MASRouter, Pool, utility
from harness.agents import results
from harness.agents.results import Answered
from harness.agents.roles import by_domain
from harness.benchmarks.items import Item
from harness.errors import UserError
from harness.llm.request import Reply, Request
from harness.runner.evaluation import evaluate
from harness.runner.progress import Progress
from harness.training.loop import CHECKPOINT, checkpoint
from tests.baselines.masrouter.world import (
    BACKBONES,
    ITEMS,
    MODE_NAMES,
    Answering,
    Client,
    config,
    content,
    method,
    pool,
    right_if,
    runtime,
    training,
)
from tests.scripted import setting

TINY: dict[str, Any] = {"epochs": {"default": 2}, "batch": 3}


def some(number: int) -> tuple[Item, ...]:
    return tuple(Item(id=f"t{at}", benchmark="toy", question=f"Task {at}?", gold="right") for at in range(number))


async def fitted(folder: Path, client: Any, seed: int = 0, questions: int = 4, **changes: Any) -> MASRouter:
    made = method(seed, **{**TINY, **changes})
    its = training(folder, client, some(questions), seed)
    await made.fit(its)
    its.finish()
    return made


async def asked(made: MASRouter, client: Any, items: tuple[Item, ...] = ITEMS[4:], seed: int = 0) -> list[Answered]:
    place, progress = runtime(client, seed), Progress("toy", len(items))
    return list(await evaluate(made, items, place, progress, in_flight=3))


async def whole(folder: Path, client: Any) -> None:
    made = await fitted(folder, client)
    results.write(folder, await asked(made, client), {"cell": "toy"}, made.utility)


def log(folder: Path, measure: str) -> list[float]:
    rows = pq.read_table(folder / "training.parquet").to_pylist()
    return [row["value"] for row in rows if row["measure"] == measure]


# Budget and log


async def test_one_rollout_a_question_and_the_last_batch_is_used(tmp_path: Path) -> None:
    await fitted(tmp_path, Client(), questions=5)
    assert log(tmp_path, "trajectories") == [3, 2, 3, 2]
    calls = pq.read_table(tmp_path / "training_calls.parquet").to_pylist()
    assert {row["rollout"] for row in calls} == {0}
    orders = [list(dict.fromkeys(row["item_id"] for row in calls if row["epoch"] == epoch)) for epoch in (1, 2)]
    assert sorted(orders[0]) == sorted(orders[1]) == [item.id for item in some(5)]
    finals = [row for row in calls if not row["is_step"]]
    assert [row["purpose"] for row in finals] == ["aggregate"] * 10
    assert checkpoint.load(tmp_path / CHECKPOINT).facts["epoch"] == 2


async def test_the_log_agrees_with_the_decisions(tmp_path: Path) -> None:
    await fitted(tmp_path, Client(), questions=6, epochs={"default": 1}, batch=6)
    rows = pq.read_table(tmp_path / "training_decisions.parquet").to_pylist()
    modes = [row["choice"] for row in rows if row["name"] == "mode"]
    for name in MODE_NAMES:
        assert log(tmp_path, f"share_{name}") == [modes.count(name) / 6]
    tasks = [row["choice"] for row in rows if row["name"] == "task"]
    assert log(tmp_path, "classifier_accuracy") == [tasks.count("Commonsense") / 6]
    agents = [int(row["choice"]) for row in rows if row["name"] == "agents"]
    assert log(tmp_path, "agents") == [sum(agents) / 6]
    assert len([row for row in rows if row["name"] == "backbone"]) == sum(agents)


@pytest.mark.parametrize(("max_epochs", "trained"), [(0, 0), (1, 1), (9, 2)])
async def test_a_run_may_shorten_the_training(tmp_path: Path, max_epochs: int, trained: int) -> None:
    made, its = method(max_epochs=max_epochs, **TINY), training(tmp_path, Client(), some(4))
    await made.fit(its)
    its.finish()
    assert checkpoint.load(tmp_path / CHECKPOINT).facts["epoch"] == trained
    assert [one.trajectory.answer for one in await asked(made, Client())] == ["the end"] * 4


async def test_the_label_is_given_and_the_classifier_learns_it(tmp_path: Path) -> None:
    """Roles come from the domain of the benchmark whatever the classifier says (D-MR-1)."""
    for domain in ("Code", "Math"):
        folder = tmp_path / domain
        made = method(domain=domain, epochs={"default": 4}, batch=4)
        its = training(folder, Client(), some(8))
        await made.fit(its)
        its.finish()
        rows = pq.read_table(folder / "training_decisions.parquet").to_pylist()
        assert {row["choice"].split("/")[0] for row in rows if row["name"] == "role"} == {domain}
        assert log(folder, "classifier_accuracy")[-1] == 1.0
        assert log(folder, "task_loss")[-1] < log(folder, "task_loss")[0]


async def test_the_weight_of_cost_is_that_of_the_benchmark(tmp_path: Path) -> None:
    for where, kappa in (("math", 3.0), ("mbpp", 7.0)):
        its = config(kappa={"default": 7.0, "math": 3.0}, **TINY)
        made = MASRouter(setting("pool", benchmark=where, domain="Math"), its)
        await made.fit(training(tmp_path / where, Client(), some(3)))
        for one in await asked(made, Client(right_if("small"))):
            assert made.utility(one) == one.verdict.correct - kappa * one.trajectory.cost_total
    first = [
        pq.read_table(tmp_path / where / "checkpoints" / "epoch-01.training.parquet") for where in ("math", "mbpp")
    ]
    values = [{row["measure"]: row["value"] for row in table.to_pylist()} for table in first]
    assert values[0]["cost_total"] == values[1]["cost_total"]
    assert values[0]["utility"] == pytest.approx(values[0]["accuracy"] - 3.0 * values[0]["cost_total"])
    assert values[1]["utility"] == pytest.approx(values[1]["accuracy"] - 7.0 * values[1]["cost_total"])


# Learning


@pytest.mark.parametrize("seed", range(2))
async def test_a_backbone_that_is_always_wrong_and_dearer_is_asked_less(tmp_path: Path, seed: int) -> None:
    client = Client(right_if("small"), tokens=(1000, 300))
    made = await fitted(tmp_path, client, seed, questions=24, epochs={"default": 6}, batch=8, kappa={"default": 20})
    untrained = method(seed, **TINY)
    untrained.load(checkpoint.load(tmp_path / "checkpoints" / "epoch-00.safetensors"))
    held_out = tuple(Item(id=f"h{at}", benchmark="toy", question=f"Held out {at}?", gold="right") for at in range(32))
    shares, utilities = [], []
    for one in (untrained, made):
        answered = await asked(one, client, held_out, seed)
        chosen = [d.choice for a in answered for d in a.trajectory.decisions if d.name == "backbone"]
        shares.append(chosen.count("large") / len(chosen))
        utilities.append(sum(utility(a, 20.0) for a in answered) / len(answered))
    assert shares[1] < shares[0] - 0.1
    assert utilities[1] > utilities[0] + 0.1


# Resumption and determinism


class Failing(Client):
    """Breaks down at one call, once."""

    def __init__(self, answering: Answering, at: int) -> None:
        super().__init__(answering, late=lambda number: number % 3)
        self.at = at

    async def complete(self, backbone: str, request: Request) -> Reply:
        if len(self.asked) == self.at:
            self.at = -1
            raise UserError("the endpoint is gone")
        return await super().complete(backbone, request)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], list[int]]:
    """What an undisturbed run leaves behind, and how many calls each of its epochs made."""
    folder = tmp_path_factory.mktemp("undisturbed")
    asyncio.run(whole(folder, Client(right_if("small"))))
    epochs = pq.read_table(folder / "training_calls.parquet").column("epoch").to_pylist()
    return content(folder), [epochs.count(epoch) for epoch in (1, 2)]


@pytest.mark.parametrize("when", ["in the first epoch", "after an epoch", "in mid-epoch"])
async def test_an_interrupted_training_ends_in_the_same_bytes(
    tmp_path: Path, undisturbed: tuple[dict[str, bytes], list[int]], when: str
) -> None:
    expected, (first, second) = undisturbed
    at = {"in the first epoch": first // 2, "after an epoch": first, "in mid-epoch": first + 3 * second // 4}[when]
    client = Failing(right_if("small"), at)
    with pytest.raises(UserError, match="the endpoint is gone"):
        await whole(tmp_path, client)
    assert (tmp_path / "checkpoints" / "epoch-01.safetensors").exists() == (when != "in the first epoch")
    await whole(tmp_path, client)
    assert content(tmp_path) == expected


async def test_a_finished_training_is_not_done_again(
    tmp_path: Path, undisturbed: tuple[dict[str, bytes], list[int]]
) -> None:
    await whole(tmp_path, Client(right_if("small")))
    client = Client(right_if("small"))
    await fitted(tmp_path, client)
    assert client.asked == []
    await whole(tmp_path, client)
    assert content(tmp_path) == undisturbed[0]


@pytest.mark.parametrize("stride", [3, 5])
async def test_latency_does_not_show(
    tmp_path: Path, undisturbed: tuple[dict[str, bytes], list[int]], stride: int
) -> None:
    await whole(tmp_path, Client(right_if("small"), late=lambda number: stride * number % 7))
    assert content(tmp_path) == undisturbed[0]


async def test_what_is_decided_does_not_depend_on_who_else_is_asked(tmp_path: Path) -> None:
    made = await fitted(tmp_path, Client())
    together = await asked(made, Client(), ITEMS)
    for item, one in zip(ITEMS, together, strict=True):
        [alone] = await asked(made, Client(), (item,))
        assert alone.trajectory == one.trajectory


async def test_another_seed_is_another_training_and_another_test(tmp_path: Path) -> None:
    made = [await fitted(tmp_path / str(seed), Client(), seed) for seed in (0, 1)]
    first, second = (content(tmp_path / name) for name in ("0", "1"))
    assert first[CHECKPOINT] != second[CHECKPOINT]
    assert first["training_decisions.parquet"] != second["training_decisions.parquet"]
    tests = [[one.trajectory.decisions for one in await asked(made[0], Client(), seed=seed)] for seed in (0, 1)]
    assert tests[0] != tests[1]


# A trained router elsewhere


async def test_a_loaded_router_answers_as_the_trained_one(tmp_path: Path) -> None:
    made = await fitted(tmp_path, Client(right_if("small")))
    loaded = method(**TINY)
    loaded.load(checkpoint.load(tmp_path / CHECKPOINT))
    assert await asked(loaded, Client()) == await asked(made, Client())


async def test_a_router_without_weights_does_not_answer() -> None:
    made = build(setting("pool", domain="Math"), config())
    with pytest.raises(RuntimeError, match="call fit or load first"):
        await made.solve(ITEMS[0], runtime(Client()).context(ITEMS[0]))


OTHER_PROFILE = BACKBONES[0].model_copy(update={"description": "Grew overnight."})
ITS = pool()
MATHS = by_domain("Math")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Pool(ITS.domain, ITS.roles[:-1], ITS.backbones), "trained with 7 roles and is given 6"),
        (Pool(ITS.domain, ITS.roles, ITS.backbones[:1]), "trained with 2 backbones and is given 1"),
        (Pool("Math", MATHS, ITS.backbones), "'Commonsense/Critic' where its roles now have 'Math/Algorithm"),
        (Pool(ITS.domain, ITS.roles, ITS.backbones[::-1]), "'small' where its backbones now have 'large'"),
        (Pool(ITS.domain, ITS.roles, (OTHER_PROFILE, ITS.backbones[1])), "the profile of 'small' is not the one"),
    ],
)
async def test_a_router_does_not_fit_another_pool(tmp_path: Path, given: Pool, message: str) -> None:
    await fitted(tmp_path, Client(), epochs={"default": 0})
    other = method(**TINY)
    other.pool = given
    with pytest.raises(UserError, match=message) as caught:
        other.load(checkpoint.load(tmp_path / CHECKPOINT))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["modes", "tasks"])
async def test_a_router_does_not_fit_other_modes_or_tasks(tmp_path: Path, kind: str) -> None:
    await fitted(tmp_path, Client(), epochs={"default": 0})
    found = checkpoint.load(tmp_path / CHECKPOINT)
    found.facts[kind][0][0] = "Swarm"  # type: ignore[index]
    with pytest.raises(UserError, match=f"trained with 'Swarm' where its {kind} now have"):
        method(**TINY).load(found)


async def test_a_router_does_not_fit_another_size_of_teams(tmp_path: Path) -> None:
    await fitted(tmp_path, Client(), epochs={"default": 0})
    with pytest.raises(UserError, match="trained with max_agents 6 and is given 5"):
        method(**{**TINY, "max_agents": 5}).load(checkpoint.load(tmp_path / CHECKPOINT))
