"""Result tables: deterministic bytes, atomic writes, and totals."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq

from harness.agents.trajectory import Answered
from harness.benchmarks.items import Item, Status, Verdict
from harness.llm.request import Message, Reply
from harness.runner import results
from harness.scripted import ScriptedModel
from tests import fixtures


async def write_cell(folder: Path, *questions: str | Reply) -> Path:
    """Write a finished cell that asked these questions; a reply stands for a question that got it."""
    answered = []
    for number, question in enumerate(questions):
        item = Item(id=str(number), benchmark="math", question=str(question), gold="1")
        client = ScriptedModel(question if isinstance(question, Reply) else "x")
        context = fixtures.context(item, client, "")
        await context.ask("small", (Message("user", str(question)),))
        answered.append(Answered(context.close("x"), Verdict(False, None, Status.GRADED)))
    results.write(folder, {"test": answered}, {"cell": str(folder), "simulated": False})
    return folder


async def test_token_details_have_columns_if_a_call_has_them(tmp_path: Path) -> None:
    detailed = Reply("x", 100, 10, "stop", "m", None, 90, 4)
    cells = [await write_cell(tmp_path / "plain", "a"), await write_cell(tmp_path / "detailed", "a", detailed)]
    plain, with_details = (pq.read_table(folder / "calls.parquet") for folder in cells)
    assert with_details.column_names == [*plain.column_names, "cached_tokens", "reasoning_tokens"]
    assert with_details["cached_tokens"].to_pylist() == [None, 90]
    assert with_details["reasoning_tokens"].to_pylist() == [None, 4]


async def test_what_learns_no_more_has_no_training(tmp_path: Path) -> None:
    cell = await write_cell(tmp_path / "once", "a")
    shutil.copy(cell / "calls.parquet", cell / "training_calls.parquet")
    await write_cell(cell, "a")
    assert {path.stem for path in cell.glob("*.parquet")} == {"calls", "decisions", "items"}
