"""A cell at the end of its run's budget stops with one line, and ends in the same bytes when the budget is raised."""

import asyncio
import contextlib
import os
import signal
import socket
from pathlib import Path

import pytest

from cli import parent
from harness.llm.budget import BudgetError
from harness.runner import cell, config
from harness.runner.config import Cell
from harness.runner.plan import plan
from tests.cli.backbones import Backbones
from tests.small_run import prepare_questions, results

COT, CHAIN = (Cell(method, "gsm_hard", "qwen-2.5-14B", 0) for method in ("cot", "macnet_chain"))
QUESTIONS = 3
CELLS = "results/smoke/cells"


def test_cells_of_a_run_share_its_budget_and_go_on_to_the_same_bytes(endpoint: Backbones, tmp_path: Path) -> None:
    def run(folder: Path, one: Cell, calls: int | None) -> int:
        """Run a cell within a budget; return how many calls it asks."""
        changes = {"benchmarks": ["gsm_hard"], "limit": {"test": QUESTIONS}, "budget": {"calls": calls}}
        before = endpoint.asked
        with contextlib.chdir(folder):
            asyncio.run(cell.run(plan(config.preset("smoke", changes), one)))
        return endpoint.asked - before

    whole, bounded = tmp_path / "undisturbed", tmp_path / "bounded"
    for folder in (whole, bounded):
        folder.mkdir()
        with contextlib.chdir(folder):
            prepare_questions()
    number = sum(run(whole, one, None) for one in (COT, CHAIN))
    assert run(bounded, COT, 10) == QUESTIONS
    for most in (10, 20):
        with pytest.raises(BudgetError, match=f"preset smoke is spent: {most} of {most} calls"):
            run(bounded, CHAIN, most)
    # What the log holds needs no budget.
    assert run(bounded, COT, 20) == 0
    assert run(bounded, CHAIN, None) == number - 20
    assert results(bounded, CELLS) == results(whole, CELLS)


def test_snakemake_is_told_to_begin_nothing_else_where_it_can_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda *given: sent.append(given))
    for name in ("", "elsewhere:4242", f"{socket.gethostname()}:4242"):
        assert sent == []
        monkeypatch.setenv(parent.PARENT, name)
        parent.stop_scheduling()
    assert sent == [(4242, signal.SIGTERM)]
