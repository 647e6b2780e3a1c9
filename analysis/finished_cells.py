"""Read and check the cells of a run: provenance, and data frames of items and training."""

import re
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
from harness.files import Declaration, Many, Text, check
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


def outcome(status: str, correct: bool) -> str:
    """Return ``right``, ``wrong`` or, if a server or the sandbox failed, ``error``."""
    if status in _ERRORS:
        return "error"
    return "right" if correct else "wrong"


def in_order(id_: str) -> list[tuple[int, str]]:
    """Sort key for ids with numbers: 9 before 10."""
    parts = re.split(r"(\d+)", id_)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def short(digest: str) -> str:
    """Return the leading characters of a hash, enough to find it again."""
    return digest[:_SHORT]


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
    run: RunInfo = read_json(folder / "run.json", RunInfo, "run the cell again")
    recorded = [f"RECORDED replies of {name} ({short(digest)})" for name, digest in run.recordings.items()]
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
    known: Timing = Timing() if run.simulated or not path.exists() else read_json(path, Timing, "delete it")
    return known


def read_json(path: Path, form: type[Declaration], cure: str) -> Any:
    """Load a JSON file of a job and check its schema. Raises UserError, whose message ends with ``cure``."""
    try:
        document = orjson.loads(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; {cure}") from error
    except orjson.JSONDecodeError as error:
        raise UserError(f"{path}: not JSON ({error}); {cure}") from error
    return check(document, form, f"{path} is not as this version of the suite writes it; {cure}")


def read_all(folders: Iterable[Path]) -> tuple[FinishedCell, ...]:
    """Load the cells of one table by benchmark, method, backbone and seed; UserError if they are not comparable."""
    # A mean over seeds with different settings describes no run.
    cells = tuple(sorted(map(read, folders), key=attrgetter("run.benchmark", *_ROW, "run.seed")))
    if not cells:
        raise UserError("no results to show: expected at least one cell folder; run the workflow first")
    _agree("kinds of backbones", cells, lambda run: "simulated" if run.simulated else "real")
    _agree("presets", cells, lambda run: run.preset)
    _agree("simulators", cells, lambda run: ", ".join(filter(is_simulated, _values(run, "revision"))) or "none")
    _agree("weights of the backbones", cells, lambda run: ", ".join(map(short, _values(run, "weights", "original"))))
    for benchmark in sorted({cell.run.benchmark for cell in cells}):
        column = [cell for cell in cells if cell.run.benchmark == benchmark]
        _agree(f"data checksums of {benchmark}", column, lambda run: run.data.checksum)
        if column[0].run.data.splits != "resampled":  # else each seed has its own test items
            _agree(
                f"test items of {benchmark}", column, lambda run: f"{run.data.n_test}, {short(run.data.split_checksum)}"
            )
        _agree(f"grading rules of {benchmark}", column, lambda run: f"rules {run.rule_version}")
    for (method, backbone, benchmark), seeds in by_key(cells).items():
        if len({cell.run.seed for cell in seeds}) < len(seeds):
            raise UserError(
                f"the same cell twice ({method}, {backbone}, {benchmark}): "
                f"{' and '.join(str(cell.folder) for cell in seeds)}; expected each seed once; leave one out"
            )
        where = f"between the seeds of {method} ({backbone}) on {benchmark}"
        _agree(f"settings {where}", seeds, lambda run: "; ".join(run.notes) or "none")
        _agree(f"backbones {where}", seeds, lambda run: ", ".join(sorted(map(answered, run.backbones.values()))))
    return cells


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


def _agree(what: str, cells: Sequence[FinishedCell], value_of: Callable[[RunInfo], str]) -> None:
    first = value_of(cells[0].run)
    for cell in cells:
        if (value := value_of(cell.run)) != first:
            raise UserError(
                f"different {what} in one table: {cells[0].folder} ({first}) and {cell.folder} ({value}); "
                "give only cells that belong together, or make one of them again"
            )


def _values(run: RunInfo, name: str, usual: str = "") -> list[str]:
    return sorted({str(backbone.get(name, usual)) for backbone in run.backbones.values()})
