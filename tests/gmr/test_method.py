"""Training and test as a whole: budget, learning, variants. Resumption stands in tests/test_learners.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gmr.method
from gmr.config import Config
from gmr.method import GMR
from harness.training.loop import checkpoint
from tests.fixtures import ITEMS, Client, answered_by, content, embedding, log, questions, right_if, runtime, trained
from tests.gmr.fixtures import LARGE, POOL, Plan, Scripted, method

ONCE = {"default": 1}


async def fitted(folder: Path, client: Any, number: int = 4, made: GMR | None = None, **changes: Any) -> GMR:
    made = made or method(**{"epochs": ONCE, "batch": 2, "group": 2, "max_depth": 3, **changes})
    return await trained(made, folder, client, questions(number, "t"))


async def test_an_epoch_of_humaneval_is_a_tenth_of_the_published_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """32 questions x 6 rollouts x 6 steps in 2 updates of 96 trajectories; 10 epochs are 11,520 steps (D-GMR-10)."""
    updates = []

    def no_learning(learning: Any, answered: Any, traces: Any, config: Config, noise: tuple[int, int]) -> Any:
        updates.append((len(traces), sum(len(trace.steps) for trace in traces), noise))
        return {}

    async def act(*given: Any, **options: Any) -> str:
        return "text"

    monkeypatch.setattr(gmr.method, "learn", no_learning)
    monkeypatch.setattr("gmr.rollout.act", act)
    monkeypatch.setattr("gmr.method.Snapshot", lambda router: Scripted(*[Plan(0, 0, None, None, None)] * 6))
    client = Client()
    await fitted(tmp_path, client, 32, method(halting=False))
    assert updates == [(96, 576, (0, 1)), (96, 576, (0, 2))]
    assert 10 * 2 * 576 == 11_520
    assert len(client.asked) == 192


async def test_a_backbone_that_is_always_wrong_and_dearer_is_given_up(tmp_path: Path) -> None:
    def share(made: GMR) -> float:
        return float(np.mean([made.policy.first(embedding(item.question))[1][LARGE] for item in ITEMS]))

    client = Client(right_if("small"), tokens=(1000, 300))
    made = await fitted(tmp_path, client, 16, batch=4, group=6)
    untrained = method(max_depth=3)
    untrained.load(checkpoint.load(tmp_path / "checkpoints" / "epoch-00.safetensors"))
    assert share(untrained) > 0.3
    assert share(made) < 0.1
    answered = await answered_by(made, client, ITEMS)
    assert sum(one.verdict.correct for one in answered) >= len(ITEMS) - 1


async def test_a_dearer_weight_of_cost_makes_shorter_trajectories(tmp_path: Path) -> None:
    depth = {}
    for weight in (0.0, 500.0):
        folder, client = tmp_path / str(weight), Client(lambda backbone, request: "right", tokens=(10_000, 1_000))
        await fitted(folder, client, 12, group=4, max_depth=4, lambda_c=weight)
        depth[weight] = log(folder, "depth")
    assert depth[500.0][0] == depth[0.0][0]
    assert depth[500.0][-1] < depth[0.0][-1] - 0.5


@pytest.mark.parametrize("first", [1, 3])
async def test_a_choice_that_collapses_is_said_once_however_late(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    def learned(*given: Any) -> dict[str, float]:
        (_, update) = given[-1]
        return {"entropy_backbone": 1.0 if update < first else 0.05}

    monkeypatch.setattr("gmr.method.learn", learned)
    await fitted(tmp_path, Client(), 8)
    said = [record.getMessage() for record in caplog.records if "entropy of the backbone choice" in record.getMessage()]
    assert [f"0.050 nats after {first} of 4 updates" in one for one in said] == [True]


async def test_the_greedy_switch_rules_the_test_and_not_the_training(tmp_path: Path) -> None:
    made = {way: await fitted(tmp_path / way, Client(), 2, decode=way) for way in ("sample", "greedy")}
    sampled, greedy = (content(tmp_path / way) for way in made)
    assert sampled["training_decisions.parquet"] == greedy["training_decisions.parquet"]
    context = runtime(Client()).context(ITEMS[0])
    trajectory = context.close(await made["greedy"].solve(ITEMS[0], context))
    policy = made["greedy"].policy
    role = next(decision.choice for decision in trajectory.decisions if decision.name == "role")
    assert role == POOL.roles[int(policy.first(embedding(ITEMS[0].question))[0].argmax())].key
