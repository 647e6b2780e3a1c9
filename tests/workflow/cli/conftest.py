"""A run of finished cells, made by hand."""

import math
from pathlib import Path

import pytest

from harness.agents.trajectory import Decision
from harness.benchmarks.items import Item, Status, Verdict
from harness.runner.config import Cell
from tests.analysis.trajectories.made import Ask, Story, finish, prepare

ITEMS = [Item(f"q{number}", "gsm_hard", f"How many are {number} and 4?", f"{number + 4}.0") for number in range(3)]
GMR, COT = Cell("gmr", "gsm_hard", "pool", 0), Cell("cot", "gsm_hard", "qwen-2.5-14B", 0)
WRONG, BROKEN = Verdict(False, "9", Status.GRADED), Verdict(False, None, Status.CALL_FAILED, "no room left")
RIGHT = Verdict(True, "7", Status.GRADED)
QUARTER, HALF = math.log(0.25), math.log(0.5)


def step(number: int, write: str, halt: str, *retrieved: str) -> list[Decision]:
    """The decisions of one step of the router."""
    return [
        Decision(number, "role", 0, f"Math/R{number}", 4, QUARTER),
        Decision(number, "backbone", 0, "small", 2, HALF),
        *(Decision(number, "retrieve", slot, choice, 2, QUARTER) for slot, choice in enumerate(retrieved)),
        Decision(number, "write", 0, write, 2, QUARTER),
        Decision(number, "halt", 0, halt, 2, QUARTER),
    ]


def act(number: int, reply: str) -> Ask:
    how = {"step": number, "purpose": "act", "role": f"Math/R{number}"}
    return Ask(reply, [("system", "You count."), ("user", f"Turn {number}: {reply!r}?")], how=how)


def asked(reply: str, verdict: Verdict, answer: str = "The answer is 9") -> Story:
    return Story([Ask(reply, [("user", f"{reply}?")])], answer=answer, verdict=verdict)


AGGREGATE = Ask("The answer is 7", [("user", "Together?")], how={"step": 3, "purpose": "aggregate", "is_step": False})


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two finished cells: GMR is right, right and wrong; CoT wrong, without an answer, and right."""
    (tmp_path / "results").mkdir()
    monkeypatch.chdir(tmp_path)
    prepare(ITEMS)
    walk = Story([act(1, "Three"), act(2, "Four"), AGGREGATE], [*step(1, "yes", "no"), *step(2, "no", "yes", "no")])
    finish(GMR, ITEMS, [walk, Story([act(1, "x")]), Story([act(1, "\x1b[2Jy")], answer="9", verdict=WRONG)])
    finish(COT, ITEMS, [asked("n", WRONG), asked("o", BROKEN, ""), asked("p", RIGHT)])
    return tmp_path
