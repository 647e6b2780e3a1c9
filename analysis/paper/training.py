"""Trainings: entropies by update, depth and steps with and without halting, utility by epoch, spread over seeds."""

import functools
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture
from matplotlib.lines import Line2D

from analysis import notes
from analysis.exhibit import NOT_RUN, Entry, signed
from analysis.figure import BLACK, BLUE, PAGE, SIZE, SMALL, VERMILION, Figure, looks
from analysis.finished_cells import TRAINING, FinishedCell, identity, updates
from analysis.frames import AVERAGE, IDENTITY, KEY, Results
from analysis.table import (
    Table,
    accuracies,
    entries,
    format_series,
    join_values,
    labels_of,
    results_table,
    side_by_side,
    stack_benchmarks,
)
from harness.errors import UserError
from harness.runner.layout import POOL

# By panel and measure: name of the decision, colour and style of its line.
_BANDS: Mapping[str, Mapping[str, tuple[str, str, str]]] = {
    "gates (nats)": {
        "entropy_write": ("write", BLACK, "-"),
        "entropy_retrieval": ("retrieve", BLUE, "--"),
        "entropy_halt": ("halt", VERMILION, ":"),
    },
    "choices (nats)": {"entropy_role": ("role", BLACK, "-"), "entropy_backbone": ("backbone", BLUE, "--")},
}
_ENTROPIES = [name for policies in _BANDS.values() for name in policies]
HALTING, NONE = "gmr", "gmr_no_halting"
_RATIO = "ratio"
_TITLES = {HALTING: "Halting (GMR)", NONE: "No halting", _RATIO: "No halting / halting"}
_MEASURES = ["depth", "steps"]
_SIZE = ["questions", "epochs", "group"]
OVERALL = "overall"
# Characters that fit along the height of a panel.
_LABEL = 20


def entropy(results: Results) -> Figure:
    """Return entropies of the gates and of the router's choices by update. Raises UserError if nothing was trained."""
    frames = []
    for cell in sorted(results.cells, key=lambda cell: [*results.benchmarks].index(cell.run.benchmark)):
        log = updates(cell)
        # An update without a decision has no row.
        tidy = log.reset_index().melt(["update", "epoch"], [name for name in _ENTROPIES if name in log], "measure")
        columns = {name: getattr(cell.run, name) for name in ("method", "benchmark", "seed")}
        frames.append(tidy.dropna().assign(**columns, **identity([cell.run])))
    frame = pd.concat(frames)
    if frame.empty:
        raise UserError("nothing was trained in these cells, so there is no entropy; train them, with epochs above 0")
    return Figure(
        **notes.describe_run(results, frame),
        draw=functools.partial(_draw_entropy, results.benchmarks, frame),
        inches=(PAGE, 2.0 * len(_BANDS) + 0.3),
    )


def _draw_entropy(titles: Mapping[str, str], frame: pd.DataFrame, picture: Picture) -> None:
    grid = _panels(picture, list(_BANDS), titles.values(), sharex="col", sharey="row")
    for panels, policies in zip(grid, _BANDS.values(), strict=True):
        for panel, benchmark in zip(panels, titles, strict=True):
            rows = frame[frame["benchmark"] == benchmark]
            for name, (title, color, linestyle) in policies.items():
                values = rows[rows["measure"] == name].pivot(index="update", columns="seed", values="value")
                if values.empty:
                    continue
                # An update without a decision is a gap.
                values = values.reindex(range(1, rows["update"].max() + 1))
                at, lowest = values.min(axis=1).idxmin(), values.min().min()
                line = _draw_seeds(panel, values, color=color, linestyle=linestyle)
                line.set_label(f"{title}, min {lowest:.2f}")
                panel.plot([at], [lowest], marker="o", markersize=5, fillstyle="none", color=color, clip_on=False)
            handles, _ = panel.get_legend_handles_labels()
            panel.legend(handles=handles, frameon=False, labelcolor="linecolor", fontsize=SMALL, handlelength=2.5)
        # The axis starts at zero: the distance from zero is the point.
        highest = max(frame.loc[frame["measure"].isin(policies), "value"], default=0)
        panels[0].set_ylim(0, 1.08 * (highest or 1.0))


def _panels(picture: Picture, labels: Sequence[str], titles: Iterable[str], **shared: Any) -> Any:
    """Return panels over the number of updates, by label and title."""
    grid = picture.subplots(len(labels), len(titles := [*titles]), squeeze=False, **shared)
    for panel, label in zip(grid[:, 0], labels, strict=True):
        panel.set_ylabel(textwrap.fill(label, _LABEL), fontsize=SMALL)
    for top, bottom, title in zip(grid[0], grid[-1], titles, strict=True):
        top.set_title(title)
        bottom.set_xlabel("update")
    for panel in grid.flat:
        panel.locator_params(axis="x", integer=True, min_n_ticks=1)
    picture.align_ylabels(grid[:, 0])
    return grid


def _draw_seeds(panel: Axes, seeds: pd.DataFrame, **style: Any) -> Line2D:
    """Draw a thin line per seed if there are several, and return a thick one: their mean where all have a value."""
    # Markers, since a point between two gaps has no line.
    if seeds.shape[1] > 1:
        panel.plot(seeds.index, seeds, marker=".", markersize=1, linewidth=0.6, **style)
    mean = seeds.mean(axis=1, skipna=False)
    [line] = panel.plot(mean.index, mean, marker=".", markersize=4 if len(mean) == 1 else 2, linewidth=1.5, **style)
    return line


def halting(results: Results) -> Table:
    """Return depth and steps of rollouts with halting, without, and their ratio. UserError for an untrained cell."""
    cells = [cell for cell in results.cells if cell.run.method in _TITLES]
    trainings = pd.DataFrame(map(_training, cells)).sort_values("seed", kind="stable")
    texts = trainings[_SIZE].astype(str).agg(" × ".join, axis=1).groupby(trainings["benchmark"])
    sizes = texts.agg(lambda texts: " or ".join(texts.unique()))
    frame = _frame(results, trainings)
    keys = ["method", "benchmark"]
    tidy = frame.drop(index=_RATIO, level="method").reset_index().dropna(subset="measured")
    tidy = tidy.join(trainings.groupby(keys)[_SIZE].first(), on=keys)
    groups: dict[tuple[str, str], dict[str, list[Entry]]] = {}
    for key, title in results.benchmarks.items():
        parts = [frame.loc[key].loc[rows] for rows in ([HALTING, NONE], [_RATIO])]
        groups |= stack_benchmarks([{(title, sizes[key]): _columns(results, part)} for part in parts])
    rows = (("ratio" if key == _RATIO else "trainings", title) for key, title in _TITLES.items())
    labels = labels_of(rows, ("Training",))
    tidy = tidy.join(results.measured.droplevel("backbone")[IDENTITY], on=keys)
    return results_table(results, labels, groups, tidy)


def _training(cell: FinishedCell) -> dict[str, Any]:
    run, log = cell.run, updates(cell)
    if log.empty:
        raise UserError(f"{cell.folder}: nothing was trained; expected one epoch at least; run it again with epochs")
    steps = float(log["steps"].sum())
    size = {"questions": run.data.n_train, "epochs": log["epoch"].nunique(), "group": run.config["group"]}
    measures = {"depth": steps / log["trajectories"].sum(), "steps": steps}
    return {"method": run.method, "benchmark": run.benchmark, "seed": run.seed, **measures, **size}


def _frame(results: Results, trainings: pd.DataFrame) -> pd.DataFrame:
    names = ["benchmark", "method", "measure"]
    values = _with_ratio(trainings.set_index(["benchmark", "seed", "method"])[_MEASURES])
    frame = values.groupby(names).agg(measured="mean", sd="std", by_seed=join_values)
    frame = frame.reindex(pd.MultiIndex.from_product([results.benchmarks, _TITLES, _MEASURES], names=names))
    seed0 = values[values.index.get_level_values("seed") == 0].droplevel("seed")
    printed = _with_ratio(results.printed("halting_training").droplevel("backbone"))
    return frame.assign(seed0=seed0.reorder_levels(names), published=printed.reorder_levels(names))


def _with_ratio(values: pd.DataFrame) -> pd.Series:
    wide = values[_MEASURES].rename_axis(columns="measure").stack().unstack("method").reindex(columns=[HALTING, NONE])
    return wide.assign(**{_RATIO: wide[NONE] / wide[HALTING]}).stack().dropna()


def _columns(results: Results, part: pd.DataFrame) -> dict[str, list[Entry]]:
    is_ratio = part.index[0][0] == _RATIO
    fields: dict[str, list[Entry]] = {}
    for measure, rows in part.groupby("measure"):
        are_totals = measure == "steps" and not is_ratio
        form, unit = ("{:.1f}", 1e-3) if are_totals else ("{:.2f}", 1.0)
        ratio, difference = rows["measured"] / rows["published"], rows["measured"] - rows["published"]
        beside = results.compared(ratio if are_totals else difference)
        below = format_series(unit * rows["sd"], f"sd {form}")
        below += format_series(unit * rows["seed0"].where(rows["sd"].notna()), f"; seed 0: {form}")
        fields[f"{measure.capitalize()} publ."] = entries(unit * rows["published"], "{:.2f}" if is_ratio else "{:.1f}")
        fields[f"{measure.capitalize()} meas."] = entries(
            unit * rows["measured"],
            form,
            NOT_RUN,
            beside=format_series(beside, "×{:.2f}" if are_totals else signed),
            below=below,
        )
    return fields


def curves(results: Results) -> Figure:
    """Return the utility of every learner by epoch, or its accuracy. Raises UserError if no cell has a training log."""
    frames, titles = [], {}
    for cell in chain(*results.cells_by_row.values()):
        run = cell.run
        if (cell.folder / TRAINING).is_file() and len(log := updates(cell)):
            measure = "utility" if "utility" in log else "accuracy"
            names = ("method", "backbone", "benchmark", "seed")
            curve = by_epoch(log, measure).rename_axis("update").rename("value").reset_index()
            named = {name: getattr(run, name) for name in names}
            frames.append(curve.assign(measure=measure, **named, run_id=run.run_id))
            title = run.method_title if run.backbone == POOL else f"{run.method_title} ({run.backbone})"
            titles[run.method, run.backbone] = f"{title}{'' if measure == 'utility' else ', accuracy'}"
    if not frames:
        raise UserError("nothing was trained in these cells, so there is no curve; train them, with epochs above 0")
    frame = pd.concat(frames)
    return Figure(
        **notes.describe_run(results, frame),
        draw=functools.partial(_draw_curves, results, frame, titles),
        inches=(PAGE, 1.25 * len(titles) + 0.6),
    )


def by_epoch(log: pd.DataFrame, measure: str) -> pd.Series:
    """Return the mean of a measure per epoch, weighted by trajectories, indexed by the middle of its updates."""
    # The last update of an epoch may have fewer trajectories.
    totals = pd.DataFrame({"value": log[measure] * log["trajectories"], "attempts": log["trajectories"]})
    sums = totals.groupby(log["epoch"]).sum()
    middles = log.index.to_series().groupby(log["epoch"]).mean()
    return (sums["value"] / sums["attempts"]).set_axis(middles)


def _draw_curves(
    results: Results, frame: pd.DataFrame, titles: Mapping[tuple[str, str], str], picture: Picture
) -> None:
    grid = _panels(picture, [*titles.values()], results.benchmarks.values(), sharex="row", sharey=True)
    picture.supylabel("own utility", fontsize=SIZE)
    styles = looks(list(dict.fromkeys(method for method, _ in titles)), results.own)
    by_row = dict(list(frame.groupby(["method", "backbone", "benchmark"])))
    for panels, row in zip(grid, titles, strict=True):
        for panel, benchmark in zip(panels, results.benchmarks, strict=True):
            if (*row, benchmark) in by_row:
                values = by_row[*row, benchmark].pivot(index="update", columns="seed", values="value")
                _draw_seeds(panel, values, color=styles[row[0]][0])
        panels[0].set_xlim(left=0)


def seeds(results: Results) -> Table:
    """Return mean and standard deviation of accuracy over trainings (paper, Variance across Training Seeds)."""
    by_seed, printed = _by_seed(results), results.printed("seed_variance")
    # The order of the paper's table differs from that of its main table.
    order = dict.fromkeys([*printed.index.unique("benchmark"), *sorted(results.benchmarks)])
    keys = [key for key in order if key in results.benchmarks]
    frame = _frame_of_seeds(results, by_seed, printed, [*keys, OVERALL])
    heads = {key: (results.benchmarks[key], results.questions(key)) for key in keys}
    heads |= {OVERALL: ("Overall", "")} if results.has_average else {}
    groups = {head: _group(results, frame, key) for key, head in heads.items()}
    titles = results.rows.loc[frame.index.droplevel("benchmark").unique(), ["method_title", "backbone_title"]]
    rows = [
        (key, method, backbone if label == "mean" else "", label)
        for (key, _), method, backbone in titles.itertuples(name=None)
        for label in ("mean", "sd")
    ]
    labels, also = labels_of(rows, ("Method", "LLM", "")), []
    if by_seed.groupby(KEY[:2]).size().nunique() > 1:
        also = ["The methods were trained with different numbers of seeds: their deviations are not comparable."]
    return results_table(results, labels, groups, frame, also)


def _by_seed(results: Results) -> pd.DataFrame:
    by_seed = {
        (*key[:2], cell.run.seed, key[2]): 100 * float(cell.items["correct"].mean())
        for key, cells in results.cells_by_row.items()
        for cell in cells
    }
    table = pd.Series(by_seed).rename_axis([*KEY[:2], "seed", "benchmark"]).unstack("benchmark")
    # Every training must have the same weight in a mean.
    missing = (table.isna() & table.notna().groupby(level=KEY[:2]).transform("any")).stack()
    if missing.any():
        method, backbone, seed, benchmark = missing.idxmax()
        have = ", ".join(map(str, table.loc[method, backbone].index))
        raise UserError(
            f"no cell of {method} on {benchmark} with {backbone} and seed {seed}; its other benchmarks have seeds "
            f"{have}; run it, or leave that seed out everywhere"
        )
    paper = table.reindex(columns=list(results.published.benchmarks))
    return table.assign(**{OVERALL: paper.mean(axis=1, skipna=False)})


def _frame_of_seeds(results: Results, seeds: pd.DataFrame, printed: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    order = dict.fromkeys([*printed.index.droplevel("benchmark"), *results.ran.index.sort_values()])
    long = seeds.rename_axis(columns="benchmark").stack().dropna()
    spread = long.groupby(KEY).agg(mean="mean", sd="std", by_seed=join_values)
    averages = results.averages.rename(index={AVERAGE: OVERALL}, level="benchmark")
    averages["n"] = results.measured["n"].groupby(KEY[:2]).sum()
    measured = pd.concat([results.measured, averages.loc[averages["ran"]].reindex(columns=results.measured.columns)])
    keys = [key for row in order for name in names if (key := (*row, name)) in spread.index]
    frame = spread.join([measured, printed[["mean", "sd"]].add_prefix("published_")]).loc[keys]
    difference = results.compared(frame["mean"] - frame["published_mean"]).astype(float).round(2)
    return frame.assign(difference=difference)


def _group(results: Results, frame: pd.DataFrame, key: str) -> dict[str, list[Entry]]:
    values = frame.reindex([(*row, key) for row in frame.index.droplevel("benchmark").unique()])
    values = values.assign(published=values["published_mean"], ran=values["mean"].notna(), several=False)
    apart = format_series(results.compared(values["sd"].round(2) - values["published_sd"]), signed)
    means, deviations = accuracies(values), side_by_side(values, "sd", "{:.2f}", beside=apart)
    return {title: [*chain(*zip(mean, deviations[title], strict=True))] for title, mean in means.items()}
