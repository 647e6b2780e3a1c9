"""The cells of a run: their identity, and data frames of items and training."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from harness.benchmarks.items import Status
from harness.errors import UserError, printable
from harness.files import Declaration, Many, Text, check, digest
from harness.llm.request import is_simulated
from harness.runner import layout
from harness.runner.results import TEST_SPLIT, check_tables

#: The training log in the folder of a cell.
TRAINING = "training.parquet"
_COLUMNS = [
    *("item_id", "status", "detail", "answer", "text", "correct", "also"),
    *("calls", "depth", "prompt_tokens", "completion_tokens", "cost_total", "cost_steps", "cut_off"),
]
# A server or the sandbox failed, so the answer could not be judged.
_ERRORS = frozenset({Status.CALL_FAILED, Status.SANDBOX_ERROR})
_SHORT = 12
_ROW = ("run.method", "run.backbone")
# Revisions that are commits of a weight repository. Others, such as the simulator's, are names.
_COMMIT = re.compile(r"[0-9a-f]{40}")
# Family and size of a model, and the bits of its weights.
_SIZED = re.compile(r"(.+?)-(\d[\d.]*[BM])(?:-Instruct)?(?:-.*)?")
_BITS = re.compile(r"I?Q(\d)")


def outcome(status: str, correct: bool) -> str:
    """Return ``right``, ``wrong`` or, if a server or the sandbox failed, ``error``."""
    if status in _ERRORS:
        return "error"
    return "right" if correct else "wrong"


def in_order(id_: str) -> list[tuple[int, str]]:
    """Sort key for ids with numbers: 9 before 10."""
    parts = re.split(r"(\d+)", id_)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def short(hash_: str) -> str:
    """Return the leading characters of a hash, enough to find it again."""
    return hash_[:_SHORT]


class Data(Declaration, extra="ignore"):
    """The questions of a cell."""

    source: str
    splits: str
    checksum: Text
    split_checksum: Text
    n_test: PositiveInt
    n_train: NonNegativeInt  # 0 for methods that do not learn


class RunInfo(Declaration, extra="ignore"):
    """Content of ``run.json`` that reports need."""

    version: Literal[1] = Field(alias="schema")
    preset: Text
    method: Text
    method_title: Text
    module: Text  # with the method's code
    multi_agent: bool | None = None  # None: not declared in the method's entry
    routing: bool | None = None
    compared_cost: Literal["total", "steps"]  # calls that count for cost in tables (D-REPORT-2)
    swept: Many[bool | int | float | str] = ()  # of a variant in a sweep: the swept method, and the value
    benchmark: Text
    benchmark_title: Text
    backbone: Text
    seed: int
    simulated: bool
    notes: Many[str]  # warnings for readers of a table, such as a reduced number of questions
    data: Data
    config: Mapping[str, Any]  # every setting of the method
    config_hash: Text
    code: Text
    run_id: Text
    answers: str = ""  # digest of question, answer and verdict by row
    tables: Mapping[str, Text]  # SHA-256 by file name
    backbones: Mapping[str, Mapping[str, Any]]  # identity of each backbone by its key
    sampling: Many[Mapping[str, float]]  # distinct sampling parameters of test calls
    recordings: Mapping[str, Text] = {}  # SHA-256 of the recordings that answered calls, by name
    sandbox: str
    rule_version: str

    @property
    def cell(self) -> str:
        """Return the name of the cell in links and records: ``METHOD/BENCHMARK/BACKBONE/SEED``."""
        return f"{self.method}/{self.benchmark}/{self.backbone}/{self.seed}"


@dataclass(frozen=True, slots=True, eq=False)
class FinishedCell:
    """One measured cell."""

    folder: Path
    run: RunInfo
    items: pd.DataFrame  # by id; ``cost`` is the compared cost; each secondary rule has a column of verdicts
    rules: tuple[str, ...] = ()  # secondary grading rules in use, such as ``math_verify``

    def rows(self, table: str, columns: Sequence[str]) -> pd.DataFrame:
        """Load some columns of ``calls`` or ``decisions``, for test questions only."""
        rows = read_table(self.folder / f"{table}.parquet", ["item_id", *columns])
        return rows[rows["item_id"].isin(self.items["item_id"])].reset_index(drop=True)


def read(folder: Path) -> FinishedCell:
    """Load one cell; raises UserError if it is incomplete, damaged or of another version of the suite."""
    run = read_run(folder)
    check_tables(folder, run.tables)
    items = read_table(folder / "items.parquet", _COLUMNS, test_alone=True).sort_values("item_id", ignore_index=True)
    also = pd.DataFrame(map(dict, items.pop("also")), dtype=object)
    rules = tuple(sorted(map(str, also.columns)))
    items = items.assign(cost=items[f"cost_{run.compared_cost}"], **{rule: also[rule] for rule in rules})
    return FinishedCell(folder, run, items, rules)


def read_run(folder: Path) -> RunInfo:
    """Load ``run.json`` of a cell without checking its tables."""
    run: RunInfo = _read_json(folder / "run.json", RunInfo, "run the cell again")
    recorded = [f"RECORDED replies of {name} ({short(sha)})" for name, sha in run.recordings.items()]
    # Whitespace and control characters in notes must not break tables or terminals.
    notes = tuple(printable(" ".join(note.split())) for note in (*run.notes, *recorded))
    return run.model_copy(update={"notes": notes})


class Timing(Declaration, extra="ignore"):
    """Content of ``timing.json`` that reports need."""

    started: float | None = None  # seconds since 1970
    wall_s: float | None = None
    test_s: PositiveFloat | None = None  # of all test questions; None unless one process made all their calls
    in_flight: PositiveInt | None = None  # concurrent questions
    platform: str = ""


def timing(folder: Path, run: RunInfo) -> Timing:
    """Load the timing of a cell; empty if it is simulated or has none."""
    path = folder / layout.TIMING
    known: Timing = Timing() if run.simulated or not path.exists() else _read_json(path, Timing, "delete it")
    return known


def _read_json(path: Path, form: type[Declaration], cure: str) -> Any:
    """Load a JSON file of a job and check its schema. Raises UserError, whose message ends with ``cure``."""
    try:
        document = orjson.loads(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; {cure}") from error
    except orjson.JSONDecodeError as error:
        raise UserError(f"{path}: not JSON ({error}); {cure}") from error
    return check(document, form, f"{path} is not as this version of the suite writes it; {cure}")


def read_all(folders: Iterable[Path]) -> tuple[FinishedCell, ...]:
    """Load the cells of a run by benchmark, method, backbone and seed.

    Raises UserError if one is damaged, if some are simulated and others real or of another simulator or kind of
    weights, if cells of a benchmark have other test questions or grading rules, or if another seed of a row has other
    settings or weights: a mean over these describes no run.
    """
    cells = tuple(sorted(map(read, folders), key=attrgetter("run.benchmark", *_ROW, "run.seed")))
    _agree("kinds of backbones", {cell.folder: "simulated" if cell.run.simulated else "real" for cell in cells})
    simulators = {cell.folder: ", ".join(filter(is_simulated, _values(cell.run, "revision"))) for cell in cells}
    _agree("simulators", {folder: revisions or "none" for folder, revisions in simulators.items()})
    kinds = {cell.folder: ", ".join(map(short, _values(cell.run, "weights", "original"))) for cell in cells}
    _agree("weights of the backbones", kinds)
    for benchmark, group in groupby(cells, key=attrgetter("run.benchmark")):
        column = [*group]
        _agree(f"grading rules of {benchmark}", {cell.folder: f"rules {cell.run.rule_version}" for cell in column})
        # Of resampled splits, each seed has its own test questions.
        data = {cell.folder: cell.run.data for cell in column if cell.run.data.splits != "resampled"}
        names = {"n_test", "checksum", "split_checksum"}
        _agree(f"test questions of {benchmark}", {path: of.model_dump_json(include=names) for path, of in data.items()})
    for row, seeds in by_key(cells).items():
        weights = {cell.folder: ", ".join(sorted(map(answered, cell.run.backbones.values()))) for cell in seeds}
        _agree(f"weights answered in the seeds of {' '.join(row)}", weights)
        settings = {cell.folder: "; ".join(cell.run.notes) or "none" for cell in seeds}
        _agree(f"settings in the seeds of {' '.join(row)}", settings)
    return cells


def _values(run: RunInfo, name: str, usual: str = "") -> list[str]:
    return sorted({str(backbone.get(name, usual)) for backbone in run.backbones.values()})


def _agree(what: str, values: Mapping[Path, str]) -> None:
    """Raise UserError, which names a folder for each value, if cells have different values."""
    folders = {value: folder for folder, value in values.items()}
    if len(folders) > 1:
        found = "; ".join(f"{folder}: {value}" for value, folder in folders.items())
        raise UserError(f"different {what}: {found}", "make one of them again")


def by_key(cells: Iterable[FinishedCell]) -> dict[tuple[str, str, str], tuple[FinishedCell, ...]]:
    """Return the cells by method, backbone and benchmark, sorted, each group in order of seed."""
    ordered = sorted(cells, key=attrgetter(*_ROW, "run.benchmark", "run.seed"))
    return {key: tuple(group) for key, group in groupby(ordered, key=attrgetter(*_ROW, "run.benchmark"))}


def read_table(path: Path, columns: Sequence[str], *, test_alone: bool = False) -> pd.DataFrame:
    """Load columns of a cell's Parquet file; ``test_alone`` selects the test questions of ``items``.

    Raises UserError if the file or a column is missing or damaged.
    """
    try:
        filters = [("split", "=", TEST_SPLIT)] if test_alone else None
        return pq.read_table(path, columns=list(columns), filters=filters).to_pandas()[list(columns)]
    except (pa.ArrowException, OSError, KeyError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(
            f"{path}: not a readable table with the columns {', '.join(columns)} ({reason}); run the cell again"
        ) from error


def updates(cell: FinishedCell) -> pd.DataFrame:
    """Load the training log: one row per update, one column per measure, and ``epoch``."""
    rows = read_table(cell.folder / TRAINING, ("epoch", "update", "measure", "value"))
    log = rows.pivot(index=["update", "epoch"], columns="measure", values="value")
    return log.reset_index("epoch").rename_axis(columns=None)


def answered(backbone: Mapping[str, Any]) -> str:
    """Return the weights that answered for a backbone of ``run.json``, with their revision if it is known."""
    model, revision = backbone["model"], backbone.get("revision")
    return f"{model} at {short(revision) if _COMMIT.fullmatch(revision) else revision}" if revision else str(model)


def served(backbone: Mapping[str, Any]) -> str:
    """Return weights, revision and server of a backbone. An unconfirmed revision says so."""
    doubt = " (not confirmed)" if backbone.get("revision") and not backbone.get("revision_confirmed") else ""
    server = f" by {backbone['served_by']}" if backbone.get("served_by") else ""
    return f"{answered(backbone)}{doubt}{server}"


def models_in_words(runs: Iterable[RunInfo]) -> str:
    """Name the models of some cells, such as "Qwen2.5-Coder 0.5B and 1.5B, 4-bit weights"."""
    sizes: defaultdict[str, dict[str, None]] = defaultdict(dict)
    weights: dict[str, None] = {}
    for backbone in (backbone for run in runs for backbone in run.backbones.values()):
        name = str(backbone["model"]).rpartition("/")[2].partition(":")[0]
        sized = _SIZED.fullmatch(name)
        sizes[sized[1] if sized else name][sized[2] if sized else ""] = None
        kind = str(backbone.get("quantisation") or backbone.get("weights") or "")
        weights[f"{bits[1]}-bit weights" if (bits := _BITS.match(kind)) else kind and f"{kind} weights"] = None
    models = (f"{family} {' and '.join(of)}".strip() for family, of in sizes.items())
    return ", ".join(filter(None, (*models, *weights)))


def provenance(runs: Sequence[RunInfo]) -> dict[str, str]:
    """Return the settings that distinguish runs by name, each on one line."""
    run_ids = "\n".join(sorted(run.run_id for run in runs))
    return {
        "run": short(hashlib.sha256(run_ids.encode()).hexdigest()),
        "preset": _listed(run.preset for run in runs),
        "cells": str(len(runs)),
        "seeds": ", ".join(map(str, sorted({run.seed for run in runs}))),
        "data": _listed(f"{run.benchmark} {short(run.data.checksum)}" for run in runs),
        "source": _listed(f"{run.data.source}, splits {run.data.splits}" for run in runs),
        "code": _listed(short(run.code) for run in runs),
        "rules": _listed(f"{run.benchmark} {run.rule_version}" for run in runs),
        "sandbox": _listed(run.sandbox for run in runs),
        "backbones": _backbones(runs),
    }


def answers_of(runs: Iterable[RunInfo]) -> str:
    """Digest the answers of some cells, in any order. It does not depend on code, machine or recordings."""
    return short(digest(sorted([run.cell, run.answers] for run in runs)))


def identity(runs: Sequence[RunInfo]) -> dict[str, str]:
    """Return the identity columns of a tidy table. Differing values are in the order of the runs."""

    def joined(value_of: Callable[[RunInfo], str]) -> str:
        values = list(map(value_of, runs))
        return values[0] if len(set(values)) == 1 else " ".join(values)

    return {
        "swept": str(runs[0].swept[1]) if runs[0].swept else "",
        "seeds": " ".join(map(str, sorted({run.seed for run in runs}))),
        "run_id": joined(lambda run: run.run_id),
        "config_hash": joined(lambda run: run.config_hash),
        "code": joined(lambda run: run.code),
        "data_checksum": joined(lambda run: run.data.checksum),
        "backbones": _backbones(runs),
    }


def _backbones(runs: Iterable[RunInfo]) -> str:
    return _listed(f"{key}={served(backbone)}" for run in runs for key, backbone in run.backbones.items())


def _listed(values: Iterable[str]) -> str:
    return "; ".join(sorted(set(values)))
