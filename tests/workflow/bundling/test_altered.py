"""Bundles altered with care, so that every check sum is right: the replay finds it, and says where."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.errors import UserError
from harness.runner import layout
from tests.workflow.bundling import runs
from tests.workflow.bundling.runs import BENCHMARK, FOLDERS, altered, replay


def rows(folder: Path, method: str, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(folder / FOLDERS[method] / f"{table}.parquet").to_pylist()
    return found


def rewrite(folder: Path, method: str, table: str, changed: list[dict[str, Any]]) -> None:
    path = folder / FOLDERS[method] / f"{table}.parquet"
    pq.write_table(pa.Table.from_pylist(changed, pq.read_schema(path)), path)


def change_log(folder: Path, method: str, statement: str, *values: str) -> int:
    """Change the call log of a cell; how many rows that was."""
    with closing(sqlite3.connect(folder / FOLDERS[method] / "calls.sqlite", isolation_level=None)) as log:
        return log.execute(statement, values).rowcount


def without(folder: Path, method: str, key: str) -> None:
    """Take one call out of a log."""
    assert change_log(folder, method, "DELETE FROM calls WHERE key = ?", key) == 1


def refused(place: Path, bundle: Path, method: str, change: Callable[[Path], None]) -> str:
    """What a replay of one cell says after a change."""
    with pytest.raises(UserError) as raised:
        replay(altered(bundle, place / "altered.tar", change), method)
    return str(raised.value)


def test_an_unaltered_bundle_written_again_is_the_same(place: Path, bundle: Path) -> None:
    assert altered(bundle, place / "b.tar", lambda folder: None).read_bytes() == bundle.read_bytes()


@pytest.mark.parametrize("method", ["cot", "gmr"])
def test_a_missing_call_of_the_test_is_named(place: Path, recorded: Path, bundle: Path, method: str) -> None:
    trained = {row["key"] for row in rows(recorded, method, "training_calls")} if method == "gmr" else set()
    call = next(row for row in rows(recorded, method, "calls") if row["key"] not in trained)
    said = refused(place, bundle, method, lambda folder: without(folder, method, call["key"]))
    assert said.startswith(f"{runs.CELLS[method]}, item {call['item_id']}, step {call['step']}: a call is missing: ")
    assert f"{call['purpose']}, {call['backbone']} (call {call['key']})" in said


def test_a_call_that_is_missing_from_the_tables_too_is_named_by_the_walk(
    place: Path, recorded: Path, bundle: Path
) -> None:
    *kept, last = rows(recorded, "cot", "calls")

    def change(folder: Path) -> None:
        without(folder, "cot", last["key"])
        rewrite(folder, "cot", "calls", kept)

    said = refused(place, bundle, "cot", change)
    assert (
        f"item {last['item_id']}, step {last['step']}: a call is missing: solve, qwen-2.5-14B was never asked" in said
    )
    assert last["key"] in said


def test_a_missing_call_of_the_training_is_named(place: Path, recorded: Path, bundle: Path) -> None:
    call = rows(recorded, "gmr", "training_calls")[0]
    said = refused(place, bundle, "gmr", lambda folder: without(folder, "gmr", call["key"]))
    assert f"training, epoch {call['epoch']}, item {call['item_id']}, step {call['step']}: a call is missing" in said
    assert call["key"] in said


@pytest.mark.parametrize(("method", "said"), [("cot", "calls not as recorded"), ("gmr", "tokens or cost are not")])
def test_replies_of_another_length_are_found(place: Path, bundle: Path, method: str, said: str) -> None:
    def change(folder: Path) -> None:
        change_log(folder, method, "UPDATE calls SET completion_tokens = completion_tokens + 1")

    assert said in refused(place, bundle, method, change)


@pytest.mark.parametrize("method", ["puppeteer", "masrouter", "gmr"])
def test_a_log_probability_that_the_checkpoint_does_not_give_is_named(
    place: Path, recorded: Path, bundle: Path, method: str
) -> None:
    changed = rows(recorded, method, "decisions")
    names = {"puppeteer": "action", "masrouter": "role", "gmr": "backbone"}
    at = max(place for place, row in enumerate(changed) if row["name"] == names[method])
    changed[at]["log_prob"] -= 1e-4
    said = refused(place, bundle, method, lambda folder: rewrite(folder, method, "decisions", changed))
    one = changed[at]
    assert f"item {one['item_id']}, step {one['step']}: {one['name']} {one['choice']!r} has log-probability" in said


def test_a_log_probability_altered_within_the_tolerance_is_found_by_the_run_id(
    place: Path, recorded: Path, bundle: Path
) -> None:
    changed = rows(recorded, "gmr", "decisions")
    changed[0]["log_prob"] -= 1e-7
    said = refused(place, bundle, "gmr", lambda folder: rewrite(folder, "gmr", "decisions", changed))
    assert "not to the byte what the cell's run_id names" in said


def test_a_decision_that_was_never_made_is_found(place: Path, recorded: Path, bundle: Path) -> None:
    changed = rows(recorded, "gmr", "decisions")
    changed.append({**changed[-1], "name": "mutiny"})
    said = refused(place, bundle, "gmr", lambda folder: rewrite(folder, "gmr", "decisions", changed))
    assert f"item {changed[-1]['item_id']}: decisions not as recorded" in said


def test_another_verdict_is_named(place: Path, recorded: Path, bundle: Path) -> None:
    changed = rows(recorded, "cot", "items")
    changed[2]["correct"] = not changed[2]["correct"]
    said = refused(place, bundle, "cot", lambda folder: rewrite(folder, "cot", "items", changed))
    assert f"item {changed[2]['item_id']}: another verdict" in said


def test_another_answer_is_named(place: Path, recorded: Path, bundle: Path) -> None:
    changed = rows(recorded, "cot", "items")
    changed[1]["text"] += " "
    said = refused(place, bundle, "cot", lambda folder: rewrite(folder, "cot", "items", changed))
    assert f"item {changed[1]['item_id']}: answer not as recorded" in said


def test_another_checkpoint_is_refused(place: Path, bundle: Path) -> None:
    def change(folder: Path) -> None:
        path = folder / FOLDERS["gmr"] / "trained.safetensors"
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))

    assert "is not what the cell answered with" in refused(place, bundle, "gmr", change)


def test_other_questions_than_those_bundled_are_named(place: Path, without_questions: Path) -> None:
    def change(folder: Path) -> None:
        path = folder / layout.hashes("smoke", BENCHMARK)
        known = orjson.loads(path.read_bytes())
        known[sorted(known)[3]] = "0" * 64
        path.write_bytes(orjson.dumps(known))

    assert "is not the one of the recorded run" in refused(place, without_questions, "cot", change)


def test_a_file_that_changes_after_it_was_unpacked_is_named(place: Path, bundle: Path) -> None:
    folder = replay(bundle, "cot")
    path = runs.unpacked(folder) / FOLDERS["cot"] / "decisions.parquet"
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(UserError, match=r"recorded/.*/decisions\.parquet has changed"):
        replay(bundle, "cot")
