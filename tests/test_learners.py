"""Requirements for all methods that learn: repetition from the call log after a kill, and determinism."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow.parquet as pq
import pytest

from baselines.cheap import logistic_router
from gmr.training import advantages
from harness.benchmarks.items import Item
from harness.database import CALL_LOG
from harness.errors import UserError
from harness.llm.call_log import AttemptLog, CallLog
from harness.llm.client import ChatClient
from harness.llm.request import Reply, Request
from harness.runner import results
from harness.scripted import backbones, setting
from tests.baselines import test_cheap as cheap
from tests.baselines.aflow import fixtures as aflow
from tests.baselines.masrouter import fixtures as masrouter
from tests.baselines.puppeteer import fixtures as puppeteer
from tests.fixtures import FAILED, ITEMS, Client, answered_by, content, learned, questions, right_if, trained
from tests.gmr import fixtures as gmr


def by_key(backbone: str, request: Request) -> str:
    """Return a reply that follows from the request alone, right two times of three."""
    return f"{request.key[:6]}. The answer is {'right' if int(request.key, 16) % 3 else 'wrong'}"


class Learner(NamedTuple):
    """A method of two passes over the training questions, or as many as it has, and what answers it."""

    make: Callable[..., Any]
    answering: Callable[[str, Request], Any]
    code_tools: Any = None
    passes: int = 2


GMR = {"epochs": {"default": 2}, "batch": 2, "group": 2, "max_depth": 3}
LEARNERS = {
    "gmr": Learner(lambda **at: gmr.method(**GMR, **at), right_if("small")),
    "gmr above temperature 0": Learner(lambda **at: gmr.method(**GMR, sampling="published", **at), by_key),
    "masrouter": Learner(
        lambda **at: masrouter.method(epochs={"default": 2}, batch=2, **at), by_key, masrouter.code_tools()
    ),
    "puppeteer": Learner(
        lambda **at: puppeteer.method(epochs={"default": 2}, batch=2, lr=1e-3, **at), by_key, puppeteer.Scripted()
    ),
    "aflow": Learner(lambda **at: aflow.method(max_rounds=1, **at), aflow.by_key, aflow.Bench()),
    "knn_router": Learner(cheap.knn, by_key, passes=1),
    "self_consistency": Learner(cheap.consistency, by_key, passes=1),
    "template": Learner(
        lambda **at: logistic_router.build(setting("pool", **{"benchmark": "toy", **at}), logistic_router.Config()),
        by_key,
        passes=1,
    ),
}
EVERY = pytest.mark.parametrize("name", LEARNERS)


async def fitted(
    name: str, folder: Path, client: Any, seed: int = 0, number: int = 4, limit: float = 1.0, **changes: Any
) -> Any:
    learner = LEARNERS[name]
    method, items = learner.make(seed=seed, **changes), questions(number, "t")
    return await trained(method, folder, client, items, seed, code_tools=learner.code_tools, limit=limit)


@EVERY
async def test_a_question_that_always_fails_is_no_reason_to_stop(name: str, tmp_path: Path) -> None:
    """One of 20 in every pass, also where its rollouts are the first that end."""
    learner = LEARNERS[name]

    def refusing(backbone: str, request: Request) -> Any:
        refused = any("Question t3?" in message.content for message in request.messages)
        return FAILED if refused else learner.answering(backbone, request)

    client = Client(refusing)
    await trained(learner.make(), tmp_path, client, questions(20, "t"), code_tools=learner.code_tools, limit=0.06)
    failed = pq.read_table(tmp_path / "training_calls.parquet").to_pandas()["error"].notna()
    assert failed.sum() >= 2


async def ask_test_questions(name: str, folder: Path, method: Any, client: Any, *items: Item) -> list[Any]:
    answered = await answered_by(method, client, items or ITEMS[:4], code_tools=LEARNERS[name].code_tools)
    results.write(folder, {"test": answered}, {"cell": "toy", "simulated": False}, method.utility)
    return answered


class Undisturbed(NamedTuple):
    """A finished run."""

    folder: Path
    epochs: dict[str, int]  # in which a call is new, by key
    replies: dict[str, Reply]  # by key


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Undisturbed]:
    runs: dict[str, Undisturbed] = {}

    def run(name: str) -> Undisturbed:
        if name not in runs:
            folder = tmp_path_factory.mktemp(name)
            client = Client(LEARNERS[name].answering)
            method = asyncio.run(fitted(name, folder, client))
            asyncio.run(ask_test_questions(name, folder, method, client))
            rows = pq.read_table(folder / "training_calls.parquet").to_pylist()
            epochs = {row["key"]: row["epoch"] for row in reversed(rows)}
            texts = {request.key: LEARNERS[name].answering(backbone, request) for backbone, request in client.asked}
            replies = {key: Reply(text, *client.tokens, "stop", "m") for key, text in texts.items()}
            runs[name] = Undisturbed(folder, epochs, replies)
        return runs[name]

    return run


async def fitted_with_log(name: str, folder: Path, served: Client, recorded: dict[str, Reply], **given: Any) -> Any:
    """Train with a call log, on recorded replies and on backbones that a client stands for."""
    with CallLog(folder / "log" / CALL_LOG) as log, AttemptLog(folder / "log" / "attempts.jsonl") as attempts:
        client = ChatClient({}, log, attempts, recordings=cast(Any, recorded))
        async with client:
            for key in backbones():
                client._backbones = {**client._backbones, key: cast(Any, Served(key, served))}
            return await fitted(name, folder / "cell", client, **given)


class Served(NamedTuple):
    """Stands where a ServedBackbone does."""

    key: str
    client: Client

    async def ask(self, request: Request) -> Reply:
        return await self.client.complete(self.key, request)

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("name", "when", "is_recorded"),
    [
        pytest.param(name, when, is_recorded, marks=[pytest.mark.nightly] * (is_recorded and when == "after an epoch"))
        for name, learner in LEARNERS.items()
        for when in ("in the first epoch", "after an epoch", "in mid-epoch")[: 2 * learner.passes - 1]
        for is_recorded in (False, True)
    ],
)
def test_an_interrupted_training_repeats_its_log_and_ends_in_the_same_bytes(
    tmp_path: Path, undisturbed: Any, name: str, when: str, is_recorded: bool
) -> None:
    expected = undisturbed(name)
    recorded = {key: reply for key, reply in expected.replies.items() if is_recorded and int(key, 16) % 2}
    new = [epoch for key, epoch in expected.epochs.items() if key not in recorded]
    first, second = new.count(1), new.count(2)
    at = {"in the first epoch": first // 2, "after an epoch": first, "in mid-epoch": first + 3 * second // 4}[when]
    # Replies that come in another order do not show either.
    served = Client(LEARNERS[name].answering, late=lambda number: 5 * number % 7, fails_at=at)
    with pytest.raises(UserError, match="the endpoint is gone"):
        asyncio.run(fitted_with_log(name, tmp_path, served, recorded))
    assert not (tmp_path / "cell").exists()
    with CallLog(tmp_path / "log" / CALL_LOG) as log:
        finished = {key for key in expected.replies if key in log}
    assert 0 < len(finished) < first + second
    before = len(served.asked)
    method = asyncio.run(fitted_with_log(name, tmp_path, served, recorded))
    asked = [request.key for request in served.requests[before:]]
    assert finished.isdisjoint(asked)
    assert len(asked) == len({*asked})
    before = len(served.asked)
    method = asyncio.run(fitted_with_log(name, tmp_path, served, recorded))
    assert len(served.asked) == before
    asyncio.run(ask_test_questions(name, tmp_path / "cell", method, served))
    assert content(tmp_path / "cell") == content(expected.folder)


@EVERY
async def test_every_question_is_answered_as_alone_and_nothing_is_learned_at_the_test(
    tmp_path: Path, name: str
) -> None:
    client = Client(LEARNERS[name].answering)
    method = await fitted(name, tmp_path, client)
    together = await ask_test_questions(name, tmp_path, method, client)
    for item, answered in zip(ITEMS[:4], together, strict=True):
        [alone] = await ask_test_questions(name, tmp_path, method, client, item)
        assert alone.trajectory == answered.trajectory
    assert await ask_test_questions(name, tmp_path, method, client) == together


@pytest.mark.parametrize("name", [name for name in LEARNERS if name != "template"])
@pytest.mark.parametrize("max_epochs", [0, 1])
async def test_a_run_may_shorten_the_training(tmp_path: Path, name: str, max_epochs: int) -> None:
    client, trained = Client(LEARNERS[name].answering), min(max_epochs, LEARNERS[name].passes)
    method = await fitted(name, tmp_path, client, max_epochs=max_epochs)
    epochs = set(pq.read_table(tmp_path / "training_calls.parquet")["epoch"].to_pylist())
    assert epochs == set(range(1, trained + 1))
    [answered] = await ask_test_questions(name, tmp_path, method, client, ITEMS[0])
    assert answered.trajectory.answer


@pytest.mark.parametrize(("name", "rollouts"), [("gmr", 2), ("masrouter", 1), ("puppeteer", 1)])
async def test_a_last_batch_that_is_not_full_is_used_and_order_and_initial_weights_follow_epoch_and_seed(
    tmp_path: Path, name: str, rollouts: int
) -> None:
    weights, orders = [], []
    for seed, epochs in ((0, 2), (1, 1)):
        folder = tmp_path / str(seed)
        await fitted(name, folder, Client(LEARNERS[name].answering), seed, max_epochs=0)
        weights.append(learned(folder).tensors)
        await fitted(name, folder, Client(LEARNERS[name].answering), seed, number=7, max_epochs=epochs)
        calls = pq.read_table(folder / "training_calls.parquet").to_pylist()
        for epoch in range(1, epochs + 1):
            orders.append(tuple(dict.fromkeys(row["item_id"] for row in calls if row["epoch"] == epoch)))
        assert {row["rollout"] for row in calls} == set(range(rollouts))
    assert all(sorted(order) == [item.id for item in questions(7, "t")] for order in orders)
    assert len(set(orders)) == 3
    assert not all(np.array_equal(weight, weights[1][name]) for name, weight in weights[0].items())
    log = pq.read_table(tmp_path / "0" / "training.parquet").to_pylist()
    sizes = [(row["epoch"], row["update"], row["value"]) for row in log if row["measure"] == "trajectories"]
    of_batches = [rollouts * size for size in (2, 2, 2, 1)]
    assert sizes == [(1 + at // 4, 1 + at, of_batches[at % 4]) for at in range(8)]


@pytest.mark.parametrize("name", ["gmr", "masrouter", "puppeteer"])
async def test_rollouts_of_an_earlier_policy_are_refused_and_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    method = LEARNERS[name].make()
    learn = method.learn

    def learn_twice(learning: Any, *arguments: Any) -> Any:
        measures, before = learn(learning, *arguments), learning.learned()
        with pytest.raises(RuntimeError, match="is not on-policy"):
            learn(learning, *arguments)
        assert all(np.array_equal(value, before[key]) for key, value in learning.learned().items())
        return measures

    monkeypatch.setattr(method, "learn", learn_twice)
    await trained(method, tmp_path, Client(LEARNERS[name].answering), code_tools=LEARNERS[name].code_tools)


@pytest.mark.parametrize("name", ["gmr", "masrouter", "knn_router"])
def test_the_same_trajectories_teach_the_same_in_a_pool_at_a_twentieth_of_the_prices(name: str) -> None:
    """The factor of a pool cancels its prices (D-GMR-5); where all is free, the reward alone teaches."""

    def taught(prices: float, **row: float) -> list[list[float]]:
        learner, costs = LEARNERS[name].make(**row), [0.001, 0.006, 0.002, 0.003]
        utilities = [
            learner.utility(
                SimpleNamespace(
                    verdict=SimpleNamespace(correct=number != 2),
                    trajectory=SimpleNamespace(cost_steps=cost * prices, cost_total=2 * cost * prices),
                )
            )
            for number, cost in enumerate(costs)
        ]
        return advantages(np.array([utilities])).tolist()

    assert np.allclose(taught(1 / 20, cost_factor=20), taught(1), rtol=1e-12)
    assert not np.allclose(taught(1 / 20), taught(1), rtol=1e-3)
    assert taught(0) == [[0.25, 0.25, -0.75, 0.25]]
