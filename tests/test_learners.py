"""Requirements for methods that learn, beyond those of ``gmr test``: defaults, batches, stale rollouts, prices."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from analysis.published import load
from gmr.training import advantages
from harness.runner.config import methods
from harness.runner.setting import settings_of
from harness.scripted import setting
from tests.baselines import test_cheap as cheap
from tests.baselines.aflow import test_workflow as aflow
from tests.baselines.masrouter import test_router as masrouter
from tests.baselines.puppeteer import test_rollout as puppeteer
from tests.fixtures import ITEMS, Client, answered_by, attempt, learned, questions, trained
from tests.gmr import fixtures as gmr

LEARNERS: dict[str, Callable[..., Any]] = {
    "gmr": lambda **at: gmr.method(epochs={"default": 2}, batch=2, group=2, max_depth=3, **at),
    "masrouter": lambda **at: masrouter.method(epochs={"default": 2}, batch=2, **at),
    "puppeteer": lambda **at: puppeteer.method(epochs={"default": 2}, batch=2, lr=1e-3, **at),
    "aflow": lambda **at: aflow.method(max_rounds=1, **at),
    "knn_router": cheap.knn,
    "self_consistency": cheap.consistency,
}
BY_KEY = Client(aflow.by_key)
# The values of the papers and of the released code.
STATED: dict[str, dict[str, Any]] = {
    "gmr": {"batch": 16, "group": 6, "max_depth": 6, "lr": 0.01, "vae_weight": 0.001}
    | dict.fromkeys(gmr.MODULES, True),
    "masrouter": {"batch": 16, "max_agents": 6, "lr": 0.01, "vae_weight": 0.001, "visible_tests": "first"},
    "puppeteer": {"batch": 1, "max_steps": 6, "lr": 1e-4, "gamma": 0.99, "entropy_weight": 1.0, "cost_weight": 1.0},
}


@pytest.mark.parametrize("name", STATED)
def test_the_stated_values_are_the_defaults(name: str) -> None:
    entry, rows = methods()[name], [setting(benchmark=key) for key in load().benchmarks]
    config = settings_of(entry.module, entry.config)
    assert {key: getattr(config, key) for key in STATED[name]} == STATED[name]
    assert [row.epochs(config.epochs) for row in rows] == [5, 5, 10, 10, 10]
    if name == "masrouter":
        assert [row.of_benchmark(config.cost_weight) for row in rows] == [100, 200, 400, 200, 500]


async def fitted(name: str, folder: Path, seed: int = 0, number: int = 4, **changes: Any) -> Any:
    return await trained(LEARNERS[name](seed=seed, **changes), folder, BY_KEY, questions(number, "t"), seed)


@pytest.mark.parametrize("name", LEARNERS)
async def test_a_run_without_epochs_leaves_a_learner_as_it_begins(tmp_path: Path, name: str) -> None:
    method = await fitted(name, tmp_path, max_epochs=0)
    assert len(pq.read_table(tmp_path / "training_calls.parquet")) == 0
    [answered] = await answered_by(method, BY_KEY, ITEMS[:1])
    assert answered.trajectory.answer


@pytest.mark.parametrize(("name", "rollouts"), [("gmr", 2), ("masrouter", 1), ("puppeteer", 1)])
async def test_a_last_batch_is_used_and_order_and_weights_follow_seeds(
    tmp_path: Path, name: str, rollouts: int
) -> None:
    weights, orders = [], []
    for seed, epochs in ((0, 2), (1, 1)):
        folder = tmp_path / str(seed)
        await fitted(name, folder, seed, max_epochs=0)
        weights.append(learned(folder).tensors)
        await fitted(name, folder, seed, number=7, max_epochs=epochs)
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
async def test_rollouts_of_old_policies_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    method = LEARNERS[name]()
    learn = method.learn

    def learn_twice(learning: Any, *arguments: Any) -> Any:
        measures, before = learn(learning, *arguments), learning.learned()
        with pytest.raises(RuntimeError, match="is not on-policy"):
            learn(learning, *arguments)
        assert all(np.array_equal(value, before[key]) for key, value in learning.learned().items())
        return measures

    monkeypatch.setattr(method, "learn", learn_twice)
    await trained(method, tmp_path, BY_KEY)


@pytest.mark.parametrize("name", ["gmr", "masrouter", "knn_router"])
def test_the_same_trajectories_teach_the_same_in_a_pool_at_a_twentieth_of_the_prices(name: str) -> None:
    """The factor of a pool cancels its prices (D-GMR-5); where all is free, the reward alone teaches."""

    def taught(prices: float, **row: float) -> list[list[float]]:
        costs = [cost * prices for cost in (0.001, 0.006, 0.002, 0.003)]
        answered = [attempt(number != 2, (cost, True), (cost, False)) for number, cost in enumerate(costs)]
        return advantages(np.array([[*map(LEARNERS[name](**row).utility, answered)]])).tolist()

    assert np.allclose(taught(1 / 20, cost_factor=20), taught(1), rtol=1e-12)
    assert not np.allclose(taught(1 / 20), taught(1), rtol=1e-3)
    assert taught(0) == [[0.25, 0.25, -0.75, 0.25]]
