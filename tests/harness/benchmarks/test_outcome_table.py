"""Tables of outcomes: what is read of them, how methods run on them, and malformed ones."""

import gzip
import re
import shutil
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from analysis.beyond.trajectories import records
from analysis.finished_cells import read
from cli import signals
from harness.agents.runtime import grade
from harness.agents.trajectory import Trajectory
from harness.benchmarks import outcome_table, prepare
from harness.errors import UserError
from harness.llm.recordings import opened
from harness.runner import cell as cells
from harness.runner import config, layout, questions
from harness.runner.layout import Cell
from harness.runner.plan import plan
from harness.runner.preset import resolve
from tests.command import gmr

HEAD = "item_id,question,backbone,correct,cost\n"


@pytest.fixture
def table(folder: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """Twenty questions by three models, in a new folder. The dearest is always right, the others on even numbers."""
    monkeypatch.setattr(config, "FOLDER", Path(shutil.copytree(config.FOLDER, folder / "config")))
    rows = [
        {"item_id": str(at), "question": f"What is {at}?", "backbone": f"m{model}", "text": f"reply {at} of m{model}"}
        | {"correct": bool(at % 2 == 0 or model == 2), "cost": 0.01 * 10**model, "split": "train" if at < 8 else "test"}
        for at in range(20)
        for model in range(3)
    ]
    return pd.DataFrame(rows)


def run(name: str, method: str, row: str) -> Path:
    keys = {"description": "x", "seeds": [0], "endpoints": "recorded", "recordings": [name], "methods": [method]}
    preset = resolve("mine", keys | opened(Path(name).absolute()).settings)
    questions.write(preset, preset.benchmarks[0])
    cell = Cell(method, preset.benchmarks[0], row, 0)
    signals.run(cells.run(plan(preset, cell)))
    return layout.cell("mine", cell)


@pytest.mark.parametrize(("ending", "method"), [("parquet", "single"), ("csv.gz", "knn_router"), ("jsonl", "single")])
def test_verdicts_costs_and_replies_are_those_of_the_file(table: pd.DataFrame, ending: str, method: str) -> None:
    name = f"t_{ending[:3]}.{ending}"
    as_lines = partial(table.to_json, orient="records", lines=True)
    {"parquet": table.to_parquet, "csv.gz": table.to_csv, "jsonl": as_lines}[ending](name)
    cell = read(run(name, method, "m0" if method == "single" else "pool"))
    items = cell.items.set_index("item_id")
    known = table.set_index(["item_id", "backbone"]).loc[[*zip(items.index, items["text"], strict=True)]]
    assert {*items.index} == {str(at) for at in range(8, 20)}
    assert items[["correct", "cost_total"]].to_numpy().tolist() == known[["correct", "cost"]].to_numpy().tolist()
    assert {"graded by its file", "costs of its file"} < {*cell.run.notes}
    shown = {each.item.id: each.steps[-1].calls[-1].reply for each in records(cell, [opened(Path(name).absolute())])}
    assert [shown[id_] for id_ in items.index] == known["text"].tolist()


def test_a_table_without_costs_is_not_said_to_have_those_of_the_pool(table: pd.DataFrame) -> None:
    table.drop(columns="cost").to_parquet("free.parquet")
    notes = read(run("free.parquet", "single", "m0")).run.notes
    assert any(note.startswith("no costs in its file") for note in notes)
    assert not any("at the prices" in note for note in notes)


def test_whoever_names_a_model_without_asking_it_is_wrong(table: pd.DataFrame) -> None:
    table.to_parquet("unasked.parquet")
    opened(Path("unasked.parquet").absolute())
    bench = outcome_table.GradedByFile("unasked", "unasked")
    guessed = Trajectory(bench.normalise([])[0], "m2", (), ())
    assert not signals.run(grade(bench, guessed, None)).correct  # type: ignore[arg-type]


def test_a_preset_says_what_was_read_and_what_was_not(table: pd.DataFrame) -> None:
    routed, again = table.assign(method="knn_router", backbone="pool", seed=0), table.assign(method="single", seed=1)
    table["correct"] = table["correct"].astype(object).where(table.index != 1)
    pd.concat([table.assign(method="single", seed=0), again, routed]).to_csv("ours.csv", index=False)
    lines = gmr("new", "recording", "ours", "ours.csv").output.splitlines()
    assert lines[0] == "Questions: 19 of ours, each with 3 models"
    assert lines[2].endswith("not for training (mean cost): m2 100.0 % (1), m0 50.0 % (0.01), m1 50.0 % (0.1)")
    others = "120 rows of other methods than single or other seeds than the lowest"
    assert lines[4] == f"Not used: {others}; 1 questions without a value of every model"
    assert resolve("ours").backbones == ("m0", "m1", "m2")
    # Such a benchmark has no gold answers that could be graded.
    assert gmr("data", "--preset", "ours", "--benchmark", "ours").exit_code == 0
    assert layout.items("ours", "ours").exists()
    assert gmr("check", "gold", "--preset", "ours").exit_code == 0


def test_replies_are_graded_by_the_benchmark_of_the_file(table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "load_items", lambda key, _, usual=prepare.load_items: usual(key, "embedded"))
    items = prepare.load_items("gsm_hard", "real").items[:10]
    replies = pd.DataFrame({"item_id": [item.id for item in items], "benchmark": "gsm_hard", "backbone": "m0"})
    replies["text"] = [f"The answer is {item.gold if at % 2 else 7}." for at, item in enumerate(items)]
    replies.to_parquet("text.parquet")
    graded = read(run("text.parquet", "single", "m0")).items.set_index("item_id")["correct"]
    assert graded.to_dict() == {item.id: at % 2 == 1 for at, item in enumerate(items) if item.id in graded.index}
    replies.assign(correct=[at % 2 or at == 4 for at in range(10)]).to_csv("said.csv", index=False)
    said = gmr("replay", "said.csv").output
    assert said == f"said.gsm_hard: 9 of 10 verdicts are those of gsm_hard\n  {items[4].id} by m0: right in the file\n"


@pytest.mark.parametrize(
    ("method", "problem"),
    [("knn_router", "has no column question, which knn_router embeds"), ("cascade", "answers the plain question")],
)
def test_what_a_table_cannot_answer_is_one_line(table: pd.DataFrame, method: str, problem: str) -> None:
    table.drop(columns="question" if method == "knn_router" else []).to_parquet(name := f"{method}.parquet")
    with pytest.raises(UserError, match=problem):
        run(name, method, "pool")


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("lacking.csv", "item_id,backbone\n1,a\n", "it lacks the column item_id, backbone or correct"),
        ("twice.csv", HEAD + "1,q,a,1,0\n1,q,a,0,0\n", "question '1' has two verdicts of a"),
        ("silent.csv", HEAD + "1,q,a,1,0\n1,q,b,,0\n", "b has no value on silent; leave its rows out"),
        ("dear.csv", HEAD + "1,q,a,1,inf\n", "column cost has infinite or negative values"),
        ("two.csv", HEAD + "1,q,a,2,0\n", "column correct has the value 2, expected 0 or 1"),
        ("share.csv", HEAD + "1,q,a,0.8,0\n", "say which share counts as right"),
        ("mixed.jsonl", '{"item_id":"1","backbone":"a","correct":1}\n{"item_id":{}}\n', "JSON parse error"),
        ("words.csv", HEAD + "1,q,a,yes,0\n", "Failed to parse string: 'yes'"),
        ("bomb.csv.gz", gzip.compress(bytes(2 << 20)), "it has more than 1 MB of text"),
        ("named.csv", HEAD + "1,q,../../a,1,0\n", "column backbone has the value '../../a', expected"),
        ("screen.csv", HEAD + "\x1b[2J,q,a,1,0\n", "column item_id has the value"),
        ("code.pkl", "cos\nsystem\n", "a pickle can run code"),
        ("cut.parquet", "PAR1", "is no table of outcomes"),
    ],
)
def test_a_malformed_table_is_one_line(
    name: str, content: str | bytes, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcome_table, "_LARGEST", 1 << 20)
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError, match=re.escape(problem)) as error:
        opened(tmp_path / name)
    assert str(error.value).isprintable()
