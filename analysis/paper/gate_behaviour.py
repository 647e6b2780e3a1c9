"""Behaviour of the gates on the test questions: depth, write rate, retrieved fraction by step, empty memories."""

import pandas as pd

from analysis.exhibit import NOT_RUN, Entry, signed
from analysis.finished_cells import FinishedCell
from analysis.frames import Results
from analysis.paper import traces
from analysis.provenance import identity
from analysis.registry import Source
from analysis.statistics import estimates
from analysis.table import Table, entries, join_values, results_table, row_labels
from harness.runner.layout import POOL

_WHOLE, _EARLIER = "Trajectories", "Retrieved of earlier steps"
_POOLED, _MEAN = "Retrieved of stored, pooled", "Retrieved of stored, mean of cases"
_OF_PRINT = ["printed", "unit", "digits", "printed_digits"]
# By ratio of :func:`traces.of_gates`: section and title of the row, the paper's measure, unit, decimals of both values.
_MEASURES = pd.DataFrame(
    [
        ("depth", _WHOLE, "mean depth", "depth", 1, 2, 2),
        ("write_rate", _WHOLE, "steps written (%)", "write_rate", 100, 1, 1),
        ("empty_memory", _WHOLE, "nothing stored at the end (%)", "empty_memory", 100, 1, 1),
        *((f"retrieved_earlier_{k}", _EARLIER, f"step {k} (%)", f"retrieved_{k}", 100, 1, 0) for k in traces.STEPS),
        *((f"retrieved_{k}", _POOLED, f"step {k} (%)", f"retrieved_{k}", 100, 1, 0) for k in traces.STEPS),
        *((f"retrieved_mean_{k}", _MEAN, f"step {k} (%)", f"retrieved_{k}", 100, 1, 0) for k in traces.STEPS),
    ],
    columns=["measure", "section", "title", *_OF_PRINT],
).set_index("measure")


def build(source: Source) -> Table:
    """Return one row per measure. Raises UserError for cells of several methods."""
    results = source.results()
    frames = {key: _frame(results, key, cells) for key, cells in traces.by_benchmark(results).items()}
    titles = {key: (results.benchmarks[key], results.questions(key)) for key in frames}
    groups = {titles[key]: _group(results, frame) for key, frame in frames.items()}
    rows = row_labels(_MEASURES, "section", "section", "title", heads=("", "Measure"))
    frame = pd.concat(frames.values()).drop(columns=_OF_PRINT)
    return results_table(results, "gate-behaviour", source.caption, rows, groups, source.legend, frame)


def _frame(results: Results, benchmark: str, cells: tuple[FinishedCell, ...]) -> pd.DataFrame:
    method, unit, seeds = cells[0].run.method, _MEASURES["unit"], [cell.run.seed for cell in cells]
    ratios = [traces.of_gates(cell) for cell in cells]
    ends = {name: estimate[:3] for name, estimate in estimates(ratios).items()}
    estimated = pd.DataFrame(ends, index=["measured", "low", "high"]).T
    values, cases = (
        pd.DataFrame([{key: getattr(ratio, name) for key, ratio in seed.items()} for seed in ratios], seeds).T
        for name in ("value", "cases")
    )
    by_seed = values.reindex(unit.index).mul(unit, axis=0)
    table = results.printed("gate_behaviour")
    printed = table.loc[place].to_dict() if (place := (method, POOL, benchmark)) in table.index else {}
    return _MEASURES.join(estimated.mul(unit, axis=0)).assign(
        **identity([cell.run for cell in cells]),
        method=method,
        benchmark=benchmark,
        published=_MEASURES["printed"].map(printed),
        by_seed=by_seed.apply(join_values, axis=1),
        # Seed 0 alone, if there are several seeds: the paper has one training.
        seed0=by_seed[0] if len(cells) > 1 and 0 in by_seed else None,
        cases=cases.reindex(unit.index).fillna(0).mean(axis=1),
    )


def _group(results: Results, frame: pd.DataFrame) -> dict[str, list[Entry]]:
    def texts(name: str, digits: str = "digits") -> pd.Series:
        return frame.apply(lambda row: "" if pd.isna(row[name]) else f"{row[name]:.{row[digits]}f}", axis=1)

    measured, low, high, first = map(texts, ("measured", "low", "high", "seed0"))
    # The difference of the values as printed.
    apart = results.compared(measured.where(measured != "").astype(float) - frame["published"])
    beside = [signed(gap, digits) if pd.notna(gap) else "" for gap, digits in zip(apart, frame["digits"], strict=True)]
    alone = "; seed 0: " + first.replace("", NOT_RUN) if frame["seed0"].notna().any() else ""
    below = ((low + "–" + high).replace("–", "") + alone).str.removeprefix("; ")
    return {
        "Publ.": entries(texts("published", "printed_digits")),
        "Meas.": entries(measured, missing=NOT_RUN, beside=pd.Series(beside), below=below),
        "Cases": entries(frame["cases"].where(frame["measured"].notna(), 0).round(1), "{:g}"),
    }
