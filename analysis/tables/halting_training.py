"""What halting saves in training: depth and executed steps of the rollouts, with and without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

import pandas as pd

from analysis import notes
from analysis.frames import IDENTITY, Results
from analysis.provenance import identity
from analysis.results import Cell
from analysis.source import Source
from analysis.table import NOT_RUN, Entry, Table, shown, signed
from analysis.training import Rollouts, rollouts, updates
from harness.errors import UserError

HALTING, NONE = "gmr", "gmr_no_halting"
_TABLE = "halting_training"
_TITLES = {HALTING: "Halting (GMR)", NONE: "No halting"}
_RATIO = "No halting / halting"
_MEASURES = ("depth", "steps")
_NOTES = (
    (
        "Publ.: printed in the paper. Meas.: this run; beside it measured minus published, beside steps measured over "
        "published, since the totals follow from the size of the training. Steps in thousands."
    ),
    (
        "Depth: mean over all training rollouts. Steps: executed by all of them, aggregation calls not counted, so "
        "depth times rollouts; rollouts are training questions × epochs × rollouts of a question, as above the "
        "columns. The paper names no number of rollouts: its steps without halting, 6 a rollout, are those of about "
        "320 × 6 rollouts on HumanEval (32 questions × 10 epochs) and 1330 × 6 on GSM-Hard (266 questions × 5 epochs)."
    ),
    (
        "A training is one draw: one seed has no interval. Several seeds: their mean, below it their standard "
        "deviation and seed 0."
    ),
    f"{NOT_RUN}: not run.",
)
_COLUMNS = [
    *("method", "benchmark", "measure", "published", "measured", "by_seed", "questions", "epochs", "group"),
    *IDENTITY,
]

# By method, then measure, then seed.
_Values = Mapping[str, Mapping[str, Mapping[int, float]]]


def build(source: Source) -> Table:
    """Build the table: with halting, without, and one over the other; a group of columns a benchmark.

    Raises:
        UserError: A cell cannot be read or was not trained, or two trainings to compare had other numbers of rollouts.
    """
    results = source.results()
    groups: dict[tuple[str, str], dict[str, list[Entry]]] = {}
    records: list[dict[str, Any]] = []
    for key, title in results.benchmarks.items():
        cells = {
            method: of
            for method in _TITLES
            for (name, _, on), of in results.trainings.items()
            if (name, on) == (method, key)
        }
        values = {method: _values(of) for method, of in cells.items()}
        size = _size(key, cells)
        groups[title, " × ".join(map(str, size))] = _columns(results, key, values)
        records += [
            {
                "method": method,
                "benchmark": key,
                "measure": measure,
                "published": results.published.at(_TABLE, method, key, measure),
                "measured": fmean(values[method][measure].values()),
                "by_seed": " ".join(f"{value:.10g}" for value in values[method][measure].values()),
                **size._asdict(),
                **identity(of),
            }
            for method, of in cells.items()
            for measure in _MEASURES
        ]
    rows = [*(("trainings", title) for title in _TITLES.values()), ("ratio", _RATIO)]
    return Table(
        label="halting-training",
        caption=(
            f"Depth and executed steps of the training rollouts, with and without halting.{notes.conditions(results)}"
        ),
        simulated=results.simulated,
        shown=shown(rows, ("Training",), groups),
        notes=(*_NOTES, *notes.protocol(results)),
        provenance=results.provenance,
        frame=pd.DataFrame(records, columns=_COLUMNS),
    )


def _size(benchmark: str, cells: Mapping[str, Sequence[Cell]]) -> Rollouts:
    """The number of rollouts, which all trainings to compare must share."""
    sizes = {f"{method}, seed {cell.run.seed}": rollouts(cell) for method, of in cells.items() for cell in of}
    if len(set(sizes.values())) > 1:
        told = ", ".join(f"{name}: {' × '.join(map(str, size))}" for name, size in sizes.items())
        raise UserError(
            f"trainings of different size on {benchmark} (questions × epochs × rollouts: {told}); expected the same "
            "for all; train one of them again with the questions and epochs of the others"
        )
    return next(iter(sizes.values()))


def _values(cells: Sequence[Cell]) -> dict[str, dict[int, float]]:
    found: dict[str, dict[int, float]] = {measure: {} for measure in _MEASURES}
    for cell in cells:
        log = updates(cell)
        if log.empty:
            raise UserError(
                f"{cell.folder}: nothing was trained; expected one epoch at least; run it again with epochs"
            )
        found["steps"][cell.run.seed] = float(log["steps"].sum())
        found["depth"][cell.run.seed] = float(log["steps"].sum() / log["trajectories"].sum())
    return found


def _columns(results: Results, benchmark: str, values: _Values) -> dict[str, list[Entry]]:
    columns: dict[str, list[Entry]] = {}
    for measure, factor, digits in (("depth", 1.0, 2), ("steps", 1e-3, 1)):
        printed = {method: results.published.at(_TABLE, method, benchmark, measure) for method in _TITLES}
        own = {method: values[method][measure] if method in values else {} for method in _TITLES}
        both = {seed: own[NONE][seed] / own[HALTING][seed] for seed in own[NONE] if seed in own[HALTING]}
        above, below = printed[NONE], printed[HALTING]
        ratio = None if above is None or below is None else above / below
        columns[f"{measure.capitalize()} publ."] = [
            *(Entry("" if value is None else f"{factor * value:.1f}") for value in printed.values()),
            Entry("" if ratio is None else f"{ratio:.2f}"),
        ]
        columns[f"{measure.capitalize()} meas."] = [
            *(_entry(own[method], printed[method], factor, digits) for method in _TITLES),
            _entry(both, ratio, 1.0, 2),
        ]
    return columns


def _entry(values: Mapping[int, float], published: float | None, factor: float, digits: int) -> Entry:
    """Totals, in thousands, are compared as costs are, by their ratio."""
    if not values:
        return Entry(NOT_RUN)
    mean = fmean(values.values())
    beside = "" if published is None else signed(factor * (mean - published), digits)
    if published is not None and factor < 1:
        beside = f"×{mean / published:.2f}"
    first = f"; seed 0: {factor * values[0]:.{digits}f}" if 0 in values else ""
    spread = f"sd {factor * stdev(values.values()):.{digits}f}{first}" if len(values) > 1 else ""
    return Entry(f"{factor * mean:.{digits}f}", beside=beside, below=spread)
