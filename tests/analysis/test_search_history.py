"""The table of searches: what a reader finds in it, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.table import BEST
from harness.errors import UserError
from harness.training import checkpoint
from harness.training.checkpoint import Checkpoint
from tests.analysis.cells import digest
from tests.analysis.reading import search_history

NODE = {"id": "node_1", "operator": "Custom", "inputs": ["question"], "instruction": "", "repeat": 1, "when": None}
VOTE = [
    {**NODE, "instruction": "Be\n brief.", "repeat": 3},
    {**NODE, "id": "node_2", "operator": "Programmer", "inputs": ["question", "node_1"]},
    {
        **NODE,
        "id": "node_3",
        "operator": "ScEnsemble",
        "inputs": ["node_1"],
        "when": {"node": "node_2", "is": "failed"},
    },
]


def one(number: int, **changes: Any) -> dict[str, Any]:
    record = {
        "round": number,
        "parent": 1 if number > 1 else None,
        "status": "scored",
        "edit": f"edit {number}" if number > 1 else "",
        "modification": f"because {number}" if number > 1 else "",
        "workflow": [NODE],
        "score": 50.0,
        "success": False if number > 1 else None,
        "calls": 32,
        "cost": 0.5,
        "proposals": 1 if number > 1 else 0,
        "proposal_cost": 0.25 if number > 1 else 0.0,
        "reason": "",
        "failures": [],
    }
    return {**record, **changes}


ROUNDS = [
    one(1),
    one(2, score=81.25, success=True, workflow=VOTE, modification="Vote | over\nthree."),
    one(
        3,
        parent=2,
        status="no_proposal",
        score=None,
        success=None,
        workflow=None,
        reason="the reply is no JSON object",
        cost=0.0,
    ),
    one(4, parent=2),
]
FACTS = {"search": ROUNDS, "best": 2, "optimizer": "large", "questions": 32, "converged": False}


@pytest.fixture
def searched(write_cell: Callable[..., Path]) -> Callable[..., Path]:
    """Write a cell that searched."""

    def write_searched(facts: dict[str, Any] = FACTS, **of_cell: Any) -> Path:
        folder = write_cell("aflow", **of_cell)
        checkpoint.save(folder / "trained.safetensors", Checkpoint({}, facts))
        return folder

    return write_searched


def test_the_table_of_a_search(searched: Callable[..., Path]) -> None:
    made = search_history(searched())
    columns = [f"{group} {title}" for group, _, title in made.made.shown.columns]
    first, second, third, fourth = (dict(zip(columns, row.entries, strict=True)) for row in made.rows)
    assert made.rows[1].labels == ("GSM-Hard", "qwen-2.5-14B", "0", "2")
    skipped = "no edit to try: the reply is no JSON object"
    edits = [one["Search edit"].text for one in (first, second, third, fourth)]
    assert edits == ["start workflow", "edit 2: Vote | over three.", skipped, "edit 4: because 4"]
    names = ("parent", "score (%)", "better", "calls")
    assert [second[f"Search {name}"].text for name in names] == ["1", "81.25", "yes", "32"]
    assert [one[f"Search {name}"].text for one, name in ((third, "score (%)"), (fourth, "better"))] == ["–", "no"]
    assert first["Test accuracy (%)"].text == ""
    # Four test questions of 0.25, three of them right.
    assert (second["Test accuracy (%)"], second["Test cost"].text) == (("75.00", BEST, "", "", ""), "1.0000")
    # Three rounds of 0.5 and three proposals of 0.25.
    assert "Cost of the search: 2.2500." in made.notes[-1]
    assert "ScEnsemble runs once on the question and what node_1 gave. Only if node_2 failed" in made.notes[-1]
    chosen = made.records[1]
    assert (chosen["chosen"], chosen["success"], chosen["run"]) == (
        "true", "true", digest("run", "aflow", "qwen-2.5-14B", "gsm_hard", 0),
    )  # fmt: skip
    assert chosen["modification"] == "Vote | over\nthree."


@pytest.mark.parametrize(("rounds", "said"), [(0, True), (1, True), (4, False)])
def test_a_search_without_a_round_to_search_in_is_told(searched: Callable[..., Path], rounds: int, said: bool) -> None:
    best = {0: None, 1: 1, 4: 2}[rounds]
    made = search_history(searched({**FACTS, "search": ROUNDS[:rounds], "best": best}))
    assert ("Nothing was searched" in made.notes[-1]) == said
    assert ("It ended because" in made.notes[-1]) != said
    assert [row["round"] for row in made.records if row["chosen"] == "true"] == [str(best or 0)]


def test_what_is_no_search_is_one_line(searched: Callable[..., Path], write_cell: Callable[..., Path]) -> None:
    with pytest.raises(UserError, match=r"trained\.safetensors holds no search \('search' is missing\)"):
        search_history(searched({"epoch": 3}))
    with pytest.raises(UserError, match="there is no checkpoint"):
        search_history(write_cell("aflow", benchmark="math"))
