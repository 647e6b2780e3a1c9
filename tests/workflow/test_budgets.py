"""A cell at the end of its run's budget stops with one line, and ends in the same bytes when the budget is raised."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.benchmarks.prepare import prepare
from harness.llm.budget import BudgetError
from harness.runner import cell, config, layout
from harness.runner.config import Cell, Preset
from harness.runner.plan import plan
from tests.fake_encoder import FakeEncoder
from tests.workflow.trained import Backbones
from workflow import jobs

COT, CHAIN = (Cell(method, "gsm_hard", "qwen-2.5-14B", 0) for method in ("cot", "macnet_chain"))
QUESTIONS = 3
PASSING = {"timing.json", "attempts.jsonl", "calls.sqlite", "calls.lock"}


def bounded(calls: int | None) -> Preset:
    changes = {"benchmarks": ["gsm_hard"], "limit": {"test": QUESTIONS}, "budget": {"calls": calls}}
    return config.preset("smoke", changes)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str, Cell, int | None], int]:
    """Runs a cell within a budget in a folder of its own; gives how many calls were asked."""
    answering = Backbones()
    monkeypatch.setattr("harness.runner.setup.SentenceEncoder", FakeEncoder)
    monkeypatch.setattr("harness.runner.setup.simulated_endpoint", lambda preset: answering)

    def run(folder: str, one: Cell, calls: int | None) -> int:
        (tmp_path / folder / "results").mkdir(parents=True, exist_ok=True)
        monkeypatch.chdir(tmp_path / folder)
        paths = layout.items("smoke", "gsm_hard"), layout.manifest("smoke", "gsm_hard")
        if not paths[0].exists():
            prepare("gsm_hard", "embedded", "official", *paths)
        before = answering.asked
        asyncio.run(cell.run(plan(bounded(calls), one)))
        return answering.asked - before

    return run


def files(folder: Path) -> dict[str, bytes]:
    there = [path for path in (folder / "results" / "smoke" / "cells").rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in there if path.name not in PASSING}


def test_cells_of_a_run_share_its_budget_and_go_on_to_the_same_bytes(
    run: Callable[[str, Cell, int | None], int], tmp_path: Path
) -> None:
    whole = sum(run("undisturbed", one, None) for one in (COT, CHAIN))
    assert run("bounded", COT, 10) == QUESTIONS
    for most in (10, 20):
        with pytest.raises(BudgetError, match=f"preset smoke is spent: {most} of {most} calls"):
            run("bounded", CHAIN, most)
    # What the log holds needs no budget.
    assert run("bounded", COT, 20) == 0
    assert run("bounded", CHAIN, None) == whole - 20
    assert files(tmp_path / "bounded") == files(tmp_path / "undisturbed")


def test_snakemake_is_told_to_begin_nothing_else_where_it_can_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda *given: sent.append(given))
    for parent in ("", "elsewhere:4242", f"{socket.gethostname()}:4242"):
        assert sent == []
        monkeypatch.setenv(jobs.PARENT, parent)
        jobs.begin_no_more()
    assert sent == [(4242, signal.SIGTERM)]
