"""What halting saves in training: depth and executed steps of the rollouts, with and without it."""

from __future__ import annotations

import pandas as pd

from analysis import columns, notes
from analysis.columns import entries, say
from analysis.frames import IDENTITY, Results
from analysis.results import Cell
from analysis.source import Source
from analysis.table import NOT_RUN, Entry, Table, signed
from analysis.training import rollouts, updates
from harness.errors import UserError

HALTING, NONE = "gmr", "gmr_no_halting"
_RATIO = "ratio"
_TABLE = "halting_training"
_TITLES = {HALTING: "Halting (GMR)", NONE: "No halting", _RATIO: "No halting / halting"}
_MEASURES = ["depth", "steps"]
_SIZE = ["questions", "epochs", "group"]
_NOTES = (
    (
        "Publ.: from the paper. Meas.: this run; next to it measured minus published, next to steps measured over "
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
_COLUMNS = ["method", "benchmark", "measure", "published", "measured", "by_seed", *_SIZE, *IDENTITY]


def build(source: Source) -> Table:
    """With halting, without, and one over the other; a group of columns a benchmark.

    Raises:
        UserError: A cell was not trained, or two trainings to compare had other numbers of rollouts.
    """
    results = source.results()
    cells = [cell for cell in results.cells if cell.run.method in _TITLES]
    trainings = pd.DataFrame(map(_training, cells)).sort_values("seed", kind="stable")
    sizes = {key: _size(key, trainings[trainings["benchmark"] == key]) for key in results.benchmarks}
    seeds = trainings.melt(["method", "benchmark", "seed"], _MEASURES, "measure")
    frame = _frame(results, seeds)
    keys = ["method", "benchmark"]
    tidy = frame.drop(index=_RATIO, level="method").reset_index().dropna(subset="measured")
    tidy = tidy.join(trainings.groupby(keys)[_SIZE].first(), on=keys)
    tidy = tidy.join(results.measured.droplevel("backbone")[IDENTITY], on=keys)
    return columns.table(
        results,
        label="halting-training",
        caption="Depth and executed steps of the training rollouts, with and without halting.",
        rows=[("ratio" if key == _RATIO else "trainings", title) for key, title in _TITLES.items()],
        heads=("Training",),
        groups={
            (title, sizes[key]): {**_group(frame.loc[key], "depth"), **_group(frame.loc[key], "steps")}
            for key, title in results.benchmarks.items()
        },
        legend=[*_NOTES, *notes.protocol(results)],
        frame=tidy[_COLUMNS],
    )


def _training(cell: Cell) -> dict[str, float | str]:
    log = updates(cell)
    if log.empty:
        raise UserError(f"{cell.folder}: nothing was trained; expected one epoch at least; run it again with epochs")
    steps = float(log["steps"].sum())
    return {
        "method": cell.run.method,
        "benchmark": cell.run.benchmark,
        "seed": cell.run.seed,
        "steps": steps,
        "depth": steps / float(log["trajectories"].sum()),
        **rollouts(cell)._asdict(),
    }


def _size(benchmark: str, trainings: pd.DataFrame) -> str:
    """The number of rollouts, which all trainings to compare must share."""
    sizes = trainings[_SIZE].astype(str).agg(" × ".join, axis=1)
    if sizes.nunique() > 1:
        told = ", ".join(trainings["method"] + ", seed " + trainings["seed"].astype(str) + ": " + sizes)
        raise UserError(
            f"trainings of different size on {benchmark} (questions × epochs × rollouts: {told}); expected the same "
            "for all; train one of them again with the questions and epochs of the others"
        )
    return str(sizes.iloc[0])


def _frame(results: Results, seeds: pd.DataFrame) -> pd.DataFrame:
    """By method (or their ratio), benchmark and measure what is published and measured, with its spread over seeds."""
    wide = seeds.pivot(index=["benchmark", "measure", "seed"], columns="method", values="value")
    wide = wide.reindex(columns=[HALTING, NONE]).assign(**{_RATIO: lambda of: of[NONE] / of[HALTING]})
    long = wide.stack().rename_axis(["benchmark", "measure", "seed", "method"]).reset_index(name="value")
    names = ["benchmark", "method", "measure"]
    index = pd.MultiIndex.from_product([results.benchmarks, _TITLES, _MEASURES], names=names)
    groups = long.groupby(index.names)["value"]
    frame = groups.agg(measured="mean", sd="std").reindex(index)
    frame["by_seed"] = groups.agg(lambda of: " ".join(f"{value:.10g}" for value in of))
    frame["seed0"] = long[long["seed"] == 0].set_index(index.names)["value"]
    printed = pd.Series(
        [results.published.at(_TABLE, method, benchmark, measure) for benchmark, method, measure in index], index, float
    ).unstack("method")
    printed[_RATIO] = printed[NONE] / printed[HALTING]
    return frame.assign(published=printed.stack().reorder_levels([0, 2, 1]))


def _group(of_benchmark: pd.DataFrame, measure: str) -> dict[str, list[Entry]]:
    """Both trainings, and below them their ratio."""
    own = of_benchmark.xs(measure, level="measure").loc[list(_TITLES)]
    parts = [
        _columns(own.drop(index=_RATIO), measure == "steps", "{:.1f}"),
        _columns(own.loc[[_RATIO]], False, "{:.2f}"),
    ]
    return {f"{measure.capitalize()} {name}": column for name, column in columns.below_one_another(parts).items()}


def _columns(rows: pd.DataFrame, are_totals: bool, printed: str) -> dict[str, list[Entry]]:
    """Totals, in thousands, are compared as costs are, by their ratio."""
    form, unit = ("{:.1f}", 1e-3) if are_totals else ("{:.2f}", 1.0)
    ratio, difference = rows["measured"] / rows["published"], rows["measured"] - rows["published"]
    first = unit * rows["seed0"].where(rows["sd"].notna())
    return {
        "publ.": entries(say(unit * rows["published"], printed)),
        "meas.": entries(
            say(unit * rows["measured"], form),
            NOT_RUN,
            beside=say(ratio, "×{:.2f}") if are_totals else say(difference, signed),
            below=say(unit * rows["sd"], f"sd {form}") + say(first, f"; seed 0: {form}"),
        ),
    }
