"""Synthetic cell folders in the suite's format, and runs for claims."""

import functools
import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from analysis.finished_cells import FinishedCell, RunInfo, by_key
from analysis.paper.claims.measured import Run
from analysis.paper.claims.statements import Claim, Row
from analysis.published import load
from harness.files import check
from harness.llm import backbones
from harness.llm.request import GREEDY
from harness.runner.config import FOLDER, methods
from harness.runner.layout import POOL
from harness.runner.results import DECISIONS, ITEMS, TRAINING_TABLES, digests
from harness.runner.setting import settings_of

TITLES = {"math": "MATH", "gsm_hard": "GSM-Hard", "mbpp": "MBPP", "humaneval": "HumanEval", "mmlu_pro": "MMLU-Pro"}
WriteCell = Callable[..., Path]
#: What one step decided: opened retrieval gates of the records stored so far, and the write gate.
Step = tuple[Sequence[bool], bool]
#: Method, backbone, benchmark, seed.
Cell = tuple[str, str, str, int]


def digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def title(method: str) -> str:
    """Return the title of a method, whether or not the configuration has it."""
    return methods()[method].title if method in methods() else f"The {method}"


@functools.cache
def settings(method: str) -> dict[str, Any]:
    """Return all settings of a method; empty if the configuration lacks it."""
    entry = methods().get(method)
    return settings_of(entry.module, entry.config).model_dump(mode="json") if entry else {}


def verdicts(right: int, n: int) -> list[bool]:
    """``right`` correct answers out of ``n``."""
    return [place < right for place in range(n)]


def marked(text: str) -> list[bool]:
    """Verdicts by letter, of which 1 is right."""
    return [letter == "1" for letter in text]


def pool_of(sizes: Mapping[str, float]) -> dict[str, Any]:
    """Return backbones by key, of which the paper's tables know none, with their sizes."""
    return {key: {"model": key, "parameters_b": size} for key, size in sizes.items()}


def claim(*parts: Mapping[str, Any], **declared: Any) -> Claim:
    """Return a statement about MBPP, unless a part names another benchmark."""
    whole = {"key": "a", "section": "b", "place": "c", "says": "d", **declared}
    claim: Claim = check({**whole, "parts": [{"benchmark": "mbpp", **part} for part in parts]}, Claim, "a made claim")
    return claim


@functools.cache
def declared() -> Mapping[str, backbones.Backbone]:
    return backbones.load(FOLDER / "backbones.yaml")


def run_record(
    method: str,
    backbone: str,
    benchmark: str,
    seed: int,
    n: int,
    n_train: int = 0,
    splits: str = "official",
    **changes: Any,
) -> dict[str, Any]:
    """Return the contents of ``run.json``; ``changes`` replace top-level keys."""
    record: dict[str, Any] = {
        "schema": 1,
        "preset": "embedded",
        "method": method,
        "method_title": title(method),
        "module": methods()[method].module if method in methods() else "elsewhere",
        "compared_cost": methods()[method].compared_cost if method in methods() else "total",
        "benchmark": benchmark,
        "benchmark_title": TITLES.get(benchmark, benchmark),
        "backbone": backbone,
        "seed": seed,
        "simulated": False,
        "notes": [],
        "data": {
            "source": "embedded",
            "splits": splits,
            "checksum": digest("data", benchmark),
            "split_checksum": digest("split", benchmark),
            "n_test": n,
            "n_train": n_train,
        },
        "config": settings(method),
        "config_hash": digest("config", method, backbone),
        "code": digest("code"),
        "run_id": digest("run", method, backbone, benchmark, seed),
        "backbones": {
            key: {"model": declared()[key].model, "served_by": "simulator 1", "parameters_b": load().prices[key].size}
            if key in load().prices
            else {"model": key, "parameters_b": 1}
            for key in (load().prices if backbone == POOL else [backbone])
        },
        "sampling": [GREEDY._asdict()],
        "sandbox": "full",
        "rule_version": "1",
    }
    return {**record, **changes}


def write(
    root: Path,
    method: str = "single",
    backbone: str = "qwen-2.5-14B",
    benchmark: str = "gsm_hard",
    *,
    seed: int = 0,
    correct: Sequence[bool] = (True, True, True, False),
    calls: Sequence[Mapping[str, Any]] | None = None,
    decisions: Sequence[Mapping[str, Any]] = (),
    updates: Sequence[Mapping[str, float]] | None = None,
    per_epoch: int = 100,
    **changes: Any,
) -> Path:
    """Write a cell folder below ``root``; a cell that is written twice is replaced.

    Args:
        updates: The measures of each update; None for a method that does not learn, () for one left as initialised.
        changes: Columns of the items (one value for all, or one per item; ``cost`` sets both costs), top-level keys of
            ``run.json``, or ``n_train``.
    """
    n = len(correct)
    given = {name: changes.pop(name) for name in ("cost", *ITEMS.names) if name in changes}
    folder = root / digest(method, backbone, benchmark, seed, sorted(changes))[:16]
    folder.mkdir(parents=True, exist_ok=True)
    ids = [f"item-{place:04d}" for place in range(n)]
    columns: dict[str, Any] = {
        "item_id": ids,
        "correct": list(correct),
        "status": "graded",
        "detail": "",
        "answer": "7",
        "also": [()] * n,
        "text": "The answer is 7",
        "calls": 2,
        "prompt_tokens": range(100, 100 + n),
        "completion_tokens": 10,
        "cost_total": 0.25,
        "cost_steps": 0.125,
        "depth": 1,
        "cut_off": False,
        "split": "test",
        **given,
    }
    if (cost := columns.pop("cost", None)) is not None:
        columns |= {"cost_steps": cost, "cost_total": cost}
    rows = pd.DataFrame(columns, index=range(n)).to_dict("records")
    table(folder, "items", rows, ITEMS)
    made = [{"item_id": one, "key": one} for one in ids] if calls is None else calls
    table(folder, "calls", [{"item_id": ids[0], "backbone": backbone, **call} for call in made])
    table(folder, "decisions", decisions, DECISIONS)
    if updates is not None:
        log = [
            {"epoch": 1 + (number - 1) // per_epoch, "update": number, "measure": measure, "value": value}
            for number, update in enumerate(updates, 1)
            for measure, value in {"trajectories": 1.0, **update}.items()
        ]
        table(folder, "training", log, TRAINING_TABLES["training"])
    record = run_record(method, backbone, benchmark, seed, n, **changes)
    (folder / "run.json").write_text(json.dumps({"tables": digests(folder), **record}))
    return folder


def table(folder: Path, name: str, rows: Sequence[Mapping[str, Any]], schema: pa.Schema | None = None) -> None:
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), folder / f"{name}.parquet")


def decision(
    name: str, choice: str, probability: float = 0.5, *, item: int = 0, step: int = 1, slot: int = 0, options: int = 2
) -> dict[str, Any]:
    """One decision in a cell's log."""
    row = (f"item-{item:04d}", step, name, slot, choice, options, math.log(probability))
    return dict(zip(DECISIONS.names, row, strict=True))


def trajectory(item: int, *steps: Step) -> list[dict[str, Any]]:
    """Return all draws of both memory gates, steps counted from 1 as in the log."""
    choice = {True: "yes", False: "no"}
    found = []
    for step, (opened, written) in enumerate(steps, 1):
        found += [decision("retrieve", choice[one], item=item, step=step, slot=slot) for slot, one in enumerate(opened)]
        found.append(decision("write", choice[written], item=item, step=step))
    return found


def timed(cell: Path, seconds: float | None = 6.0, in_flight: int = 32) -> Path:
    """Write the timing of a cell, and return its folder."""
    (cell / "timing.json").write_text(json.dumps({"started": 0.5, "test_s": seconds, "in_flight": in_flight}))
    return cell


def run_of(
    correct: Mapping[Cell, Any], seeds: Mapping[Row, Sequence[int]] | None = None, **items: Mapping[Cell, Any]
) -> Run:
    """Return a run from the answers and further item columns of each cell. ``seeds`` default to the cells' seeds."""
    cells = []
    for key, right in sorted(correct.items()):
        record = {**run_record(*key, len(right)), "tables": {}}
        columns = {"correct": right, "depth": 1, **{name: values.get(key, 0.0) for name, values in items.items()}}
        if "cost" in columns:
            columns.setdefault("cost_total", columns["cost"])
        cells.append(FinishedCell(Path("nowhere"), check(record, RunInfo, "a made cell"), pd.DataFrame(columns)))
    every = {cell[:2]: sorted({other[-1] for other in correct if other[:2] == cell[:2]}) for cell in correct}
    return Run(by_key(cells), seeds or every)
