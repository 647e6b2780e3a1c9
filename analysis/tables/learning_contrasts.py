"""Paired differences between learned, untrained, random and single rows, seed by seed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
import pandas as pd

from analysis.exhibit import Entry
from analysis.learning_measures import MEASURES
from analysis.source import Source
from analysis.statistics import CONFIDENCE
from analysis.table import Table
from analysis.tables.learning import SINGLE, Line, Study, mean_difference, read_study, seed_entry, t_interval
from harness.runner.config import POOL

BEST_SINGLE = "best_single"  # the most accurate single backbone on the same test questions
RANDOM = "random_same_depth"  # the random routers, interpolated at the mean depth that each seed shows
_OTHERS = {BEST_SINGLE: "the best single backbone", RANDOM: "random routers of the same depth"}
_CONTRAST = ["contrast", "asks", "a", "b", "backbone", "benchmark", "measure"]


def build(source: Source) -> Table:
    """Return a row a contrast, backbone, benchmark and measure; raises UserError where nothing learned."""
    study = read_study(source)
    pairs = differences(study)
    lines: list[Line] = []
    frames = [pd.DataFrame(columns=[*_CONTRAST, "statistic", "seed", "value"])]
    for place, rows in pairs.groupby(_CONTRAST, sort=False):
        name, asks, a, b, backbone, benchmark, key = place
        values, measure = rows.set_index("seed")["value"], MEASURES[key]
        statistics = pd.Series([*t_interval(values), len(values)], ["mean", "low", "high", "n"])
        summary = statistics.dropna().rename_axis("statistic").reset_index(name="value")
        frames += [rows.assign(statistic="difference"), summary.assign(seed="", **rows[_CONTRAST].iloc[0])]
        sides = f"{study.titles[a, backbone]} minus {_OTHERS.get(b) or study.titles[b, backbone]}"
        labels = (name, asks, sides, study.results.benchmarks[benchmark], measure.title)
        seeds = [seed_entry(values, seed, measure, "+") for seed in study.seeds]
        lines.append((labels, [Entry(mean_difference(values, measure)), Entry(str(len(values))), *seeds]))
    if not lines:
        lines.append((("", "none can be answered", "", "", ""), [Entry()] * (2 + len(study.seeds))))
    texts = {"label": "learning-contrasts", "caption": "Differences between rows."}
    heads, legend = ("Question", "Sides", "Benchmark", "Measure"), _notes(study, pairs)
    return study.table(("mean and interval", "n"), lines, pd.concat(frames), **texts, heads=heads, legend=legend)


def differences(study: Study) -> pd.DataFrame:
    """Return the differences that answer the contrasts, one row a seed: both sides answered the same questions."""
    frames = []
    for name, contrast in study.options.contrasts.items():
        first = _rows_of(study, contrast.a)
        # An update that never came is no number to subtract.
        pairs = first.sub(_other_side(study, contrast.b, first)).replace([math.inf, -math.inf], math.nan)
        tidy = pairs.reindex(columns=contrast.measures).melt(var_name="measure", ignore_index=False).dropna()
        frames.append(tidy.reset_index().assign(contrast=name, asks=contrast.asks, a=contrast.a, b=contrast.b))
    frame = pd.concat(frames)[[*_CONTRAST, "seed", "value"]]
    places = frame.groupby(["contrast", "benchmark", "backbone"], sort=False).ngroup()
    return frame.iloc[places.argsort(kind="stable")]


def _rows_of(study: Study, method: str) -> pd.DataFrame:
    return study.learned[study.learned.index.get_level_values("method") == method].droplevel("method")


def _other_side(study: Study, side: str, first: pd.DataFrame) -> pd.DataFrame:
    """Return side ``b`` of a contrast in the rows of side ``a``."""
    if side == RANDOM:
        routers = pd.concat([_rows_of(study, method) for method in study.options.random])
        random = dict(list(routers.groupby(first.index.names)))
        rows = [_at_depth(random.get(place, first.head(0)), depth) for place, depth in first["depth"].items()]
        return pd.DataFrame(rows, first.index)
    if side == BEST_SINGLE:
        best = study.singles[SINGLE].groupby(level="benchmark").head(1).droplevel("backbone")
        return best.reindex(first.index.get_level_values("benchmark")).set_axis(first.index)
    if side == study.options.single:
        return study.singles[SINGLE].reindex(first.index.droplevel("seed")).set_axis(first.index)
    return _rows_of(study, side).reindex(first.index)


def _at_depth(routers: pd.DataFrame, depth: float) -> dict[str, float]:
    """Return every measure at a depth, on the straight line between neighbouring routers; none outside of them."""
    measures = {}
    for measure, values in routers.items():
        points = pd.DataFrame({"depth": routers["depth"], "value": values}).dropna().sort_values(["depth", "value"])
        if len(points):
            value = np.interp(depth, points["depth"], points["value"], left=math.nan, right=math.nan)
            measures[str(measure)] = float(value)
    return measures


def unanswered(study: Study, pairs: pd.DataFrame) -> list[str]:
    """Return the contrasts of methods of the run that lack cells, with the places where they do."""
    answered = set(pairs[["contrast", "benchmark", "backbone"]].itertuples(index=False, name=None))
    lacking: dict[str, list[str]] = {}
    for name, contrast in study.options.contrasts.items():
        backbones = [backbone for method, backbone in study.titles if method == contrast.a]
        for benchmark, backbone in product(study.results.benchmarks, backbones):
            if (name, benchmark, backbone) not in answered:
                place = benchmark if backbone == POOL else f"{benchmark} {backbone}"
                lacking.setdefault(name, []).append(place)
    return [f"{name} ({', '.join(places)})" for name, places in lacking.items()]


def _notes(study: Study, pairs: pd.DataFrame) -> Iterator[str]:
    yield (
        "Differences are paired: both sides answered the same questions with the same seed. The "
        f"{100 * CONFIDENCE:g} % t intervals are over training seeds on one set of questions; they "
        "say nothing about other questions or other models, and are not corrected for the number of "
        "contrasts. An interval without width means that the seeds agree, not that the value is certain."
    )
    if len(study.singles):
        yield (
            "The best single backbone was chosen on the very test questions it is compared on, which favours it. A "
            "single backbone has no seed; its utility bears its only call, a router's does not bear the aggregation."
        )
    if (pairs["b"] == RANDOM).any():
        yield "Random routers are interpolated linearly at the mean test depth of each seed."
    if names := unanswered(study, pairs):
        yield f"Not answered, for want of cells: {', '.join(names)}."
