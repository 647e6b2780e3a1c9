"""What is said of trainings: their budgets, and how far a trained policy is from a uniform one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.frames import Results
from analysis.results import read_all
from analysis.source import Source
from analysis.table import NOT_RUN
from analysis.training import CHOICES
from analysis.training import learned as learned_of
from harness.agents.results import DECISIONS
from harness.training.loop import TABLES
from tests.analysis import learned
from tests.analysis.reading import main_table, training_budget
from tests.analysis.spending import cell_of, record_of, row_of, title

OPTIONS = {"backbone": 5, "role": 26, "mode": 6, "action": 10}


def decision(name: str, choice: str, probability: float, step: int = 1) -> dict[str, Any]:
    row = ("item-0000", step, name, 0, choice, OPTIONS.get(name, 2), math.log(probability))
    return dict(zip(DECISIONS.names, row, strict=True))


def trained(folder: Path, epochs: int = 2, asked: int = 0, cost: float = 0.5) -> Path:
    """Give a cell the calls of a training: two an attempt, and some an epoch that are no attempt."""
    blank = {field.name: "" if pa.types.is_string(field.type) else 0 for field in TABLES["training_calls"]}
    blank |= {"is_step": True, "error": None, "prompt_tokens": 100, "completion_tokens": 10, "cost": cost}
    rows = [
        {**blank, "epoch": epoch, "item_id": f"train-{question}", "rollout": rollout}
        for epoch in range(1, epochs + 1)
        for question in range(3)
        for rollout in range(2)
        for _ in range(2)
    ]
    rows += [{**blank, "epoch": epoch, "item_id": "optimizer"} for epoch in range(1, epochs + 1) for _ in range(asked)]
    table = pa.Table.from_pylist(rows, schema=TABLES["training_calls"])
    pq.write_table(table, folder / "training_calls.parquet")
    return folder


def made(write_cell: Any, method: str, chosen: Sequence[dict[str, Any]] = (), seed: int = 0, **changes: Any) -> Path:
    """A cell after two epochs of one update, each on two attempts at three questions."""
    log = [{"trajectories": 6.0}] * 2
    return trained(learned.make(write_cell, method, seed, made=chosen, updates=log, per_epoch=1, **changes))


def measured(*folders: Path) -> pd.Series:
    (row,) = learned_of(Results(read_all(folders))).to_dict("records")
    return pd.Series(row)


def test_a_budget_counts_what_the_training_used(write_cell: Any) -> None:
    found = measured(made(write_cell, "gmr"))
    assert (found.questions, found.passes, found.trajectories, found.updates) == (3, 2, 12, 2)
    assert (found.calls, found.tokens, found.cost) == (24, 24 * 110, 12.0)
    # Calls of an optimizer are charged and are no questions.
    found = measured(trained(made(write_cell, "aflow", backbone="qwen-2.5-14B"), asked=4))
    assert (found.questions, found.calls, found.cost) == (3, 32, 16.0)
    assert found[[f"top_{name}" for name in CHOICES]].isna().all()
    # Several trainings are averaged.
    several = [made(write_cell, "gmr", [decision("backbone", name, 0.2)], 1 + at) for at, name in enumerate("aab")]
    found = measured(*(trained(folder, cost=1.0 + at) for at, folder in enumerate(several)))
    assert (found.cost, found.top_backbone, found.top_backbone_share) == (48, "a", pytest.approx(200 / 3))


@pytest.mark.parametrize(("probability", "entropy"), [(1.0, 0), (0.1, 100)])
def test_a_random_policy_is_100_and_a_settled_one_0(write_cell: Any, probability: float, entropy: float) -> None:
    """Guesses, gates, and the end that the step limit forces after the sixth step are left out."""
    other = [decision("task", "Math", 1.0), decision("halt", "yes", 0.5)]
    forced = [decision("action", "terminate", 1e-6, step=7)] * 20
    chosen = [decision("action", "plan", probability)] * 8
    found = measured(made(write_cell, "puppeteer", [*chosen, *other, *forced], backbone="qwen-2.5-32B"))
    assert found[[f"top_{name}" for name in CHOICES]].notna().sum() == 1
    assert (found.entropy_action, found.top_action) == (pytest.approx(entropy), "plan")


@pytest.mark.parametrize(("method", "options"), [("gmr", 1), ("gmr_greedy", 5)])
def test_a_choice_from_one_option_or_a_greedy_one_has_no_entropy(write_cell: Any, method: str, options: int) -> None:
    found = measured(made(write_cell, method, [{**decision("backbone", "small", 0.6), "options": options}]))
    assert (pd.isna(found.entropy_backbone), found.top_backbone_share) == (True, 100)


def test_the_table_sets_learners_side_by_side(write_cell: Any) -> None:
    settled = [decision("backbone", "large", 1.0), decision("role", "Math/Solver", 1 / 26)]
    spread = [decision("backbone", name, 0.2) for name in ("small", "large", "large")]
    learners = [
        made(write_cell, "gmr", settled),
        made(write_cell, "masrouter", spread),
        made(write_cell, "puppeteer", [decision("action", "plan", 0.1)], backbone="qwen-2.5-32B"),
        trained(made(write_cell, "aflow", backbone="qwen-2.5-14B"), asked=1),
    ]
    table = training_budget.build(Source.of(learners))
    assert len(table.rows) == 4
    for method, calls, entropy, top in (
        ("gmr", "24", "backbone 0, role 100", "large 100"),
        ("masrouter", "24", "backbone 100", "large 67"),
        ("puppeteer", "24", "action 100", "plan 100"),
        ("aflow", "26", NOT_RUN, NOT_RUN),
    ):
        row = row_of(table, title(method))
        used = ("Questions", "Trajectories", "Updates", "Calls")
        assert [cell_of(table, row, "Training", name).text for name in used] == ["3", "12", "2", calls]
        policy = [cell_of(table, row, "Trained policy", name).text for name in table.groups[1].columns]
        assert policy == [entropy, top]
    record = record_of(table, method="masrouter")
    assert (record["cost"], record["top_backbone"]) == ("12", "large")
    assert float(record["entropy_backbone"]) == pytest.approx(100)


def test_a_row_left_as_initialised_is_called_so(write_cell: Any) -> None:
    folder = learned.make(write_cell, "gmr_untrained", made=[decision("backbone", "small", 0.2)], updates=())
    trained(folder, epochs=0)
    assert (measured(folder)).trajectories == 0
    notes = main_table.build(Source.of([folder])).notes
    assert any(note.endswith("(LLM Pool): left as initialised.") for note in notes)
