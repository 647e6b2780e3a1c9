"""A run as one tidy data frame: a row a method, backbone and benchmark, what the paper prints beside what was measured.

Numbers stay numbers until a table prints them. Accuracies, shares and ends of intervals are in percent, rounded as
printed, because what is compared must be what is read; costs are in the paper's unit, a price by the size of the model
(D-GEN-1), of the calls that the published cost of the method counts (D-REPORT-2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from analysis.provenance import identity, provenance
from analysis.published import Published, load
from analysis.ratios import estimates, mean_of
from analysis.results import TRAINING, Cell
from analysis.statistics import Estimate, accuracy, macro_average
from harness.benchmarks.items import Status

KEY = ["method", "backbone", "benchmark"]
#: Stands for a benchmark in the rows of the averages.
AVERAGE = "average"
IDENTITY = ["seeds", "run_id", "config_hash", "code", "data_checksum", "backbones"]
WITHOUT_VERDICT = [status.value for status in Status if status is not Status.GRADED]
ACCURACY = ["measured", "seed0", "n", "low", "high", "calibrated", "math_verify", *WITHOUT_VERDICT]
MEASURED = [
    *(*ACCURACY, "math_verify_undecided", "cost_total", "cost_steps", "cost_per_query", "cost_per_query_all_calls"),
    *("prompt_tokens", "completion_tokens"),
]
COST = [
    *("published_total", "published_questions", "published_cost_per_query", "cost_low", "cost_high", "cost_ratio"),
    *("cost_seed0", "total_scaled"),
]
#: Tables print costs of a question as multiples of 1e-4.
UNIT = 1e4
#: Behind the tables of ablations, paradigms and roles, whose accuracies all fit these numbers (D-REPORT-2).
QUESTIONS: Mapping[str, float] = {"gsm_hard": 1056, "humaneval": 128}
#: Beyond half an order of magnitude the nearest power of ten is another one.
FAR = 10**0.5

Key = tuple[str, str, str]


def percent(fraction: float) -> float:
    """A fraction in percent, rounded as printed."""
    return round(100 * fraction, 2)


@dataclass(frozen=True)
class Results:
    """The cells of an artefact beside the published numbers.

    Attributes:
        cells: Comparable ones (:func:`analysis.results.read_all`), in their order.
        published: The paper's numbers.
    """

    cells: tuple[Cell, ...]
    published: Published = field(default_factory=load)

    @property
    def simulated(self) -> bool:
        """Whether the backbones were simulated."""
        return self.cells[0].run.simulated

    @property
    def provenance(self) -> dict[str, str]:
        """Name and value of whatever identifies the run."""
        return provenance(self.cells)

    @cached_property
    def trainings(self) -> dict[Key, tuple[Cell, ...]]:
        """The cells of each place, in order of seed."""
        found: dict[Key, list[Cell]] = {}
        for cell in sorted(self.cells, key=lambda cell: cell.run.seed):
            found.setdefault((cell.run.method, cell.run.backbone, cell.run.benchmark), []).append(cell)
        return {key: tuple(found[key]) for key in sorted(found)}

    @cached_property
    def benchmarks(self) -> dict[str, str]:
        """Key and title of the benchmarks of the run, in the paper's order."""
        titles = {cell.run.benchmark: cell.run.benchmark_title for cell in self.cells}
        known = [key for key in self.published.benchmarks if key in titles]
        return {key: titles[key] for key in [*known, *sorted(set(titles) - set(known))]}

    def questions(self, benchmark: str) -> str:
        """The number of test questions, such as ``n = 128``."""
        return next(f"n = {len(cell.items)}" for cell in self.cells if cell.run.benchmark == benchmark)

    @property
    def has_average(self) -> bool:
        """Whether the run touches every benchmark that the published average is over."""
        return set(self.published.benchmarks) <= set(self.benchmarks)

    @cached_property
    def rows(self) -> pd.DataFrame:
        """The rows of the main table by method and backbone: all published ones in their order, then those of the run.

        Columns: ``method_title``, ``backbone_title``, ``family``, ``multi_agent`` and ``routing`` (None where the paper
        says nothing), ``in_paper``, ``average``, and ``name``, how a footnote calls the row.
        """
        printed = {(row.method, row.backbone): row.average for row in self.published.rows}
        titles = {cell.run.method: cell.run.method_title for cell in self.cells}
        extra = sorted({key[:2] for key in self.trainings} - set(printed))
        found = {row: self._row(*row, printed.get(row), titles) for row in [*printed, *extra]}
        frame = pd.DataFrame.from_dict(found, orient="index")
        frame.index = pd.MultiIndex.from_tuples(frame.index, names=KEY[:2])
        return frame

    def _row(self, method: str, backbone: str, average: float | None, titles: Mapping[str, str]) -> dict[str, Any]:
        known = self.published.methods.get(method)
        title, where = known.title if known else titles[method], self.published.backbones.get(backbone, backbone)
        return {
            "method_title": title,
            "backbone_title": where,
            "family": known.family if known and average is not None else "not in the paper",
            "multi_agent": known.multi_agent if known else None,
            "routing": known.routing if known else None,
            "in_paper": average is not None,
            "average": average,
            "name": f"{title} ({where})",
        }

    @cached_property
    def measured(self) -> pd.DataFrame:
        """What was measured: one row a place, indexed by :data:`KEY`; see :func:`measure` for the columns."""
        return self.each(measure)

    def each(self, of: Callable[[Sequence[Cell]], Mapping[str, Any]]) -> pd.DataFrame:
        """What a function says of the cells of each place, one row a place, indexed by :data:`KEY`."""
        found = [dict(of(cells)) for cells in self.trainings.values()]
        return pd.DataFrame(found, index=pd.MultiIndex.from_tuples(self.trainings, names=KEY))

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Every row on every benchmark of the run, run or not.

        The columns of :attr:`rows`, the published accuracies and what was measured; besides: ``ran``;
        ``benchmark_title``; ``published`` with ``published_fit`` and ``published_counts``, the counts of correct
        answers that can be behind it; ``difference``, measured minus published in points, missing where the one was
        fitted to the other.
        """
        index = pd.MultiIndex.from_tuples(
            [(*row, key) for row in self.rows.index for key in self.benchmarks], names=KEY
        )
        frame = pd.DataFrame(index=index).join(self.rows.drop(columns="average"), on=KEY[:2])
        frame["benchmark_title"] = [self.benchmarks[key] for key in index.get_level_values("benchmark")]
        return self.beside(frame.join(self._printed))

    def beside(self, frame: pd.DataFrame) -> pd.DataFrame:
        """A frame indexed by :data:`KEY` with ``published`` accuracies, joined with what was measured."""
        found = frame.join(self.measured)
        found["ran"] = found["n"].notna()
        fitted = found["calibrated"].eq(True)
        return found.assign(difference=(found["measured"] - found["published"]).where(~fitted).round(2))

    @cached_property
    def _printed(self) -> pd.DataFrame:
        """Published accuracies, the number of questions behind each, and the totals of the cost tables."""
        totals = {
            (row.method, row.backbone, key): row.cost for key, rows in self.published.costs.items() for row in rows
        }
        records = {}
        for row in self.published.rows:
            for key, one in row.accuracies.items():
                count = one.counts[0] if one.counts else one.near
                records[row.method, row.backbone, key] = {
                    "published": one.percent,
                    "published_fit": str(one.fit),
                    "published_counts": " ".join(f"{count.k}/{count.n}" for count in one.counts),
                    "published_questions": count.n if count else None,
                    "published_total": totals.get((row.method, row.backbone, key)),
                }
        frame = pd.DataFrame.from_dict(records, orient="index")
        frame.index = pd.MultiIndex.from_tuples(frame.index, names=KEY)
        return frame

    @cached_property
    def ran(self) -> pd.DataFrame:
        """Of :attr:`rows` those that were run on any benchmark."""
        ran = {key[:2] for key in self.trainings}
        return self.rows[[row in ran for row in self.rows.index]]

    @cached_property
    def averages(self) -> pd.DataFrame:
        """The average over the paper's benchmarks of every row: the columns of :attr:`frame` that an average has.

        Nothing is measured unless all benchmarks were run, and with the same seeds: an average that weighs a training
        on one benchmark more than on another is of no method. ``uneven`` says where the seeds differ.
        """
        found = {row: self._average(row) for row in self.rows.index}
        frame = pd.DataFrame.from_dict(found, orient="index").reindex(
            columns=[
                "measured",
                "seed0",
                "low",
                "high",
                "fraction",
                "variance",
                "calibrated",
                "several",
                "uneven",
                *IDENTITY,
            ]
        )
        frame.index = pd.MultiIndex.from_tuples(frame.index, names=KEY[:2])
        frame = self.rows.join(frame).rename(columns={"average": "published"})
        frame["ran"] = frame["measured"].notna()
        fitted = frame["calibrated"].eq(True)
        frame["difference"] = (frame["measured"] - frame["published"]).where(~fitted).round(2)
        return frame.assign(benchmark=AVERAGE, benchmark_title="Avg.").set_index("benchmark", append=True)

    def _average(self, row: tuple[str, str]) -> dict[str, Any]:
        keys = [key for key in ((*row, benchmark) for benchmark in self.published.benchmarks) if key in self.trainings]
        calibrated = any(cell.run.calibrated for key in keys for cell in self.trainings[key])
        if len({tuple(cell.run.seed for cell in self.trainings[key]) for key in keys}) > 1:
            return {"calibrated": calibrated, "uneven": True}
        if len(keys) < len(self.published.benchmarks):
            return {"calibrated": calibrated, "uneven": False}
        own = self.measured.loc[keys]
        found = macro_average([Estimate(one.fraction, 0, 1, one.variance) for one in own.itertuples()])
        return {
            "measured": percent(found.mean),
            "seed0": percent(fmean(own["fraction_seed0"])) if own["fraction_seed0"].notna().all() else None,
            "low": percent(found.low),
            "high": percent(found.high),
            "fraction": found.mean,
            "variance": found.variance,
            "calibrated": calibrated,
            "several": any(len(self.trainings[key]) > 1 for key in keys),
            "uneven": False,
            **identity([cell for key in keys for cell in self.trainings[key]]),
        }


def measure(cells: Sequence[Cell]) -> dict[str, Any]:
    """What all seeds of one place scored and spent; an item without a verdict counts as wrong.

    Returns:
        ``measured``, ``low``, ``high`` in percent, ``fraction`` and ``variance`` of the same, ``seed0`` of that seed
        alone, ``math_verify`` by the secondary grader of mathematics, the share of each status, the mean over the seeds
        of calls, costs and tokens over the test set and of ``cost_per_query``, ``several`` seeds, whether anything was
        ``learned``, and :func:`analysis.provenance.identity`.
    """
    items = pd.concat([cell.items for cell in cells])
    found = accuracy([cell.items["correct"] for cell in cells])
    first = [cell.items["correct"].mean() for cell in cells if cell.run.seed == 0]
    n, seeds = len(cells[0].items), len(cells)
    shares = items["status"].value_counts(normalize=True)
    sums = items[["calls", "cost", "cost_total", "cost_steps", "prompt_tokens", "completion_tokens"]].sum() / seeds
    return {
        "measured": percent(found.mean),
        "seed0": percent(first[0]) if first else None,
        "n": n,
        "low": percent(found.low),
        "high": percent(found.high),
        "fraction": found.mean,
        "fraction_seed0": first[0] if first else None,
        "variance": found.variance,
        "calibrated": any(cell.run.calibrated for cell in cells),
        **_math_verify(cells, items),
        **{status.value: percent(shares.get(status, 0.0)) for status in Status},
        **{name: float(value) for name, value in sums.items()},
        "cost_per_query": float(sums["cost"]) / n,
        "cost_per_query_all_calls": float(sums["cost_total"]) / n,
        "several": seeds > 1,
        "learned": seeds > 1 or (cells[0].folder / TRAINING).is_file(),
        **identity(cells),
    }


def _math_verify(cells: Sequence[Cell], items: pd.DataFrame) -> dict[str, float | None]:
    """An item without a secondary verdict beside items with one counts as wrong, so that ``n`` stays the same."""
    if items["math_verify"].isna().all():
        return {"math_verify": None, "math_verify_undecided": None}
    undecided = (items["status"] == Status.GRADED) & items["math_verify"].isna()
    verdicts = [cell.items["math_verify"].eq(True) for cell in cells]
    return {"math_verify": percent(accuracy(verdicts).mean), "math_verify_undecided": percent(undecided.mean())}


def with_costs(frame: pd.DataFrame, results: Results) -> pd.DataFrame:
    """A frame with ``published_total`` and ``published_questions``, and the other columns of :data:`COST`.

    ``published_cost_per_query`` is the printed total over the number of questions; ``cost_low`` and ``cost_high`` are
    of a bootstrap over questions, and over several seeds: costs are skewed and sometimes all but constant, so no
    distribution is assumed. ``cost_seed0`` is of that seed alone, where it is one of several; ``cost_ratio`` measured
    over published, missing where the one was fitted to the other, and ``is_far`` whether it asks for an explanation;
    ``total_scaled`` what as many questions as the paper's would have cost.
    """
    found = frame.astype({"published_total": float, "published_questions": float})
    printed = found["published_total"] / found["published_questions"]
    ends = {key: cost_per_query(results.trainings[key]) for key in found.index if key in results.trainings}
    found["published_cost_per_query"] = printed
    found["cost_low"] = pd.Series({key: one.low for key, one in ends.items()}, dtype=float).reindex(found.index)
    found["cost_high"] = pd.Series({key: one.high for key, one in ends.items()}, dtype=float).reindex(found.index)
    found["cost_seed0"] = [_seed_0(results.trainings.get(key, ()), "cost") for key in found.index]
    found["cost_ratio"] = (found["cost_per_query"] / printed).where(~found["calibrated"].eq(True))
    found["is_far"] = found["cost_ratio"].notna() & ~found["cost_ratio"].between(1 / FAR, FAR, inclusive="neither")
    return found.assign(total_scaled=found["cost_per_query"] * found["published_questions"])


def unpublished(results: Results) -> pd.DataFrame:
    """What was measured with its costs, of a sweep of which the paper prints no number."""
    blank = dict.fromkeys(("published", "published_total", "published_questions"), float("nan"))
    return with_costs(results.beside(pd.DataFrame(blank, index=results.measured.index)), results)


def cost_per_query(cells: Iterable[Cell]) -> Estimate:
    """Mean cost of a test question, with the interval of a bootstrap over questions, and over several seeds."""
    return estimates([{"cost": mean_of(cell.items["cost"])} for cell in cells])["cost"]


def _seed_0(cells: Sequence[Cell], column: str) -> float:
    first = [cell.items[column].mean() for cell in cells if cell.run.seed == 0]
    return float(first[0]) if first and len(cells) > 1 else np.nan
