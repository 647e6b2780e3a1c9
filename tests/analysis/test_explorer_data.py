from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest

from analysis import results
from analysis.explorer import data
from analysis.explorer.packing import Chunk
from analysis.trajectories import open_cell
from harness.benchmarks.items import Item, Status, Verdict
from harness.llm.request import Reply
from harness.runner import layout
from harness.runner.config import Cell
from tests.analysis.trajectories.made import PRESET, RIGHT, Ask, Story, finish, prepare

SINGLE = Cell("single", "gsm_hard", "small", 0)
COT = Cell("cot", "gsm_hard", "small", 0)
RULES = "State the answer.\n\nOn a line of its own."


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def question(number: int) -> Item:
    return Item(f"q/{number}", "gsm_hard", f"What is\n\n{number}? {'word ' * 40}", str(number))


def story(reply: str, verdict: Verdict = RIGHT) -> Story:
    return Story([Ask(reply, [("user", f"{RULES}\n\nQuestion of {reply}")])], answer=reply, verdict=verdict)


def made(cell: Cell, *stories: Story) -> results.Cell:
    items = [question(number) for number in range(len(stories))]
    prepare(items)
    finish(cell, items, stories)
    return results.read(layout.cell(PRESET, cell))


def value(path: Path) -> Any:
    packed = re.fullmatch(r'GMR\.put\(".+","([A-Za-z0-9+/=]+)"\);\n', path.read_text(encoding="ascii"))
    assert packed
    return json.loads(zlib.decompress(base64.b64decode(packed[1])))


def texts(chunk: dict[str, Any]) -> list[str]:
    return ["\n\n".join(chunk["paragraphs"][part] for part in text) for text in chunk["texts"]]


def test_texts_come_back_from_their_paragraphs_and_each_is_there_once() -> None:
    replies = ["a\n\nb", "\n\n", "\n\n\n", "b\n\na\n\nb"]
    made(SINGLE, *map(story, replies))
    chunk = Chunk()
    with open_cell(PRESET, SINGLE) as records:
        for id_ in records.ids:
            chunk.add(records.record(id_))
    packed = chunk.packed()
    found = texts(packed)
    assert len(set(packed["paragraphs"])) == len(packed["paragraphs"])
    assert len(set(found)) == len(found)
    assert chunk.size == sum(map(len, packed["paragraphs"]))
    assert packed["paragraphs"].count("State the answer.") == 1
    calls = [record["steps"][0]["calls"][0] for record in packed["records"]]
    assert [found[call["reply"]] for call in calls] == replies
    assert [found[call["messages"][0][1]] for call in calls] == [f"{RULES}\n\nQuestion of {one}" for one in replies]
    assert [found[record["question"]] for record in packed["records"]] == [question(n).question for n in range(4)]


def test_items_are_right_wrong_or_in_error() -> None:
    verdicts = [
        Verdict(True, "7", Status.GRADED),
        Verdict(False, "8", Status.GRADED),
        Verdict(False, None, Status.UNPARSABLE),
        Verdict(False, None, Status.EMPTY),
        Verdict(False, None, Status.TRUNCATED),
        Verdict(False, None, Status.CALL_FAILED),
        Verdict(False, "x", Status.SANDBOX_ERROR),
    ]
    cell = made(SINGLE, *(story(f"reply {n}", verdict) for n, verdict in enumerate(verdicts)))
    data.write_data(PRESET, [cell], Path("data"))
    found = value(Path("data/explorer/single/gsm_hard/small/0/items.js"))
    assert found["id"] == [f"q/{n}" for n in range(7)]
    assert found["verdict"] == ["right", "wrong", "wrong", "wrong", "wrong", "error", "error"]
    assert found["status"] == [str(verdict.status) for verdict in verdicts]
    assert (found["calls"], found["tokens"], found["depth"]) == ([1] * 7, [110] * 7, [1] * 7)


def test_a_chunk_ends_where_it_is_large_enough_and_items_know_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "_MOST", 1000)
    cell = made(SINGLE, *(story(f"{n}" * 600) for n in range(5)))
    written = data.write_data(PRESET, [cell], Path("data"))
    folder = Path("data/explorer/single/gsm_hard/small/0")
    numbers = value(folder / "items.js")["chunk"]
    assert sorted(set(numbers)) == list(range(len(set(numbers))))
    assert len(set(numbers)) > 2
    for place, number in enumerate(numbers):
        ids = [record["id"] for record in value(folder / f"{number}.js")["records"]]
        assert f"q/{place}" in ids
    assert sorted(path for path in Path("data").rglob("*.js")) == sorted(written)


def test_cells_are_listed_in_their_order_whatever_the_benchmarks() -> None:
    other = Cell("single", "mbpp", "small", 0)
    first = made(SINGLE, story("one"), story("two", Verdict(False, None, Status.EMPTY)))
    prepare([Item("p/0", "mbpp", "Write", "pass")])
    finish(other, [Item("p/0", "mbpp", "Write", "pass")], [story("pass")], simulated=False, notes=["a note"])
    second = results.read(layout.cell(PRESET, other))
    finish(COT, [question(0), question(1)], [story("one"), story("two")])
    third = results.read(layout.cell(PRESET, COT))
    data.write_data(PRESET, [first, second, third], Path("data"))
    listed = value(Path("data/explorer/cells.js"))
    assert [one["name"] for one in listed] == ["single/gsm_hard/small/0", "single/mbpp/small/0", "cot/gsm_hard/small/0"]
    assert [(one["right"], one["items"], one["simulated"]) for one in listed] == [
        (1, 2, True),
        (1, 1, False),
        (2, 2, True),
    ]
    assert listed[1]["notes"] == ["a note"]
    assert listed[0]["folder"] == "results/embedded/cells/single/gsm_hard/small/seed0"
    ids, words = value(Path("data/explorer/questions/gsm_hard.js"))
    assert ids == ["q/0", "q/1"]
    assert words[1] == "What is 1?" + " word" * 17 + " ..."


def test_the_same_cells_make_the_same_bytes() -> None:
    cell = made(SINGLE, story("one"), story("two"))
    made_twice = [
        {path.relative_to(folder): path.read_bytes() for path in data.write_data(PRESET, [cell], folder)}
        for folder in (Path("a"), Path("b"))
    ]
    assert made_twice[0] == made_twice[1]
    assert len(made_twice[0]) == 4


def test_a_failed_call_and_a_lost_log_are_told_apart() -> None:
    failed = Story([Ask(Reply.failed("org/model", "refused"))], verdict=Verdict(False, None, Status.CALL_FAILED))
    cell = made(SINGLE, failed)
    path = Path("data/explorer/single/gsm_hard/small/0/0.js")
    data.write_data(PRESET, [cell], Path("data"))
    chunk = value(path)
    (call,) = chunk["records"][0]["steps"][0]["calls"]
    assert (texts(chunk)[call["error"]], texts(chunk)[call["reply"]]) == ("refused", "")
    (cell.folder / "calls.sqlite").unlink()
    data.write_data(PRESET, [cell], Path("data"))
    (call,) = value(path)["records"][0]["steps"][0]["calls"]
    assert (call["messages"], call["reply"]) == (None, None)
