"""The report of searches: what a reader finds in it, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis.search_history import build, to_markdown, write
from harness.errors import UserError
from harness.training import checkpoint
from harness.training.checkpoint import Checkpoint
from tests.analysis.conftest import digest

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


def rows(text: str) -> list[list[str]]:
    return [[field.strip() for field in line.strip("|").split(" | ")] for line in text.splitlines() if line[:1] == "|"]


def test_the_report_of_a_search(searched: Callable[..., Path]) -> None:
    text = to_markdown(build([searched()]))
    heads, _, overview, *_, first, second, third, fourth = rows(text)
    found = dict(zip(heads, overview, strict=True))
    assert (found["Rounds"], found["Chosen"]) == ("4", "2")
    assert (found["Validation (%)"], found["Test (%)"]) == ("81.25", "75.00")
    # Three rounds of 0.5 and three proposals of 0.25; four test questions of 0.25.
    assert (found["Search cost"], found["Test cost"]) == ("2.2500", "1.0000")
    assert found["Run"] == digest("run", "aflow", "qwen-2.5-14B", "gsm_hard", 0)[:12]
    assert first[:6] == ["1", "", "start workflow", "50.00", "", "32"]
    assert second == ["**2**", "1", r"edit 2: Vote \| over three.", "81.25", "yes", "32", "0.5000", "0.2500"]
    assert third[:5] == ["3", "2", "*no edit to try*: the reply is no JSON object", "–", ""]
    assert fourth[:5] == ["4", "2", "edit 4: because 4", "50.00", "no"]
    said = text.replace("\\", "")
    for line in (
        "**The workflow of round 2**",
        "1. node_1: Custom runs 3 times, the first greedily and the others sampled, on the question, told: “Be brief.”",
        "2. node_2: Programmer runs once on the question and what node_1 gave.",
        "3. node_3: ScEnsemble runs once on the question and what node_1 gave. Only if node_2 failed; if not, what",
        "Optimizer: large. 32 training questions a round, 4 test questions.",
    ):
        assert line in said


def test_how_it_ended(searched: Callable[..., Path], tmp_path: Path) -> None:
    again = {**NODE, "id": "node_2", "when": {"node": "node_1", "is": "passed"}}
    rounds = [one(1, workflow=[{**NODE, "operator": "Programmer"}, again])]
    history = build([searched({**FACTS, "search": rounds, "best": 1, "converged": True}), tmp_path / "not yet"])
    text = to_markdown(history).replace("\\", "")
    assert "no longer changed" in text
    assert "Only if node_1 passed; if not, what node_1 gave is used instead." in text
    assert "INCOMPLETE: 1 cells are not finished" in text
    text = to_markdown(build([searched({**FACTS, "search": [], "best": None}, benchmark="math")]))
    assert "were used up" in text
    assert "No round was scored; the start workflow answered" in text


def test_the_csv_has_a_row_a_round_in_the_same_order_each_time(searched: Callable[..., Path], tmp_path: Path) -> None:
    folders = [searched(), searched(benchmark="math", seed=1)]
    first, second = (write(build(order), tmp_path / name) for name, order in (("a", folders), ("b", folders[::-1])))
    assert [path.name for path in first] == ["search_history.md", "search_history.csv"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    found = pd.read_csv(first[1], comment="#", keep_default_na=False, dtype=str)
    expected = [(*cell, str(number)) for cell in (("gsm_hard", "0"), ("math", "1")) for number in range(1, 5)]
    assert list(found[["benchmark", "seed", "round"]].itertuples(index=False, name=None)) == expected
    assert found["chosen"][:4].tolist() == ["False", "True", "False", "False"]
    assert found["parent"][:2].tolist() == ["", "1"]
    assert (found["score"][1], found["success"][1], found["score"][2]) == ("81.25", "True", "")
    assert found["modification"][1] == "Vote | over\nthree."
    assert found["run"][0] == digest("run", "aflow", "qwen-2.5-14B", "gsm_hard", 0)


def test_what_is_no_search_is_one_line(
    searched: Callable[..., Path], write_cell: Callable[..., Path], tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=r"no finished cell of a method that searches .*name aflow"):
        build([tmp_path / "not yet"])
    with pytest.raises(UserError, match=r"trained\.safetensors holds no search \('search' is missing\)"):
        build([searched({"epoch": 3})])
    with pytest.raises(UserError, match="there is no checkpoint"):
        build([write_cell("aflow", benchmark="math")])
