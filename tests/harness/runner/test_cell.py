"""What identifies a training: all that can change what is learned, and nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from harness.files import ROOT
from harness.llm.backbones import load
from harness.runner import cell as module
from harness.runner import config, layout
from harness.runner.cell import _training_facts
from harness.runner.config import Cell, Limit
from harness.runner.results import TABLES
from harness.training import loop

CELL = Cell("gmr", "gsm_hard", "pool", 0)


def facts(**changes: Any) -> dict[str, Any]:
    preset = config.preset("smoke").model_copy(update=changes.get("preset", {}))
    plan = SimpleNamespace(
        preset=preset,
        cell=CELL,
        method=config.methods()["gmr"],
        seed=0,
        data=SimpleNamespace(checksum="data", split_checksum="split"),
    )
    for name, value in changes.get("data", {}).items():
        setattr(plan.data, name, value)
    pool = load(ROOT / "config" / "backbones.yaml")
    revised = {key: one.model_copy(update={"revision": changes.get("revision")}) for key, one in pool.items()}
    encoder = SimpleNamespace(identity=changes.get("encoder", "encoder"))
    runtime = SimpleNamespace(
        backbones=revised,
        embeddings=SimpleNamespace(encoder=encoder),
        tools=SimpleNamespace(sandbox=SimpleNamespace(level=changes.get("sandbox", "full"))),
    )
    return _training_facts(plan, runtime, {})  # type: ignore[arg-type]


def test_what_can_change_a_training_changes_its_identity_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    base = facts()["identity"]
    for changes in (
        {"data": {"checksum": "other"}},
        {"data": {"split_checksum": "other"}},
        {"revision": "other"},
        {"encoder": "other"},
        {"sandbox": "rlimit"},
        {"preset": {"limit": Limit(train=7, test=16, epochs=2)}},
        {"preset": {"limit": Limit(train=8, test=16, epochs=1)}},
        {"preset": {"length_scale": 0.3}},
        {"preset": {"backbones": ("qwen-2.5-32B", "qwen-2.5-14B")}},
    ):
        assert facts(**changes)["identity"] != base, changes
    for changes in (
        {"preset": {"limit": Limit(train=8, test=3, epochs=2)}},
        {"preset": {"in_flight": 3}},
        {"preset": {"max_error_share": 0.5}},
        {"preset": {"methods": ("gmr",)}},
    ):
        assert facts(**changes)["identity"] == base, changes
    monkeypatch.setattr(module, "code_of", lambda name: "other code")
    assert facts()["identity"] != base


def test_the_files_of_a_cell_are_those_that_it_writes() -> None:
    answered = ["run.json", *(f"{name}.parquet" for name in TABLES)]
    assert layout.cell_files(learned=False) == answered
    assert layout.cell_files(learned=True) == [*answered, *(f"{name}.parquet" for name in loop.TABLES), loop.CHECKPOINT]
