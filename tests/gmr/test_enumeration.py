"""Enumerations: the calls of every first step, which include all calls of a single-step router."""

import asyncio
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.beyond import outcomes
from cli.bundle import pack
from cli.replay import replay
from gmr.enumeration import enumerate_steps
from harness.agents.roles import by_domain
from harness.database import CALL_LOG
from harness.llm.call_log import CallLogReader
from harness.runner import cell, layout
from harness.runner.layout import POOL, Cell
from harness.runner.plan import plan
from harness.runner.preset import resolve
from tests.fake_encoder import FakeEncoder
from tests.small_run import prepare_questions

ROW, FIXED, RANDOM = (
    Cell(method, "humaneval", POOL, 0) for method in ("gmr_one_step", "fixed_step", "random_one_step")
)
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
    preset, folder = resolve("smoke", small), layout.tree("smoke", "humaneval")
    planned = plan(preset, ROW)
    run = asyncio.run(enumerate_steps(planned))
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
    for each in (ROW, FIXED, RANDOM):
        asyncio.run(cell.run(plan(preset, each)))
        tables = [pq.read_table(path).to_pandas() for path in layout.cell("smoke", each).glob("*calls.parquet")]
        assert {key for table in tables for key in table["key"]} <= keys, each
    # The constant policy is the best one of the training questions, of equals the cheapest.
    train = nodes[(nodes["split"] == "train") & nodes["stored"]]
    worth = train.groupby(["backbone", "role"], sort=False).agg({"correct": "sum", "cost_total": "sum"})
    backbone, role = worth.sort_values(["correct", "cost_total"], ascending=[False, True], kind="stable").index[0]
    decisions = pq.read_table(layout.cell("smoke", FIXED) / "decisions.parquet").to_pandas()
    assert set(decisions["choice"]) == {f"{role} of {backbone}"}
    outcomes.write_nodes(Path("nodes.parquet"), [folder])
    paths = pq.read_table("nodes.parquet").to_pandas()
    assert {*paths.pop("benchmark")} == {"humaneval"}
    assert paths.equals(nodes)
    tools = pq.read_table(folder / "tools.parquet").to_pandas()
    assert len(tools) > 0
    assert not tools.duplicated(["source", "setup", "checks"]).any()
    written = (folder / "nodes.parquet").read_bytes()
    assert asyncio.run(enumerate_steps(planned)) == run
    assert (folder / "nodes.parquet").read_bytes() == written, "resumed from its log, it is the same"
    preset.write_settings()
    pack("smoke", Path("smoke.zip"))
    assert replay(Path("smoke.zip"), make_reports=False).enumerations == {"humaneval": ""}
    table = pq.read_table(folder / "nodes.parquet")
    verdicts = table["correct"].to_pylist()
    at = table.schema.get_field_index("correct")
    altered = table.set_column(at, table.schema.field(at), pa.array([not verdicts[0], *verdicts[1:]]))
    pq.write_table(altered, folder / "nodes.parquet")
    pack("smoke", Path("altered.zip"))
    (difference,) = replay(Path("altered.zip"), make_reports=False).enumerations.values()
    assert difference.startswith(f"1 of {len(nodes)} rows of nodes differ"), difference
    (folder / "nodes.parquet").unlink()
    pack("smoke", Path("empty.zip"))
    assert replay(Path("empty.zip"), make_reports=False).enumerations == {"humaneval": "nodes was not recorded"}
