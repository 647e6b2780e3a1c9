"""Bounds of a pool of backbones, cheap routers, and the headroom that routers gain.

Headroom is (row - best single) / (oracle - best single) in accuracy: 0 for the best single backbone, 1 for the oracle,
at most 1 for a row that answers with replies of the pool. Above 1 only if a row is right where no backbone is.

Regret is a mean over all questions: the oracle's accuracy minus the row's, and the row's cost minus the oracle's. A
question on which only the row is right counts -1 in accuracy.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd

from analysis import bounds
from analysis.bounds import BEST, ORACLE, TITLES, Answers, Bounds
from analysis.exhibit import ALL_CALLS, format_cost, signed
from analysis.finished_cells import FinishedCell
from analysis.frames import KEY, UNIT, Results, percent
from analysis.provenance import identity
from analysis.registry import Source
from analysis.statistics import TAIL, Array
from analysis.table import Groups, Table, entries, format_series, interval_of, labels_of, results_table
from harness.agents import rng
from harness.errors import UserError
from harness.runner.layout import POOL, SINGLE

RESAMPLES = 9999
# Values in memory at a time: of all samples of some 3,000 questions.
_BLOCK = 1 << 25
_HEADROOM = ("headroom", "headroom_low", "headroom_high")
_UNDECIDED = "undecided"
# Methods of the section between bounds and routers.
_CHEAP = (
    *("self_consistency", "knn_router", "logistic_router", "cascade", "cascade_cheapest_first"),
    *("cascade_dearest_first", "random_router", "random_matched"),
)


def build(source: Source) -> Table:
    """Return one row per bound and method. Raises UserError if no benchmark has bounds."""
    results = source.results()
    of_pools = {key: bounds.of_pool(results, key) for key in results.benchmarks}
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
    legend = source.legend
    groups = _groups(frame, titles)
    return results_table(results, "router-bounds", source.caption, rows, groups, legend, frame)


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
            **dict(zip(_HEADROOM, gained, strict=True)),
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
    frame = frame.join(bounds.against_mix(results))
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
        ("Mix at equal cost", ""): {"accuracy (%)": entries(frame["mix"], "{:.2f}"), **bounds.mix_column(frame)},
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
