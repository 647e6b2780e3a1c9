"""What the gates do on the test questions: depth, write rate, retrieved fraction by step, empty memories."""

from __future__ import annotations

import math
from statistics import fmean
from typing import Any, NamedTuple

import pandas as pd

from analysis import columns, notes, traces
from analysis.frames import IDENTITY, Results
from analysis.provenance import identity
from analysis.ratios import estimates
from analysis.results import Cell
from analysis.source import Source
from analysis.table import NOT_RUN, Entry, Table, signed

_TABLE = "gate_behaviour"
_COLUMNS = ["method", "benchmark", "measure", "published", "measured", "low", "high", "by_seed", "cases", *IDENTITY]


class _Measure(NamedTuple):
    """One row: its section and title, the measure of the paper next to it, unit, and decimals of both."""

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
        "Publ.: from the paper. Meas.: this run; next to it measured minus published, below it the 95 % interval "
        "of a bootstrap over the questions, with several seeds over questions and seeds. Cases: trajectories with a "
        "part in the value, mean over the seeds."
    ),
    (
        "Steps are counted from 0, as in the paper; at step 0 nothing is stored. A case of step k is a trajectory that "
        "reaches it with at least one record stored."
    ),
    (
        "Pooled: records retrieved in all cases over records stored in all cases. Mean of cases: the same ratio case "
        "by case, then their mean. The paper's wording fits both, so both stand next to its numbers."
    ),
    (
        f"{NOT_RUN}: no case, so the gate had nothing to decide; a seed without a case has no part in a mean. A blank "
        "published column: the paper has no such value."
    ),
)


def build(source: Source) -> Table:
    """A row a measure, a group of columns a benchmark; raises UserError for cells of several methods."""
    results = source.results()
    frames = {key: _frame(results, key, cells) for key, cells in traces.by_benchmark(results).items()}
    return columns.table(
        results,
        label="gate-behaviour",
        caption="What the gates of GMR do on the test questions.",
        rows=[(measure.section, measure.section, measure.title) for measure in _MEASURES.values()],
        heads=("", "Measure"),
        groups={(results.benchmarks[key], results.questions(key)): _group(frame) for key, frame in frames.items()},
        legend=[*_NOTES, *notes.protocol(results)],
        frame=pd.concat(frames.values())[_COLUMNS],
    )


def _frame(results: Results, benchmark: str, cells: tuple[Cell, ...]) -> pd.DataFrame:
    """One row a measure, in the unit of the table; a seed without a case is ``nan``."""
    seeds = {cell.run.seed: traces.ratios(traces.read(cell)) for cell in cells}
    found, method = estimates(list(seeds.values())), cells[0].run.method
    records = []
    for name, measure in _MEASURES.items():
        each = {seed: measure.factor * of[name].value if name in of else math.nan for seed, of in seeds.items()}
        mean, low, high = (measure.factor * one for one in (found[name][:3] if name in found else (math.nan,) * 3))
        records.append(
            {
                "method": method,
                "benchmark": benchmark,
                "measure": name,
                "published": results.published.at(_TABLE, method, benchmark, measure.published),
                "measured": mean,
                "low": low,
                "high": high,
                "by_seed": " ".join(f"{value:.10g}" for value in each.values()),
                # The first training alone where there are several: the paper has one.
                "alone": f"; seed 0: {_number(each[0], measure.digits)}" if len(cells) > 1 and 0 in each else "",
                "cases": fmean(of[name].cases if name in of else 0 for of in seeds.values()),
                **identity(cells),
            }
        )
    return pd.DataFrame(records)


def _number(value: float, digits: int, missing: str = NOT_RUN) -> str:
    return missing if pd.isna(value) else f"{value:.{digits}f}"


def _group(frame: pd.DataFrame) -> dict[str, list[Entry]]:
    rows = [(row, _MEASURES[row.measure]) for row in frame.itertuples()]
    return {
        "Publ.": [Entry(_number(row.published, measure.printed_digits, "")) for row, measure in rows],
        "Meas.": [Entry(NOT_RUN) if pd.isna(row.measured) else _measured(row, measure.digits) for row, measure in rows],
        "Cases": [Entry("0" if pd.isna(row.measured) else f"{round(row.cases, 1):g}") for row, _ in rows],
    }


def _measured(row: Any, digits: int) -> Entry:
    return Entry(
        text=f"{row.measured:.{digits}f}",
        beside="" if pd.isna(row.published) else signed(round(row.measured, digits) - row.published, digits),
        below=f"{row.low:.{digits}f}–{row.high:.{digits}f}{row.alone}",
    )
