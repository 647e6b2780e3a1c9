"""Synthetic cell folders, written the way the suite writes them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.published import load
from analysis.table import BEST, NOT_RUN, Entry, Table, shown
from harness.agents.results import ITEMS
from tests.analysis.reading import Read

TITLES = {
    "math": "MATH",
    "gsm_hard": "GSM-Hard",
    "mbpp": "MBPP",
    "humaneval": "HumanEval",
    "mmlu_pro": "MMLU-Pro",
}
WriteCell = Callable[..., Path]


def digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def run_record(method: str, backbone: str, benchmark: str, seed: int, n: int, **changes: Any) -> dict[str, Any]:
    """The contents of ``run.json``; ``changes`` replace top-level keys."""
    record: dict[str, Any] = {
        "schema": 1,
        "preset": "embedded",
        "method": method,
        "method_title": f"The {method}",
        "benchmark": benchmark,
        "benchmark_title": TITLES.get(benchmark, benchmark),
        "backbone": backbone,
        "seed": seed,
        "simulated": True,
        "calibrated": False,
        "notes": [],
        "data": {
            "source": "embedded",
            "splits": "official",
            "checksum": digest("data", benchmark),
            "split_checksum": digest("split", benchmark),
            "n_test": n,
        },
        "config_hash": digest("config", method, backbone),
        "code": digest("code"),
        "run_id": digest("run", method, backbone, benchmark, seed),
        "backbones": {backbone: {"model": f"simulated/{backbone}", "served_by": "simulator 1"}},
        "sandbox": "full",
        "rule_version": "1",
    }
    return {**record, **changes}


def item_rows(
    correct: Sequence[bool], statuses: Sequence[str], math_verify: Sequence[bool | None], details: Sequence[str]
) -> pa.Table:
    rows = [
        {
            "item_id": f"item-{place:04d}",
            "correct": right,
            "status": status,
            "detail": detail,
            "answer": "7",
            "text": "The answer is 7",
            "math_verify": second,
            "calls": 2,
            "prompt_tokens": 100 + place,
            "completion_tokens": 10,
            "cost_total": 0.25,
            "cost_steps": 0.125,
            "depth": 1,
        }
        for place, (right, status, second, detail) in enumerate(
            zip(correct, statuses, math_verify, details, strict=True)
        )
    ]
    return pa.Table.from_pylist(rows, schema=ITEMS)


@pytest.fixture
def write_cell(tmp_path: Path) -> WriteCell:
    """Write one cell folder and return it."""

    def write(
        method: str = "single",
        backbone: str = "qwen-2.5-14B",
        benchmark: str = "gsm_hard",
        *,
        seed: int = 0,
        correct: Sequence[bool] = (True, True, True, False),
        statuses: Sequence[str] | None = None,
        math_verify: Sequence[bool | None] | None = None,
        details: Sequence[str] | None = None,
        **changes: Any,
    ) -> Path:
        n = len(correct)
        folder = tmp_path / "cells" / digest(method, backbone, benchmark, seed, sorted(changes))[:16]
        folder.mkdir(parents=True)
        record = run_record(method, backbone, benchmark, seed, n, **changes)
        (folder / "run.json").write_text(json.dumps(record))
        items = item_rows(correct, statuses or ["graded"] * n, math_verify or [None] * n, details or [""] * n)
        pq.write_table(items, folder / "items.parquet")
        for name in ("calls", "decisions"):
            rows = {"item_id": items["item_id"], "key": items["item_id"]}
            pq.write_table(pa.table(rows), folder / f"{name}.parquet")
        return folder

    return write


def _verdicts(right: int, n: int) -> list[bool]:
    """``right`` correct answers out of ``n``."""
    return [place < right for place in range(n)]


@pytest.fixture
def verdicts() -> Callable[[int, int], list[bool]]:
    """The verdicts of ``right`` correct answers out of ``n``, as a function of both."""
    return _verdicts


@pytest.fixture
def full_run(write_cell: WriteCell) -> list[Path]:
    """Every published row on every benchmark, close to the published values, the single-model rows calibrated."""
    folders = []
    for row in load().rows:
        for benchmark, cell in row.accuracies.items():
            n = 200
            wobble = int(digest(row.method, row.backbone, benchmark), 16) % 9 - 4
            folders.append(
                write_cell(
                    row.method,
                    row.backbone,
                    benchmark,
                    correct=_verdicts(min(n, round(n * cell.percent / 100) + wobble), n),
                    statuses=[*["graded"] * (n - 2), "unparsable", "call_failed"],
                    math_verify=_verdicts(n // 2, n) if benchmark == "math" else None,
                    calibrated=row.method == "single",
                    benchmark_title=f"mini-{TITLES[benchmark]}",
                    notes=["length_scale 0.2"],
                )
            )
    return folders


@pytest.fixture
def tiny() -> Callable[..., Read]:
    """Build a small table with a given text wherever text may stand."""

    def build(text: str = "text", simulated: bool = True) -> Read:
        entries = [Entry("12.34", BEST, "†", "+1.00", "10.0–14.0")] * 3
        return Read(
            Table(
                label="tiny",
                caption=text,
                simulated=simulated,
                shown=shown(
                    [("one", text, "a"), ("one", text, "b"), ("two", "z", "a")],
                    ("Method", "LLM"),
                    {(text, text): {"Publ.": entries, "Meas.": [Entry(NOT_RUN)] * 3}},
                ),
                notes=(text,),
                provenance={text: text},
                frame=pd.DataFrame([{"a": text, "b": 1}]),
            )
        )

    return build
