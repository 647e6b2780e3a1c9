"""Gains over training sets of one size and over new questions, from a run that splits the same questions many times."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis import bounds
from analysis.exhibit import entries
from analysis.finished_cells import identity
from analysis.frames import KEY, Key, Results
from analysis.paired_tests import ENDS
from analysis.statistics import Array, Spread
from analysis.table import Table, interval_of, points, results_table, row_labels
from harness.runner.layout import SINGLE

_NUMBERS = [*(f"{name}{end}" for name in ("accuracy", "gain", "above_mix") for end in ENDS), "p", "sd", "gaining"]


def over_splits(values: Array) -> Spread:
    """Average values over splits per question, then over questions. The variance covers both.

    It adds up questions, splits and twice their covariance. Two splits share the training share m / n of their training
    questions, so the mean of K varies by 1 / K + m / n of the variance of one. docs/report.md has the coverage.

    Args:
        values: Shape (splits, questions); NaN where a question is for training.
    """
    values = values[:, ~np.isnan(values).all(axis=0)]
    is_test, (splits, n) = ~np.isnan(values), values.shape
    by_question = np.nanmean(values, axis=0)
    effects = np.nanmean(values - by_question, axis=1)
    # Leave-one-out changes of the mean: without each test question, and without the splits that train on it.
    tested = (by_question.mean() - by_question) / (n - 1)
    trained = (is_test * effects[:, np.newaxis]).sum(axis=0) / is_test.sum(axis=0)
    covariance = 2 * float(tested @ (trained - trained.mean()))
    between = effects.var() * splits / max(splits - 1, 1)
    squares, fourths = (tested**2).sum(), max((tested**4).sum(), math.ulp(0.0))
    parts = np.array([squares * (n - 1) / n, between * (1 / splits + 1 - is_test.mean())])
    degrees = np.maximum([squares**2 / fourths - 1, splits - 1], 1)
    df = parts.sum() ** 2 / max((parts**2 / degrees).sum(), math.ulp(0.0))
    return Spread(float(by_question.mean()), max(parts[0], parts.sum() + covariance), float(df))


def lead_over_mix(row: Array, models: Array) -> Array:
    """Return the lead of each verdict over the mix of two models that costs as much on the split's test questions.

    A question that is dearer for the row moves the mix along the hull, so its cost counts at the hull's slope.

    Args:
        row: Points and cost of all calls, shape (2, splits, questions); NaN where a question is for training.
        models: The same for single calls, shape (models, 2, splits, questions).
    """
    leads = np.empty_like(row[0])
    for split, cost in enumerate(np.nanmean(row[1], axis=-1)):
        points, costs = np.nanmean(models[:, :, split], axis=-1).T
        pair = bounds.mixes(np.array([cost]), costs[:, np.newaxis], points[:, np.newaxis]).argmax()
        first, second = divmod(int(pair), len(models))
        distance = max(costs[second] - costs[first], 0.0)
        share = max(cost - costs[first], 0.0) / distance if distance else 0.0
        slope = (points[second] - points[first]) / distance if share else 0.0
        own, mix = row[:, split], (1 - share) * models[first, :, split] + share * models[second, :, split]
        leads[split] = own[0] - mix[0] - slope * (own[1] - mix[1])
    return leads


def build(results: Results) -> Table:
    """Return one row per method and benchmark."""
    frame = pd.DataFrame([record for key in results.benchmarks for record in _records(results, key)])
    frame[_NUMBERS] = frame[_NUMBERS].astype(float)
    shown = {
        "splits": entries(frame["splits"], "{:.0f}"),
        "accuracy (%)": entries(frame["accuracy"], "{:.2f}", below=interval_of(frame, "accuracy", "{:.1f}", ", ")),
        "gain": points(frame, "gain"),
        "SD": entries(frame["sd"], "{:.2f}"),
        "splits with a gain (%)": entries(frame["gaining"], "{:.0f}"),
        "cost ×": entries(frame["cost_ratio"], "{:.2f}"),
        "vs. mix": points(frame, "above_mix"),
    }
    rows = row_labels(frame, "benchmark", "where", "name", heads=("Training questions", "Row"))
    caption = f"{results.artefact.caption} {results.rows.loc[results.reference, 'name']}."
    return results_table(results, rows, {("", ""): shown}, frame, caption=caption)


def _records(results: Results, benchmark: str) -> Iterator[dict[str, Any]]:
    """Yield the numbers of each row on a benchmark. Rows that do not learn answered all questions once."""
    run = {key: cells for key, cells in results.cells_by_row.items() if key[2] == benchmark}
    ids = pd.Index(sorted({id_ for cells in run.values() for cell in cells for id_ in cell.items["item_id"]}))
    learned = {key: {cell.run.seed: cell for cell in cells} for key, cells in run.items() if cells[0].run.data.n_train}
    tests = {seed: ids.isin(cell.items["item_id"]) for cells in learned.values() for seed, cell in cells.items()}

    def values(key: Key, splits: Sequence[int]) -> Array:
        """Return points and cost of all calls, shape (2, splits, questions); NaN where a question is for training."""
        cells = [learned[key][split] for split in splits] if key in learned else run[key]
        rows = [cell.items.set_index("item_id")[["correct", "cost_total"]].reindex(ids) for cell in cells]
        right, cost = np.array(rows, dtype=float).transpose(2, 0, 1)
        return np.where([tests[split] for split in splits], [100 * right, cost], math.nan)

    reference, singles = (*results.reference, benchmark), [key for key in run if key[0] == SINGLE]
    pool = bounds.of_pool(results, benchmark)
    has_mix = pool is not None and bool(pool.cost.any())
    for key in (key for row in results.ran.index if (key := (*row, benchmark)) in run):
        splits = sorted(tests.keys() & learned.get(key, tests).keys() & learned.get(reference, tests).keys())
        if not splits:
            continue  # nothing learned is finished yet
        row, of_reference = values(key, splits), values(reference, splits)
        record = {**dict(zip(KEY, key, strict=True)), **dict.fromkeys(_NUMBERS)}
        record |= _ends("accuracy", over_splits(row[0]), 0.0)
        if key != reference:
            gain = row[0] - of_reference[0]
            of_splits, spread = np.nanmean(gain, axis=1), over_splits(gain)
            record |= {**_ends("gain", spread), "p": spread.p, "gaining": 100 * (of_splits > 0).mean()}
            record["sd"] = of_splits.std(ddof=1) if len(splits) > 1 else None
        if has_mix and key not in singles:
            models = np.stack([values(single, splits) for single in singles])
            record |= _ends("above_mix", over_splits(lead_over_mix(row, models)))
        n_train = next(iter(learned.values()))[splits[0]].run.data.n_train
        yield record | {
            "splits": len(splits),
            "n": len(ids),
            "n_train": n_train,
            "where": f"{results.benchmarks[benchmark]}, {n_train} of {len(ids)}",
            "name": results.rows.loc[key[:2], "name"],
            "cost_ratio": np.nanmean(row[1]) / np.nanmean(of_reference[1]),
            **identity([cell.run for cell in run[key]]),
        }


def _ends(name: str, spread: Spread, lowest: float = -100.0) -> dict[str, float]:
    """Return a value with the ends of its interval; without them if no question or split differs."""
    ends = spread.estimate(lowest, 100.0)[1:3] if spread.variance else (math.nan, math.nan)
    return dict(zip((f"{name}{end}" for end in ENDS), (spread.value, *ends), strict=True))
