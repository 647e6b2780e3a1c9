"""What identifies a training: all that can change what is learned, and nothing else."""

import asyncio
import shutil
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from harness.errors import UserError
from harness.files import ROOT
from harness.llm.backbones import load
from harness.runner import cell as module
from harness.runner import config, layout
from harness.runner.cell import _training_facts
from harness.runner.config import Cell, Limit
from harness.runner.plan import plan
from tests.fake_encoder import FakeEncoder
from tests.small_run import GMR, smoke

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


def test_a_cell_meets_the_mean_cost_of_a_finished_one_and_says_so(
    finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(finished_run, tmp_path / "run")
    monkeypatch.chdir(tmp_path / "run")
    monkeypatch.setattr("harness.runner.setup.SentenceEncoder", FakeEncoder)
    planned = plan(smoke(), Cell("self_consistency", "gsm_hard", "pool", 0))
    run = asyncio.run(module.run(planned))
    items = pq.read_table(layout.cell("smoke", GMR) / "items.parquet").to_pydict()
    assert run["matched"] == {"method": "gmr", "cost": fmean(items["cost_steps"]), "depth": fmean(items["depth"])}
    calls = pq.read_table(planned.folder / "calls.parquet").to_pylist()
    assert {(call["purpose"], call["step"]) for call in calls} == {("solve", 1)}
    (layout.cell("smoke", GMR) / "run.json").unlink()
    with pytest.raises(UserError, match=r"cost or the depth of gmr gsm_hard pool seed 0, .*`snakemake .*/run\.json`$"):
        _ = planned.setting
