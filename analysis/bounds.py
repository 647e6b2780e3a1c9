"""Bounds for a router over a pool of backbones, and the mix of its models that costs as much as a row.

Both come from cells in which one backbone answers each test question once. The oracle takes the cheapest backbone that
is right, or the cheapest if none is. The best single backbone has the highest accuracy, and among equals the lowest
cost. It is chosen on the test questions, so it is an optimistic bound for a choice made beforehand. The random backbone
is uniform; its values are expectations. A mix is a coin between two models that costs as much as all calls of a row.

Headroom is (row - best single) / (oracle - best single) in accuracy: 0 for the best single backbone, 1 for the oracle,
at most 1 for a row that answers with replies of the pool. Above 1 only if a row is right where no backbone is.

Regret is a mean over all questions: the oracle's accuracy minus the row's, and the row's cost minus the oracle's. A
question on which only the row is right counts -1 in accuracy.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.exhibit import ABOVE, ALL_CALLS, Entry, format_cost, signed
from analysis.finished_cells import FinishedCell, identity
from analysis.frames import KEY, UNIT, Results, percent
from analysis.paired_tests import ALPHA, ENDS, holm, values_of
from analysis.statistics import TAIL, Array, Jackknife
from analysis.table import Groups, Table, entries, format_series, interval_of, labels_of, points, results_table
from harness.agents import rng
from harness.errors import UserError
from harness.runner.layout import POOL, SINGLE

ORACLE, BEST, RANDOM = "oracle", "best_single", "random_backbone"
TITLES = {ORACLE: "Oracle over the pool", BEST: "Best single backbone", RANDOM: "Random backbone"}
_COLUMNS = ["mix", *(f"above_mix{end}" for end in ENDS), "p_above_mix"]
RESAMPLES = 9999
# Values in memory at a time: of all samples of some 3,000 questions.
_BLOCK = 1 << 25
_UNDECIDED = "undecided"
# Methods of the section between bounds and routers.
_CHEAP = (
    *("self_consistency", "knn_router", "logistic_router", "cascade", "cascade_cheapest_first"),
    *("cascade_dearest_first", "random_router", "random_matched"),
)


class Answers(NamedTuple):
    """Accuracy and compared cost by question, shape (n,), as means over seeds; and each backbone's shares."""

    correct: Array  # between 0 and 1
    cost: Array  # in the paper's unit
    shares: pd.DataFrame  # by backbone: share in ``calls``, and in ``cost`` over the calls that count for cost


class Bounds(NamedTuple):
    """Bounds of a pool on one benchmark."""

    correct: Array  # of each backbone's single calls, shape (backbones, n)
    best: str  # the best single backbone
    rows: Mapping[str, Answers]  # by the keys of :data:`TITLES`
    cost: Array  # as ``correct``


def of_pool(results: Results, benchmark: str) -> Bounds | None:
    """Return the bounds on a benchmark, or None if a backbone of the pool has no single-call row.

    The pool is the set of backbones that every pool cell may ask; without such a cell, all with a single-call row.
    """
    rows = {key[:2]: cells for key, cells in results.cells_by_row.items() if key[2] == benchmark}
    asked = {backbone: cells[0].items for (method, backbone), cells in rows.items() if method == SINGLE}
    names = results.pool or asked.keys()
    return of_options({name: asked[name] for name in names}) if names and asked.keys() >= names else None


def of_options(options: Mapping[str, pd.DataFrame]) -> Bounds:
    """Compute the bounds of a choice between options, given by ``correct`` and ``cost`` of each question."""
    # Cheapest first, since argmax takes the first of equals.
    names = sorted(options, key=lambda name: (options[name]["cost"].mean(), name))
    correct, cost = (np.array([options[name][column] for name in names], float) for column in ("correct", "cost"))
    size, n = correct.shape
    best = int(correct.mean(axis=1).argmax())
    # The probability that each option is taken for a question, shape (options, n).
    oracle = np.eye(size)[:, np.lexsort((cost, -correct), axis=0)[0]]
    single_best = np.repeat(np.eye(size)[:, [best]], n, axis=1)
    chosen = {ORACLE: oracle, BEST: single_best, RANDOM: np.full((size, n), 1 / size)}

    def answers(weights: Array) -> Answers:
        shares = pd.DataFrame({"calls": weights.sum(axis=1), "cost": (weights * cost).sum(axis=1)}, names)
        return Answers((weights * correct).sum(axis=0), (weights * cost).sum(axis=0), shares / shares.sum())

    return Bounds(correct, names[best], {name: answers(weights) for name, weights in chosen.items()}, cost)


def mixes(cost: Array, costs: Array, points: Array) -> Array:
    """Return the accuracy of every mix of two models at an expected cost, and of every model that costs no more.

    The largest is on the upper hull. Below the cheapest model it is that one; minus infinity: no such mix.

    Args:
        cost: Of the mix, shape (samples,).
        costs: Of each model, shape (models, samples) or (models, 1).
        points: Accuracy of each model, shaped as ``costs``.
    """
    cost = np.maximum(cost, costs.min(axis=0))
    cheap, dear = costs[:, np.newaxis], costs[np.newaxis]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(cheap == dear, 0.0, (cost - cheap) / (dear - cheap))
    mixed = points[:, np.newaxis] + share * (points[np.newaxis] - points[:, np.newaxis])
    return np.where((cheap <= cost) & ((cost < dear) | (cheap == dear)), mixed, -np.inf).reshape(-1, cost.size)


@np.errstate(invalid="ignore")  # where a jackknife sample lacks a mix
def compare_with_mix(row: Array, models: Array) -> tuple[float, ...]:
    """Compare a row with the best mix at its cost, both computed again in each jackknife sample.

    Args:
        row: Points (0 or 100) and cost of each question, shape (2, seeds, n).
        models: The same for single calls, shape (models, 2, 1, n).

    Returns:
        Values of :data:`_COLUMNS`: the mix in percent, the row's lead in points with its interval, one-sided p.
    """
    jackknife = Jackknife({None: row.shape[-1]}, {"row": row.shape[1]})
    own, cost = jackknife.ratio(row, None, None, "row")
    points, costs = np.moveaxis(jackknife.ratio(models, None, None), 1, 0)
    every, spread = mixes(cost, costs, points), partial(jackknife.spread, are_points=True)
    # An interval against the best mix alone is too narrow if models are about equally accurate (docs/report.md).
    hull, best = every.max(axis=0), every[every[:, 0].argmax()]
    possible = [mix for mix in every if np.isfinite(mix[0]) and spread(best - mix).ends()[0] <= 0]
    spreads = [spread(own - mix) for mix in (hull, *possible)]
    low, high = min(each.ends()[0] for each in spreads), max(each.ends()[1] for each in spreads)
    return hull[0], own[0] - hull[0], max(-100.0, low), min(100.0, high), max(each.p_above(0.0) for each in spreads)


def against_mix(results: Results) -> pd.DataFrame:
    """Compare every row of several models or calls with its mix, where single calls of the whole pool have costs."""
    known = {key: of_pool(results, key) for key in results.benchmarks}
    pools = {key: pool for key, pool in known.items() if pool and pool.cost.any()}
    frame = pd.DataFrame(columns=[*KEY, *_COLUMNS, "p_above_mix_holm"]).set_index(KEY).astype(float)
    for key, cells in results.cells_by_row.items():
        if key[2] in pools and key[0] != SINGLE and (key[1] == POOL or cells[0].items["calls"].max() > 1):
            models = np.stack([100 * pools[key[2]].correct, pools[key[2]].cost], axis=1)[:, :, np.newaxis]
            frame.loc[key, _COLUMNS] = compare_with_mix(values_of(cells)[[0, 2]], models)
    return frame.assign(p_above_mix_holm=frame["p_above_mix"].groupby(level="benchmark").transform(holm))


def mix_column(frame: pd.DataFrame) -> dict[str, list[Entry]]:
    """Return the column *vs. mix*; none if no row of the frame has a mix."""
    sign = frame["p_above_mix_holm"].lt(ALPHA / 2).map({True: ABOVE, False: ""})
    return {"vs. mix": points(frame, "above_mix", sign=sign)} if frame["above_mix"].notna().any() else {}


def build(results: Results) -> Table:
    """Return one row per bound and method. Raises UserError if no benchmark has bounds."""
    of_pools = {key: of_pool(results, key) for key in results.benchmarks}
    frames = [_frame(results, key, of_pool) for key, of_pool in of_pools.items() if of_pool]
    if not frames:
        raise UserError(
            "no benchmark has a cell of Single LLM with every backbone of the pool, which bounds are made of; make "
            f"them: `snakemake --cores all reports/{results.cells[0].run.preset}/router_bounds.md`"
        )
    frame = pd.concat(frames)
    sizes = {key: of["parameters_b"] for cell in results.cells for key, of in cell.run.backbones.items()}
    titles = {key: results.published.backbones.get(key, key) for key in sorted(sizes, key=sizes.__getitem__)}
    # Backbones that a row did not call have share 0.
    shares = [f"share_of_{kind}_{key}" for key in titles for kind in ("calls", "cost")]
    frame[shares] = frame.reindex(columns=shares).fillna(0.0)
    where = [f"{results.benchmarks[key]}, {results.questions(key)}" for *_, key in frame.index]
    on = frame["on"].map(titles).radd(" (").add(")").fillna("")
    rows = labels_of(zip(frame["section"], where, frame["title"] + on, strict=True), ("Benchmark", "Row"))
    return results_table(results, rows, _groups(frame, titles), frame)


def _frame(results: Results, benchmark: str, of_pool: Bounds) -> pd.DataFrame:
    """Return the rows of a benchmark by :data:`KEY`: bounds, cheap routers, then routers with the reference first."""
    run = {key: cells for key, cells in results.cells_by_row.items() if key[2] == benchmark}
    singles = tuple(cell for key, cells in run.items() if key[0] == SINGLE for cell in cells)
    order = [*_CHEAP, results.reference[0], *sorted({method for method, *_ in run})]
    routed = sorted((key for key in run if key[0] != SINGLE), key=lambda key: order.index(key[0]))
    rows = {(name, POOL, benchmark): (row, singles, "bounds") for name, row in of_pool.rows.items()}
    for key in routed:
        rows[key] = _of_method(run[key]), run[key], "cheap" if key[0] in _CHEAP else "routers"
    oracle, answers = of_pool.rows[ORACLE], [row for row, *_ in rows.values()]
    headrooms = headroom(answers, of_pool, resamples(of_pool.correct.shape[1], benchmark))
    records = [
        {
            "title": TITLES.get(method, cells[0].run.method_title),
            "on": of_pool.best if method == BEST else backbone,
            "section": f"{benchmark} {section}",
            "depth": float(items["depth"].mean()),
            "accuracy": percent(float(row.correct.mean())),
            "cost_per_query": float(row.cost.mean()),
            "cost_all_calls": float((row.cost if method in TITLES else items["cost_total"]).mean()),
            **dict(zip((f"headroom{end}" for end in ENDS), gained, strict=True)),
            "right_alone": percent(float((row.correct * (1 - oracle.correct)).mean())),
            "regret_accuracy": percent(float((oracle.correct - row.correct).mean())),
            "regret_cost": float((row.cost - oracle.cost).mean()),
            **{f"share_of_{kind}_{key}": 100 * share for (kind, key), share in row.shares.unstack().items()},
            **identity([cell.run for cell in cells]),
        }
        for ((method, backbone, _), (row, cells, section)), gained in zip(rows.items(), headrooms, strict=True)
        for items in [pd.concat([cell.items for cell in cells])]
    ]
    frame = pd.DataFrame(records, pd.MultiIndex.from_tuples(rows, names=KEY))
    reference = (*results.reference, benchmark)
    frame = frame.join(against_mix(results))
    return frame.assign(cost_factor=frame["cost_per_query"] / frame["cost_per_query"].get(reference, math.nan))


def _of_method(cells: Sequence[FinishedCell]) -> Answers:
    correct, cost = (np.mean([cell.items[name] for cell in cells], axis=0, dtype=float) for name in ("correct", "cost"))
    columns = ("backbone", "cost", "is_step")
    calls = pd.concat([cell.rows("calls", columns) for cell in cells])
    compared = calls[calls["is_step"].eq(True) | (cells[0].run.compared_cost == "total")]
    totals = compared.groupby("backbone")["cost"].agg(calls="size", cost="sum")
    return Answers(correct, cost, totals / totals.sum())


def resamples(n: int, *key: str) -> Iterator[Array]:
    """Yield the counts of each question in :data:`RESAMPLES` bootstrap samples, in blocks of shape (samples, n)."""
    generator = np.random.default_rng(rng.index(1 << 31, "bootstrap over questions", *key))
    size = max(1, _BLOCK // n)
    for done in range(0, RESAMPLES, size):
        yield generator.multinomial(n, np.full(n, 1 / n), size=min(size, RESAMPLES - done)).astype(float)


def headroom(rows: Sequence[Answers], bounds: Bounds, resampled: Iterable[Array]) -> list[tuple[float, float, float]]:
    """Return the headroom of each row and its 95 % interval by the percentile bootstrap over questions.

    The bootstrap is paired: each sample has the same questions for the row and every backbone, and its own best single
    backbone. The value is NaN if oracle and best single backbone are equally accurate. Such a sample counts as beyond
    both ends, so the interval is NaN if there are more than 2.5 % of them.
    """

    def of_samples(counts: Array) -> Array:
        best, oracle = (counts @ bounds.correct.T).max(axis=1), counts @ bounds.correct.max(axis=0)
        gap = np.where(oracle > best, oracle - best, np.nan)
        return np.array([(counts @ row.correct - best) / gap for row in rows])

    def with_interval(value: float, samples: Array) -> tuple[float, float, float]:
        low = float(np.quantile(np.nan_to_num(samples, nan=-math.inf), TAIL, method="lower"))
        high = float(np.quantile(np.nan_to_num(samples, nan=math.inf), 1 - TAIL, method="higher"))
        return (value, low, high) if math.isfinite(high - low) else (value, math.nan, math.nan)

    values = of_samples(np.ones((1, bounds.correct.shape[1])))[:, 0]
    samples = np.concatenate([of_samples(counts) for counts in resampled], axis=1)
    return [with_interval(float(value), of_row) for value, of_row in zip(values, samples, strict=True)]


def _groups(frame: pd.DataFrame, titles: Mapping[str, str]) -> Groups:
    # Bounds define the headroom, so they have no interval.
    ends = interval_of(frame, "headroom", signed, " to ").replace("", _UNDECIDED)
    ends = ends.mask(frame.index.get_level_values("method").isin(TITLES), "")
    costs, factors = UNIT * frame["cost_per_query"], format_series(frame["cost_factor"], "×{:.2f}")
    return {
        ("Answers", ""): {
            "accuracy (%)": entries(frame["accuracy"], "{:.2f}"),
            "cost (1e-4)": entries(costs, format_cost, beside=factors),
            ALL_CALLS.lower(): entries(UNIT * frame["cost_all_calls"], format_cost),
            "steps": entries(frame["depth"], "{:.2f}"),
        },
        ("Mix at equal cost", ""): {"accuracy (%)": entries(frame["mix"], "{:.2f}"), **mix_column(frame)},
        ("Headroom", ""): {
            "gained": entries(frame["headroom"], signed, _UNDECIDED, below=ends),
            "right alone (%)": entries(frame["right_alone"], "{:.2f}"),
        },
        ("Regret", ""): {
            "accuracy (points)": entries(frame["regret_accuracy"], signed),
            "cost (1e-4)": entries(UNIT * frame["regret_cost"], partial(format_cost, sign="+")),
        },
        ("Calls (cost) in %", ""): {
            title: entries(
                frame[f"share_of_calls_{key}"], "{:.0f}", beside=format_series(frame[f"share_of_cost_{key}"], "{:.0f}")
            )
            for key, title in titles.items()
        },
    }
