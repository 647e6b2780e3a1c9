"""Result tables of a cell: schema, writing and reading."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from harness.agents.trajectory import Answered, Call, Decision, Trajectory
from harness.errors import UserError, making
from harness.files import digest, sha256, whole_file, write_atomically
from harness.runner import layout
from harness.runner.preset import making_with

if TYPE_CHECKING:
    from harness.runner.run import CellConfig
    from harness.training.loop import Learned, Training

SCHEMA_VERSION = 1
#: Printed on every artefact of simulated backbones.
SIMULATED_WARNING = (
    "SIMULATED BACKBONES: no trained language model was asked; the measured numbers say nothing about real models"
)
# A row group of calls takes some megabytes in memory. Larger groups do not compress better.
ROW_GROUP = 1 << 12

TEST_SPLIT, TRAINING_SPLIT = "test", "train"
# Type and value of each column of ``items.parquet``, without ``utility`` and ``split``.
_ITEMS: Mapping[str, tuple[pa.DataType, Callable[[Answered], Any]]] = {
    "item_id": (pa.string(), lambda answered: answered.trajectory.item.id),
    "correct": (pa.bool_(), lambda answered: answered.verdict.correct),
    "status": (pa.string(), lambda answered: answered.verdict.status.value),
    "detail": (pa.string(), lambda answered: answered.verdict.detail),
    "answer": (pa.string(), lambda answered: answered.verdict.answer),
    "text": (pa.string(), lambda answered: answered.trajectory.answer),
    "also": (pa.map_(pa.string(), pa.bool_()), lambda answered: sorted(answered.verdict.also.items())),
    "calls": (pa.int64(), lambda answered: len(answered.trajectory.calls)),
    "depth": (pa.int64(), lambda answered: answered.trajectory.depth),
    "prompt_tokens": (pa.int64(), lambda answered: sum(call.prompt_tokens for call in answered.trajectory.calls)),
    "completion_tokens": (
        pa.int64(),
        lambda answered: sum(call.completion_tokens for call in answered.trajectory.calls),
    ),
    "cost_total": (pa.float64(), lambda answered: answered.trajectory.cost_total),
    "cost_steps": (pa.float64(), lambda answered: answered.trajectory.cost_steps),
    "embedded": (pa.int64(), lambda answered: answered.trajectory.embedded),
    "truncated": (pa.int64(), lambda answered: answered.trajectory.truncated),
    "cut_off": (pa.bool_(), lambda answered: answered.trajectory.cut_off),
}
ITEMS = pa.schema(
    [*((name, type_) for name, (type_, _) in _ITEMS.items()), ("utility", pa.float64()), ("split", pa.string())]
)
_TYPES: Mapping[Any, pa.DataType] = {
    str: pa.string(),
    str | None: pa.string(),
    int: pa.int64(),
    int | None: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
}


def _schema(record: type[Call | Decision]) -> pa.Schema:
    fields = [(field.name, _TYPES[field.type]) for field in dataclasses.fields(record)]
    return pa.schema([("item_id", pa.string()), *fields])


_ALL_CALLS, DECISIONS = _schema(Call), _schema(Decision)
# Token details, which few servers report. Tables have these columns only if a call has a value.
_DETAILS = ("cached_tokens", "reasoning_tokens")
CALLS = pa.schema([field for field in _ALL_CALLS if field.name not in _DETAILS])
TABLES: Mapping[str, pa.Schema] = {"items": ITEMS, "calls": CALLS, "decisions": DECISIONS}
_EPISODE = [("epoch", pa.int64()), ("rollout", pa.int64())]
TRAINING_TABLES: Mapping[str, pa.Schema] = {
    "training": pa.schema(
        [("epoch", pa.int64()), ("update", pa.int64()), ("measure", pa.string()), ("value", pa.float64())]
    ),
    "training_calls": pa.schema([*_EPISODE, *CALLS]),
    "training_decisions": pa.schema([*_EPISODE, *DECISIONS]),
}
_Trajectories = Sequence[tuple[Mapping[str, int], Trajectory]]
# Entries of ``run.json`` that ``trained.safetensors`` repeats, since it may be copied alone.
_TRAINED_BY = ("preset", "method", "benchmark", "backbone", "seed", "module", "simulated")


def write(
    folder: Path,
    answered: Mapping[str, Sequence[Answered]],
    identity: dict[str, Any],
    utility: Callable[[Answered], float] | None = None,
) -> dict[str, Any]:
    """Write the tables of a cell and, last, ``run.json``. Return its content.

    Args:
        folder: Folder of the cell.
        answered: Graded answers by split, in the order of its questions.
        identity: Configuration, data, code and models. ``run.json`` adds a digest of the answers alone, the SHA-256 of
            each table, and a hash of the whole content as ``run_id``.
        utility: Objective of a learning method. None writes null.
    """
    items = (
        {
            **{name: value(each) for name, (_, value) in _ITEMS.items()},
            "utility": None if utility is None else utility(each),
            "split": split,
        }
        for split, answers in answered.items()
        for each in answers
    )
    write_table(folder / "items.parquet", ITEMS, items, simulated=identity["simulated"])
    trajectories: _Trajectories = [({}, each.trajectory) for answers in answered.values() for each in answers]
    _write_trajectories(folder, "", trajectories, simulated=identity["simulated"])
    if utility is None:
        # An earlier version of the method may have been trained.
        for name in {*layout.cell_files(learned=True)} - {*layout.cell_files(learned=False)}:
            (folder / name).unlink(missing_ok=True)
    # Their digest is equal on all machines that got the same answers.
    answers = [
        [each.trajectory.item.id, each.verdict.answer, each.verdict.correct, each.verdict.status.value]
        for answers in answered.values()
        for each in answers
    ]
    run = {"schema": SCHEMA_VERSION, **identity, "answers": digest(answers), "tables": digests(folder)}
    run["run_id"] = hashlib.sha256(orjson.dumps(run, option=orjson.OPT_SORT_KEYS)).hexdigest()
    write_atomically(folder / "run.json", orjson.dumps(run, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))
    return run


def write_training(folder: Path, training: Training, learned: Learned, identity: Mapping[str, Any]) -> None:
    """Write the tables of a finished training, and ``trained.safetensors``: arrays, and metadata as JSON text.

    Args:
        folder: Folder of the cell.
        training: The training.
        learned: What its method returned.
        identity: Entries of ``run.json``.
    """
    from safetensors import numpy as safetensors

    is_simulated = identity["simulated"]
    write_table(folder / "training.parquet", TRAINING_TABLES["training"], training.updates, simulated=is_simulated)
    trajectories = [(episode._asdict(), trajectory) for episode, trajectory in training.trajectories]
    _write_trajectories(folder, "training_", trajectories, simulated=is_simulated)
    metadata = {**learned.metadata, **{name: identity[name] for name in _TRAINED_BY}}
    # A single key, since safetensors does not guarantee the order of several.
    text = {"metadata": orjson.dumps(metadata, option=orjson.OPT_SORT_KEYS).decode()}
    tensors = {name: learned.tensors[name] for name in sorted(learned.tensors)}
    write_atomically(folder / layout.TRAINED, safetensors.save(tensors, metadata=text))


def digests(folder: Path) -> dict[str, str]:
    return {path.name: sha256(path) for path in sorted(folder.glob("*.parquet"))}


def read_finished(cell: CellConfig) -> dict[str, Any]:
    """Read ``run.json`` of a finished cell. Raises UserError if settings, code or questions have changed."""
    name = cell.run.name
    path, manifest = layout.cell(name, cell) / "run.json", layout.manifest(name, cell.benchmark)
    for file, problem in ((path, f"{cell} of {name} is not finished"), (manifest, f"{manifest} is missing")):
        if not file.exists():
            raise UserError(problem, making_with(cell.run, file))
    try:
        run: dict[str, Any] = orjson.loads(path.read_bytes())
        data = orjson.loads(manifest.read_bytes())
        has_questions = all(run["data"][name] == data[name] for name in ("checksum", "split_checksum"))
        recorded = {**run, "questions": has_questions, "tables": run["tables"]}
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged ({error!r})", making_with(cell.run, path)) from error
    for name, value in {"questions": True, **cell.record}.items():
        if recorded.get(name) != value:
            raise UserError(f"{path}: its {name} differs from today's", making_with(cell.run, path))
    return run


def check_tables(folder: Path, recorded: Mapping[str, str]) -> None:
    """Raise a UserError if a table is missing or its SHA-256 differs from ``run.json``."""
    for name, expected in recorded.items():
        is_there = (folder / name).is_file()
        if not is_there or sha256(folder / name) != expected:
            what = "is damaged: its SHA-256 is not the one in run.json" if is_there else "is missing"
            cure = f"delete {folder / 'run.json'} and {making(folder / 'run.json')} (calls stay in its log)"
            raise UserError(f"{folder / name} {what}", cure)


def _write_trajectories(folder: Path, prefix: str, trajectories: _Trajectories, *, simulated: bool) -> None:
    """Write the tables of calls and decisions of trajectories, each with its own values of the first columns."""
    for name, schema in (("calls", _ALL_CALLS), ("decisions", DECISIONS)):
        # dataclasses.asdict copies each value, which is much slower.
        rows = (
            {**head, "item_id": trajectory.item.id, **{column: getattr(record, column) for column in schema.names[1:]}}
            for head, trajectory in trajectories
            for record in getattr(trajectory, name)
        )
        shown = {**TABLES, **TRAINING_TABLES}[prefix + name]
        calls = (call for _, trajectory in trajectories for call in trajectory.calls if name == "calls")
        if any(getattr(call, column) is not None for call in calls for column in _DETAILS):
            shown = pa.schema([*shown, *(schema.field(column) for column in _DETAILS)])
        write_table(folder / f"{prefix}{name}.parquet", shown, rows, simulated=simulated)


def write_table(path: Path, schema: pa.Schema, rows: Iterable[Mapping[str, Any]], *, simulated: bool) -> None:
    """Write a table atomically and deterministically, with one row group in memory.

    If simulated, the schema metadata has the warning under the key ``simulated``.
    """
    if simulated:
        schema = schema.with_metadata({"simulated": SIMULATED_WARNING})
    waiting = iter(rows)
    with whole_file(path) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        while group := list(islice(waiting, ROW_GROUP)):
            writer.write_table(pa.Table.from_pylist(group, schema=schema))


def read_rows(path: Path, columns: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """Iterate over the rows of a parquet file, with one row group in memory."""
    with pq.ParquetFile(path) as file:
        for group in file.iter_batches(ROW_GROUP, columns=columns):
            yield from group.to_pylist()
