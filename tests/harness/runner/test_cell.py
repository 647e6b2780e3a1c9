"""What identifies a training: all that can change what is learned, and nothing else."""

import asyncio
import dataclasses
import shutil
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from harness.errors import UserError
from harness.runner import cell as module
from harness.runner import layout
from harness.runner.cell import _training_facts
from harness.runner.config import Cell, Limit
from harness.runner.plan import Plan, plan
from tests.fake_encoder import FakeEncoder
from tests.small_run import GMR, smoke


def identity(planned: Plan, revision: str = "", encoder: str = "encoder", sandbox: str = "full") -> str:
    """Return the identity of a training with backbones, encoder and sandbox like these."""
    runtime: Any = SimpleNamespace(
        backbones={key: one.model_copy(update={"revision": revision}) for key, one in planned.backbones.items()},
        embeddings=SimpleNamespace(encoder=SimpleNamespace(identity=encoder)),
        tools=SimpleNamespace(sandbox=SimpleNamespace(level=sandbox)),
    )
    return str(_training_facts(planned, runtime, {})["identity"])


def test_what_can_change_a_training_changes_its_identity_and_nothing_else(
    finished_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(finished_run)
    planned = plan(smoke(), GMR)

    def with_preset(**changes: Any) -> str:
        return identity(plan(smoke().model_copy(update=changes), GMR))

    def with_questions(**changes: str) -> str:
        return identity(dataclasses.replace(planned, questions=dataclasses.replace(planned.questions, **changes)))

    others = {
        with_questions(checksum="other"),
        with_questions(split_checksum="other"),
        with_preset(limit=Limit(train=2, test=6, epochs=1)),
        with_preset(limit=Limit(train=1, test=6, epochs=2)),
        with_preset(length_scale=0.3),
        with_preset(backbones=("qwen-2.5-32B", "qwen-2.5-14B")),
        identity(dataclasses.replace(planned, record={"code": "other"})),
        *(identity(planned, **{name: "other"}) for name in ("revision", "encoder", "sandbox")),
    }
    assert len({identity(planned), *others}) == 11
    same = {
        with_preset(limit=Limit(train=1, test=3, epochs=1)),
        with_preset(in_flight=3, max_error_share=0.5, methods=("gmr",)),
    }
    assert same == {identity(planned)}


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
        plan(smoke(), planned.cell)
