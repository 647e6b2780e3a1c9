"""The training interface, tested on a method that learns to count; and checkpoint files."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from safetensors import numpy as safetensors

from harness.agents.trajectory import CallSpec, Decision, Episode
from harness.benchmarks.items import Item
from harness.concurrency import gather
from harness.errors import UserError
from harness.llm.request import Message
from harness.method import Context
from harness.scripted import ScriptedModel
from harness.training.checkpoint import Checkpoint, State
from harness.training.loop import CHECKPOINT, TABLES, Training, TrainingStep, checkpoint
from tests.fixtures import FAILED, LONGEST, Client, content, questions, training

ITEMS = questions(3)
TEXTS = ("short", *("long " * (LONGEST + more) for more in (0, 1)))


def right() -> Client:
    return Client(lambda backbone, request: "right")


class Counter:
    """Learns how many questions it has seen; two rollouts of every question, one update an epoch."""

    def __init__(self) -> None:
        self.seen = np.zeros(1)
        self.momentum = np.zeros(2)

    async def solve(self, item: Item, context: Context) -> str:
        context.decide(Decision(1, "guess", 0, str(context.uniform(1, "guess")), 2, -0.5))
        for text in TEXTS:
            await context.embed(text)
        await context.ask("small", (Message("user", f"{item.question} {self.seen[0]}"),))
        return (await context.ask("large", (Message("user", "close"),), CallSpec(2, is_step=False))).text

    async def fit(self, training: Training, epochs: int) -> None:
        for epoch in training.epochs(epochs, self):
            attempts = await gather(
                training.attempt(self.solve, item, Episode(epoch, rollout))
                for item in training.items
                for rollout in range(2)
            )
            self.seen = self.seen + len(attempts)
            self.momentum = self.momentum / 2 + epoch
            training.log_update(TrainingStep(epoch, epoch, epochs), {"seen": self.seen[0]}, attempts)

    def state(self) -> State:
        return State({"seen": self.seen}, {"momentum": self.momentum}, {"method": "overruled", "own": "fact"})

    def load(self, stored: Checkpoint) -> None:
        self.seen, self.momentum = stored.tensors["seen"].copy(), stored.tensors["momentum"].copy()


async def trained(folder: Path, client: Any | None = None, epochs: int = 3, **options: Any) -> None:
    cell = training(folder, client or right(), ITEMS, 7, **options)
    await Counter().fit(cell, epochs)
    cell.finish()


async def test_the_tables_hold_every_update_call_and_decision(tmp_path: Path) -> None:
    await trained(tmp_path)
    tables = {name: pq.read_table(tmp_path / f"{name}.parquet").to_pylist() for name in TABLES}
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


@pytest.mark.parametrize("keep", [True, False])
async def test_checkpoints_of_earlier_epochs_stay_where_they_are_asked_for_and_of_the_optimiser_the_last_alone(
    tmp_path: Path, keep: bool
) -> None:
    await trained(tmp_path, keep_epochs=keep)
    stored = checkpoint.load(tmp_path / CHECKPOINT)
    assert stored.tensors.keys() == {"seen"}
    assert stored.tensors["seen"] == 18
    metadata = {"identity": "one", "method": "toy", "simulated": True, "own": "fact", "epoch": 3}
    assert stored.metadata == metadata, "the cell's metadata win"
    names = {path.name for path in (tmp_path / "checkpoints").glob("*.safetensors")}
    epochs = range(4) if keep else (3,)
    assert names == {f"epoch-0{epoch}.safetensors" for epoch in epochs} | {"epoch-03.optimiser.safetensors"}


async def test_consultations_that_fail_stop_the_cell_as_questions_do(tmp_path: Path) -> None:
    """A consultation is one attempt, which has failed where its last call did."""
    cell = training(tmp_path, ScriptedModel("right", "right", FAILED, FAILED, "right", FAILED), ITEMS, limit=0.1)

    async def ask_optimizer(attempt: int) -> None:
        with cell.auxiliary_calls("optimizer", Episode(1, attempt)) as context:
            for slot in range(3):
                await context.ask("small", (Message("user", "What next?"),), CallSpec(slot=slot))

    await cell.attempt(Counter().solve, ITEMS[0], Episode(1, 0))
    for attempt in range(3):
        await ask_optimizer(attempt)
    with pytest.raises(UserError, match=r"3 of 5 attempts failed \(limit 10%\).*gmr retry"):
        await ask_optimizer(3)


@pytest.mark.parametrize("last", ["epoch-02.optimiser.safetensors", "epoch-02.training_calls.parquet"])
async def test_a_crash_between_the_files_of_an_epoch_does_no_harm(tmp_path: Path, last: str) -> None:
    """The files written before and after ``last`` are those of a process that died just behind it."""
    await trained(tmp_path / "whole")
    await trained(tmp_path / "parts", epochs=1)
    earlier = content(tmp_path / "parts")
    await trained(tmp_path / "parts", epochs=2)
    (tmp_path / "parts" / "checkpoints" / "epoch-02.safetensors").unlink()
    if "optimiser" not in last:
        (tmp_path / "parts" / "checkpoints" / "epoch-02.optimiser.safetensors").unlink()
    optimiser = "checkpoints/epoch-01.optimiser.safetensors"
    (tmp_path / "parts" / optimiser).write_bytes(earlier[optimiser])
    client = right()
    await trained(tmp_path / "parts", client)
    assert len(client.asked) == 24
    assert content(tmp_path / "parts") == content(tmp_path / "whole")


async def test_checkpoints_of_another_training_are_discarded_with_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await trained(tmp_path / "new", identity="two", epochs=1)
    await trained(tmp_path / "old")
    await trained(tmp_path / "old", client := right(), identity="two", epochs=1)
    assert "training starts over" in caplog.text
    assert len(client.asked) == 12
    assert content(tmp_path / "old") == content(tmp_path / "new")


async def test_a_training_that_saved_nothing_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"did not iterate over `training\.epochs`"):
        training(tmp_path, right(), ITEMS).finish()


@pytest.mark.parametrize("which", ["epoch-03.safetensors", "epoch-03.optimiser.safetensors"])
async def test_a_damaged_checkpoint_is_one_line_and_doing_what_it_says_helps(tmp_path: Path, which: str) -> None:
    await trained(tmp_path)
    whole = content(tmp_path)
    path = tmp_path / "checkpoints" / which
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(UserError, match=f"{which} is not a checkpoint of this suite .*; delete it and"):
        await trained(tmp_path)
    path.unlink()
    await trained(tmp_path)
    assert content(tmp_path) == whole


async def test_a_checkpoint_without_what_it_rests_on_is_not_continued(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await trained(tmp_path, epochs=2)
    torn = tmp_path / "checkpoints" / ".epoch-03.safetensors.x1"
    torn.write_bytes(b"half")
    assert next(training(tmp_path, right(), ITEMS).epochs(3, Counter())) == 3
    assert not torn.exists(), "a killed process left it half written"
    (tmp_path / "checkpoints" / "epoch-01.training_calls.parquet").unlink()
    assert next(training(tmp_path, right(), ITEMS).epochs(3, Counter())) == 1
    assert "files of its checkpoints or calls in its log are missing; training starts over" in caplog.text
    assert not (tmp_path / "checkpoints" / "epoch-02.safetensors").exists()
    await trained(tmp_path, epochs=2)
    lost = training(tmp_path, right(), ITEMS, log=False)
    assert next(lost.epochs(3, Counter())) == 1, "the log has lost calls"


TENSORS = {"b.weight": np.arange(6, dtype=np.float64).reshape(2, 3), "a": np.float32([0.1]), "step": np.array(3.0)}
FACTS: dict[str, Any] = {"epoch": 2, "roles": [["z", "last first"], ["a", "é"]], "config": {"x": None}}


def save(path: Path, **changes: Any) -> bytes:
    checkpoint.save(path, Checkpoint(**{"tensors": TENSORS, "metadata": FACTS, **changes}))
    return path.read_bytes()


def test_what_is_saved_comes_back_and_equal_content_is_equal_bytes_in_any_order(tmp_path: Path) -> None:
    base = save(tmp_path / "a.safetensors")
    stored = checkpoint.load(tmp_path / "a.safetensors")
    assert stored.metadata == FACTS
    assert {name: (value.dtype, value.tolist()) for name, value in stored.tensors.items()} == {
        name: (value.dtype, value.tolist()) for name, value in TENSORS.items()
    }
    turned = {"tensors": dict(reversed(TENSORS.items())), "metadata": dict(reversed(FACTS.items()))}
    assert base == save(tmp_path / "b.safetensors", **turned)
    assert base != save(tmp_path / "c.safetensors", metadata={**FACTS, "epoch": 3})
    assert base != save(tmp_path / "c.safetensors", tensors={**TENSORS, "step": np.array(4.0)})


def test_what_is_no_checkpoint_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    with pytest.raises(UserError, match=r"there is no checkpoint .*; train the method first"):
        checkpoint.load(path)
    torn = safetensors.save(TENSORS, metadata={"facts": "{"})
    for damaged in (save(path)[:-5], b"", pickle.dumps({"weights": [1.0]}), safetensors.save(TENSORS), torn):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=r"x\.safetensors is not a.*; delete it and") as caught:
            checkpoint.load(path)
        assert "\n" not in str(caught.value)
