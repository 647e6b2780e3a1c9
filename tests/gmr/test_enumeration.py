"""Every first step on every question: which calls are made, and that a router of one step finds all of its own."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gmr.enumeration import enumerate_steps
from harness.agents.roles import by_domain
from harness.llm.call_log import CALL_LOG, CallLogReader
from harness.runner import cell, config, layout
from harness.runner.config import POOL, Cell
from harness.runner.plan import plan
from tests.fake_encoder import FakeEncoder
from tests.small_run import prepare_questions

ROW = Cell("gmr_one_step", "humaneval", POOL, 0)
BACKBONES = ["llama-3.2-3B", "qwen-2.5-32B"]


def test_a_router_of_one_step_asks_nothing_that_the_enumeration_has_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("harness.runner.cell.SentenceEncoder", FakeEncoder)
    prepare_questions("smoke", "humaneval")
    small = {
        "backbones": BACKBONES,
        "large": BACKBONES,
        "limit": {"train": 2, "test": 2, "epochs": 2},
        "benchmarks": ["humaneval"],
    }
    planned, folder = plan(config.preset("smoke", small), ROW), layout.tree("smoke", "humaneval")
    tree = replace(planned, folder=folder, vectors=folder / layout.VECTORS)
    run = asyncio.run(enumerate_steps(tree))
    nodes = pq.read_table(folder / "nodes.parquet").to_pandas()
    roles = by_domain("Code")
    assert run["roles"] == [role.key for role in roles]
    assert len(nodes) == 4 * len(roles) * 2 * 2
    assert sorted(nodes["split"].value_counts().items()) == [("test", len(nodes) / 2), ("train", len(nodes) / 2)]
    twice = {role.key for role in roles if role.second_call}
    assert set(nodes.loc[nodes["second_call_key"].notna(), "role"]) == twice
    keys = {key for name in ("act", "second_call", "aggregate") for key in nodes[f"{name}_key"].dropna()}
    # With nothing stored, the closing call of a backbone is one, whatever the role.
    assert len(keys) == 4 * 2 * (len(roles) + len(twice) + len(roles) + 1)
    with CallLogReader(folder / CALL_LOG) as log:
        assert {key for key in keys if log.get(key)} == keys
    asyncio.run(cell.run(planned))
    asked = {
        key
        for table in ("calls", "training_calls")
        for key in pq.read_table(planned.folder / f"{table}.parquet", columns=["key"]).column("key").to_pylist()
    }
    assert asked
    assert asked <= keys
    written = (folder / "nodes.parquet").read_bytes()
    assert asyncio.run(enumerate_steps(tree)) == run
    assert (folder / "nodes.parquet").read_bytes() == written, "resumed from its log, it is the same"
