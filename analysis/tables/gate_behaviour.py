"""What the gates do on the test questions: depth, write rate, retrieved fraction by step, empty memories."""

from __future__ import annotations

import math
from statistics import fmean
from typing import Any, NamedTuple

import pandas as pd

from analysis import notes, traces
from analysis.frames import IDENTITY, Results
from analysis.provenance import identity
from analysis.ratios import estimates
from analysis.results import Cell
from analysis.source import Source
from analysis.table import NOT_RUN, Entry, Table, shown, signed

_TABLE = "gate_behaviour"
_COLUMNS = ["method", "benchmark", "measure", "published", "measured", "low", "high", "by_seed", "cases", *IDENTITY]


class _Measure(NamedTuple):
    """One row: its section and title, the measure of the paper beside it, unit, and decimals here and in print."""

    section: str
    title: str
    published: str
    factor: float = 100
    digits: int = 1
    printed_digits: int = 0


_WHOLE = "Trajectories"
# By the name of the ratio (:func:`analysis.traces.ratios`).
_MEASURES = {
    "depth": _Measure(_WHOLE, "mean depth", "depth", 1, 2, 2),
    "write_rate": _Measure(_WHOLE, "steps written (%)", "write_rate", printed_digits=1),
    "empty_memory": _Measure(_WHOLE, "nothing stored at the end (%)", "empty_memory", printed_digits=1),
    **{
        f"{name}_{k}": _Measure(section, f"step {k} (%)", f"retrieved_{k}")
        for section, name in (
            ("Retrieved of stored, pooled", "retrieved"),
            ("Retrieved of stored, mean of cases", "retrieved_mean"),
        )
        for k in traces.STEPS
    },
}
_NOTES = (
    (
        "Publ.: printed in the paper. Meas.: this run; beside it measured minus published, below it the 95 % interval "
        "of a bootstrap over the questions, with several seeds over questions and seeds. Cases: trajectories with a "
        "part in the value, mean over the seeds."
    ),
    (
        "Steps are counted from 0, as in the paper; at step 0 nothing is stored. A case of step k is a trajectory that "
        "reaches it with at least one record stored."
    ),
    (
        "Pooled: records retrieved in all cases over records stored in all cases. Mean of cases: the same ratio case "
        "by case, then their mean. The paper's wording fits both, so both stand beside its numbers."
    ),
    (
        f"{NOT_RUN}: no case, so the gate had nothing to decide; a seed without a case has no part in a mean. A blank "
        "published column: the paper prints no such value."
    ),
)


def build(source: Source) -> Table:
    """Build the table: a row a measure, a group of columns a benchmark.

    Raises:
        UserError: A cell cannot be read, its decisions are damaged, or it does not go with the others, being of
            another preset or another method.
    """
    results = source.results()
    frames = {key: _frame(results, key, cells) for key, cells in traces.by_benchmark(results).items()}
    groups = {(results.benchmarks[key], results.questions(key)): _group(frame) for key, frame in frames.items()}
    rows = [(measure.section, measure.section, measure.title) for measure in _MEASURES.values()]
    return Table(
        label="gate-behaviour",
        caption=f"What the gates of GMR do on the test questions.{notes.conditions(results)}",
        simulated=results.simulated,
        shown=shown(rows, ("", "Measure"), groups),
        notes=(*_NOTES, *notes.protocol(results)),
        provenance=results.provenance,
        frame=pd.concat(frames.values())[_COLUMNS],
    )


def _frame(results: Results, benchmark: str, cells: tuple[Cell, ...]) -> pd.DataFrame:
    """One row a measure, in the unit of the table; a seed without a case is ``nan``."""
    seeds = [traces.ratios(traces.read(cell)) for cell in cells]
    found, method = estimates(seeds), cells[0].run.method
    first = next((seed for cell, seed in zip(cells, seeds, strict=True) if cell.run.seed == 0), {})
    records = []
    for name, measure in _MEASURES.items():
        values = [seed[name].value if name in seed else math.nan for seed in seeds]
        ends = found[name][:3] if name in found else (math.nan,) * 3
        records.append(
            {
                "method": method,
                "benchmark": benchmark,
                "measure": name,
                "published": results.published.at(_TABLE, method, benchmark, measure.published),
                **{key: measure.factor * one for key, one in zip(("measured", "low", "high"), ends, strict=True)},
                "by_seed": " ".join(f"{measure.factor * value:.10g}" for value in values),
                "seed0": measure.factor * first[name].value if name in first else None,
                "several": len(cells) > 1 and any(cell.run.seed == 0 for cell in cells),
                "cases": fmean(seed[name].cases if name in seed else 0 for seed in seeds),
                **identity(cells),
            }
        )
    return pd.DataFrame(records)


def _group(frame: pd.DataFrame) -> dict[str, list[Entry]]:
    rows = [(row, _MEASURES[row.measure]) for row in frame.itertuples()]
    printed = [
        Entry("" if pd.isna(row.published) else f"{row.published:.{measure.printed_digits}f}") for row, measure in rows
    ]
    cases = [Entry("0" if pd.isna(row.measured) else f"{round(row.cases, 1):g}") for row, _ in rows]
    return {"Publ.": printed, "Meas.": [_measured(row, measure.digits) for row, measure in rows], "Cases": cases}


def _measured(row: Any, digits: int) -> Entry:
    """Below, the first training alone where there are several: the paper has one."""
    if pd.isna(row.measured):
        return Entry(NOT_RUN)
    alone = NOT_RUN if pd.isna(row.seed0) else f"{row.seed0:.{digits}f}"
    return Entry(
        text=f"{row.measured:.{digits}f}",
        beside="" if pd.isna(row.published) else signed(round(row.measured, digits) - row.published, digits),
        below=f"{row.low:.{digits}f}–{row.high:.{digits}f}{f'; seed 0: {alone}' if row.several else ''}",
    )
