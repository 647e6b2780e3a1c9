"""The training interface, tested on a method that learns to count, and what learners with a network share."""

import itertools
import math
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import nn

from harness.agents.trajectory import CallSpec, Decision, Episode
from harness.benchmarks.items import Item
from harness.concurrency import gather
from harness.errors import UserError
from harness.llm.request import Message
from harness.method import Context
from harness.runner.layout import TRAINED
from harness.runner.results import TRAINING_TABLES, write_training
from harness.scripted import ScriptedModel
from harness.training.learning import choose, open_gates, seeded
from harness.training.loop import Learned, Training, TrainingStep
from tests.fixtures import FAILED, LONGEST, RECORD, Client, learned, questions, training

ITEMS = questions(3)
TEXTS = ("short", *("long " * (LONGEST + more) for more in (0, 1)))


def right() -> Client:
    return Client(lambda backbone, request: "right")


class Counter:
    """Learns how many questions it has seen; two rollouts of every question, one update an epoch."""

    def __init__(self) -> None:
        self.seen = np.zeros(1)

    async def solve(self, item: Item, context: Context) -> str:
        context.decide(Decision(1, "guess", 0, str(context.uniform(1, "guess")), 2, -0.5))
        for text in TEXTS:
            await context.embed(text)
        await context.ask("small", (Message("user", f"{item.question} {self.seen[0]}"),))
        return (await context.ask("large", (Message("user", "close"),), CallSpec(2, is_step=False))).text

    async def fit(self, training: Training, epochs: int) -> Learned:
        for epoch in range(1, epochs + 1):
            attempts = await gather(
                training.attempt(self.solve, item, Episode(epoch, rollout))
                for item in training.items
                for rollout in range(2)
            )
            self.seen = self.seen + len(attempts)
            training.log_update(TrainingStep(epoch, epoch, epochs), {"seen": self.seen[0]}, attempts)
        return Learned({"seen": self.seen}, {"method": "overruled", "own": "fact"})


async def test_the_tables_hold_every_update_call_and_decision(tmp_path: Path) -> None:
    run = training(right(), ITEMS, 7)
    write_training(tmp_path, run, await Counter().fit(run, 3), RECORD)
    stored = learned(tmp_path)
    assert stored.tensors == {"seen": 18}
    assert stored.metadata == {**RECORD, "own": "fact"}, "the metadata of the cell win"
    tables = {name: pq.read_table(tmp_path / f"{name}.parquet").to_pylist() for name in TRAINING_TABLES}
    calls, decisions, log = tables["training_calls"], tables["training_decisions"], tables["training"]
    attempts = [(epoch, item.id, rollout) for epoch in (1, 2, 3) for item in ITEMS for rollout in (0, 1)]
    assert [(row["epoch"], row["item_id"], row["rollout"]) for row in decisions] == attempts
    assert [(row["epoch"], row["item_id"], row["rollout"]) for row in calls[::2]] == attempts
    assert len({row["choice"] for row in decisions}) == len(attempts)
    costs = [sum(row["cost"] for row in calls if row["epoch"] == 2 and row["is_step"] >= steps) for steps in (0, 1)]
    of_two = {row["measure"]: row["value"] for row in log if row["epoch"] == row["update"] == 2}
    assert of_two == {
        "trajectories": 6.0,
        "accuracy": 1.0,
        "cost_total": pytest.approx(costs[0] / 6),
        "cost_steps": pytest.approx(costs[1] / 6),
        "depth": 1.0,
        "calls": 12.0,
        "truncated": pytest.approx(1 / 3),
        "seen": 12.0,
    }


async def test_consultations_that_fail_stop_the_cell_as_questions_do() -> None:
    """A consultation is one attempt, which has failed where its last call did."""
    cell = training(ScriptedModel("right", "right", FAILED, FAILED, "right", FAILED), ITEMS, limit=0.1)

    async def ask_optimizer(attempt: int) -> None:
        with cell.auxiliary_calls("optimizer", Episode(1, attempt)) as context:
            for slot in range(3):
                await context.ask("small", (Message("user", "What next?"),), CallSpec(slot=slot))

    await cell.attempt(Counter().solve, ITEMS[0], Episode(1, 0))
    for attempt in range(3):
        await ask_optimizer(attempt)
    with pytest.raises(UserError, match=r"3 of 5 attempts failed \(limit 10%\).*gmr retry"):
        await ask_optimizer(3)


def test_equal_content_is_equal_bytes_in_any_order(tmp_path: Path) -> None:
    tensors, metadata, written = {"b": np.zeros((2, 3)), "a": np.float32([0.1])}, {"z": [1], "a": "é"}, set()
    for parts in ((tensors, metadata), (dict(reversed(part.items())) for part in (tensors, metadata))):
        write_training(tmp_path, training(right(), ITEMS), Learned(*parts), RECORD)
        written.add((tmp_path / TRAINED).read_bytes())
    assert len(written) == 1
    assert learned(tmp_path).metadata == {**metadata, **RECORD}


def network(*key: object) -> nn.Linear:
    return seeded(lambda: nn.Linear(2, 1), *(key or ("start",)))


def test_a_network_is_a_function_of_its_key_and_leaves_the_generator_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first = network("a", 1)
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(first.weight, network("a", 1).weight)
    assert not torch.equal(first.weight, network("a", 2).weight)


UNIFORM = st.floats(0, 1, exclude_min=True, exclude_max=True)
ROWS = st.lists(st.tuples(st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(any), UNIFORM), min_size=1)


@given(ROWS)
@example([([1, 0, 2, 1], at) for at in (0.25, math.nextafter(0.25, 0), 0.75, math.nextafter(0.75, 0))])
@example([([1, 1, 1, 0], 1 - 1e-12)])  # behind the sum of the rounded probabilities
def test_an_option_is_where_the_sum_of_probabilities_passes_the_number(rows: list[tuple[list[int], float]]) -> None:
    shares = [[weight / sum(weights) for weight in weights] for weights, _ in rows]
    log_probs = torch.tensor(shares, dtype=torch.float64).log()
    numbers = torch.tensor([number for _, number in rows], dtype=torch.float64)
    expected, likeliest = [], []
    for probabilities, (_, number) in zip(log_probs.exp().numpy().round(9).tolist(), rows, strict=True):
        sums = list(itertools.accumulate(probabilities))
        possible = [index for index, p in enumerate(probabilities) if p > 0]
        expected.append(next((index for index in possible if number < sums[index]), possible[-1]))
        likeliest.append(probabilities.index(max(probabilities)))
    assert choose(log_probs, numbers).tolist() == expected
    assert choose(log_probs, numbers, greedy=True).tolist() == likeliest


@given(st.lists(st.tuples(UNIFORM, UNIFORM), min_size=1))
def test_a_gate_opens_below_its_probability_and_greedily_above_one_half(rows: list[tuple[float, float]]) -> None:
    p, numbers = torch.tensor(rows, dtype=torch.float64).T
    log_probs = torch.stack([1 - p, p], dim=-1).log()
    probabilities = [round(yes, 9) for yes in log_probs[:, 1].exp().tolist()]
    expected = [int(number < yes) for number, yes in zip(numbers.tolist(), probabilities, strict=True)]
    assert open_gates(log_probs, numbers).tolist() == expected
    assert open_gates(log_probs, numbers, greedy=True).tolist() == [int(yes > 0.5) for yes in probabilities]
