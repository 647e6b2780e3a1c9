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
IF_FAILED = {"node": "node_2", "is": "failed"}
VOTE = [
    {**NODE, "instruction": "Be\n brief.", "repeat": 3},
    {**NODE, "id": "node_2", "operator": "Programmer", "inputs": ["question", "node_1"]},
    {**NODE, "id": "node_3", "operator": "ScEnsemble", "inputs": ["node_1"], "when": IF_FAILED},
]
ROUND = {"status": "scored", "workflow": [NODE], "score": 50.0, "calls": 32, "cost": 0.5, "reason": "", "failures": []}
START = {"parent": None, "edit": "", "modification": "", "success": None, "proposals": 0, "proposal_cost": 0.0}


def edited(number: int, **changes: Any) -> dict[str, Any]:
    """Return a round that edits the workflow of an earlier one."""
    edit = {"parent": 1, "edit": f"edit {number}", "modification": f"because {number}", "success": False}
    return {**ROUND, **edit, "round": number, "proposals": 1, "proposal_cost": 0.25, **changes}


FAILED = {"status": "no_proposal", "score": None, "success": None, "workflow": None, "cost": 0.0}
ROUNDS = [
    {**ROUND, **START, "round": 1},
    edited(2, score=81.25, success=True, workflow=VOTE, modification="Vote | over\nthree."),
    edited(3, parent=2, reason="the reply is no JSON object", **FAILED),
    edited(4, parent=2),
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
    assert made.rows[1].labels == ("GSM-Hard", "qwen-2.5-14B", "0", "2")
    skipped = "no edit to try: the reply is no JSON object"
    edits = [entry.text for entry in made.entries("Search", "edit")]
    assert edits == ["start workflow", "edit 2: Vote | over three.", skipped, "edit 4: because 4"]
    names = ("parent", "score (%)", "better", "calls")
    texts = [[made.entries("Search", name)[place].text for name in names] for place in (1, 2, 3)]
    assert texts == [["1", "81.25", "yes", "32"], ["2", "–", "", "32"], ["2", "50.00", "no", "32"]]
    # Four test questions of 0.25, three of them right.
    accuracies, costs = made.entries("Test", "accuracy (%)"), made.entries("Test", "cost")
    assert (accuracies[0].text, accuracies[1], costs[1].text) == ("", ("75.00", BEST, "", "", ""), "1.0000")
    # Three rounds of 0.5 and three proposals of 0.25.
    assert "Cost of the search: 2.2500." in made.notes[-1]
    assert "ScEnsemble runs once on the question and what node_1 gave. Only if node_2 failed" in made.notes[-1]
    best = made.records[1]
    assert (best["chosen"], best["success"], best["modification"]) == ("true", "true", "Vote | over\nthree.")
    assert best["run"] == digest("run", "aflow", "qwen-2.5-14B", "gsm_hard", 0)


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
