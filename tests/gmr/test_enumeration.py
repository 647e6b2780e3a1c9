"""Enumerations: the calls of every first step, which include all calls of a single-step router."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gmr.enumeration import Selection, enumerate_steps
from harness.agents.roles import by_domain
from harness.database import CALL_LOG
from harness.errors import UserError
from harness.files import check
from harness.llm.call_log import CallLogReader
from harness.runner import cell, layout
from harness.runner.layout import POOL, Cell
from harness.runner.plan import plan
from harness.runner.preset import resolve
from tests.gmr.test_networks import OFF
from tests.small_run import prepare_questions

BACKBONES = ["llama-3.2-3B", "qwen-2.5-32B"]
LIMIT = {"train": 2, "test": 2, "epochs": 2}
SMALL = {"backbones": BACKBONES, "large": BACKBONES, "limit": LIMIT, "benchmarks": ["humaneval"]}


@pytest.fixture(autouse=True)
def questions(folder: Path) -> None:
    prepare_questions("smoke", "humaneval")


def test_routers_of_two_steps_ask_nothing_that_the_enumeration_has_not() -> None:
    small = {"epochs": {"default": 1}, "batch": 2}
    configs = {"_".join(["two", *off]): {**small, **dict.fromkeys(off, False)} for off in OFF[:-1]}
    base = {"extends": "gmr_two_steps"}
    Path("own.yaml").write_text(json.dumps({key: {**base, "title": key, "config": configs[key]} for key in configs}))
    preset, folder = resolve("smoke", {**SMALL, "extra": "own.yaml"}), layout.tree("smoke", "humaneval")
    planned = plan(preset, Cell("gmr_two_steps", "humaneval", POOL, 0))
    pilot = Selection(only="failed", second=BACKBONES[1], draws=1, passed=1)
    asyncio.run(enumerate_steps(planned, pilot))
    part = pq.read_table(folder / "nodes.parquet").to_pandas()
    with CallLogReader(folder / CALL_LOG) as log:
        texts = {key: log.texts(key) for name in ("act", "step2_act") for key in part[f"{name}_key"].dropna()}
    failed = part["step1_passes"].eq(False) & part["step2_backbone"].notna()
    assert {*part.loc[failed, "step2_backbone"]} == {BACKBONES[1]}
    for _, row in part[failed].iterrows():
        prompt = texts[row["step2_act_key"]].messages[-1].content
        assert ("example failed" in prompt) == (row["step2_reads"] and row["tool_output"] == "first")
        assert ("Contributions of colleagues" in prompt) == row["step2_reads"]
        if not row["step2_reads"] and not row["step2_temperature"] and row["backbone"] == BACKBONES[1]:
            assert row["step2_act_key"] == row["act_key"]
    kinds = part[failed].groupby(["item_id", "backbone"])[["step2_reads", "tool_output", "step2_temperature"]].size()
    assert {*kinds.xs(BACKBONES[0], level="backbone")} <= {3}
    assert {*kinds.xs(BACKBONES[1], level="backbone")} <= {4}
    asyncio.run(enumerate_steps(planned))
    nodes = pq.read_table(folder / "nodes.parquet").to_pandas()
    assert len(nodes) == 4 * 2 * (2 + 2 * 6)
    keys = {key for name in nodes if name.endswith("_key") for key in nodes[name].dropna()}
    assert len(keys) <= 4 * 20
    for name in configs:
        each = Cell(name, "humaneval", POOL, 0)
        asyncio.run(cell.run(plan(preset, each)))
        tables = [pq.read_table(path).to_pandas() for path in layout.cell("smoke", each).glob("*calls.parquet")]
        assert {key for table in tables for key in table["key"]} <= keys, each
    # The verdict of a step's own program does not depend on what follows.
    alike = nodes.groupby(["item_id", "act_key"])["step1_correct"].nunique()
    assert alike.eq(1).all()
    assert part["correct"].isna().all()
    assert nodes["correct"].notna().all()


def test_a_question_that_shows_no_example_cannot_fail() -> None:
    planned = plan(resolve("smoke", SMALL), Cell("gmr_two_steps", "humaneval", POOL, 0))
    bare = [replace(item, code=item.code and replace(item.code, visible=())) for item in planned.questions.test]
    planned = replace(planned, questions=replace(planned.questions, test=bare))
    asyncio.run(enumerate_steps(planned, Selection(only="failed")))
    nodes = pq.read_table(layout.tree("smoke", "humaneval") / "nodes.parquet").to_pandas()
    of_test = nodes[nodes["split"] == "test"]
    assert of_test["step1_passes"].isna().all()
    assert of_test["step2_backbone"].isna().all()
    assert nodes["step2_backbone"].notna().any(), "a training question fails"


def test_a_part_that_makes_no_sense_is_one_line() -> None:
    with pytest.raises(UserError, match="draws and passed add to `only: failed`"):
        check({"draws": 1}, Selection, "gmr enumerate")


def test_a_router_of_one_step_asks_nothing_that_the_enumeration_has_not() -> None:
    preset, folder = resolve("smoke", SMALL), layout.tree("smoke", "humaneval")
    rows = [Cell(method, "humaneval", POOL, 0) for method in ("gmr_one_step", "random_one_step", "fixed_step")]
    planned = plan(preset, rows[0])
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
    for each in rows:
        asyncio.run(cell.run(plan(preset, each)))
        tables = [pq.read_table(path).to_pandas() for path in layout.cell("smoke", each).glob("*calls.parquet")]
        assert {key for table in tables for key in table["key"]} <= keys, each
    # The constant policy is the best one of the training questions, of equals the cheapest.
    train = nodes[(nodes["split"] == "train") & nodes["stored"]]
    worth = train.groupby(["backbone", "role"], sort=False).agg({"correct": "sum", "cost_total": "sum"})
    backbone, role = worth.sort_values(["correct", "cost_total"], ascending=[False, True], kind="stable").index[0]
    decisions = pq.read_table(layout.cell("smoke", rows[-1]) / "decisions.parquet").to_pandas()
    assert set(decisions["choice"]) == {f"{role} of {backbone}"}
    tools = pq.read_table(folder / "tools.parquet").to_pandas()
    assert len(tools) > 0
    assert not tools.duplicated(["source", "setup", "checks"]).any()
    written = (folder / "nodes.parquet").read_bytes()
    assert asyncio.run(enumerate_steps(planned)) == run
    assert (folder / "nodes.parquet").read_bytes() == written, "resumed from its log, it is the same"
