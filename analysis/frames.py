"""A run as one tidy data frame: one row per method, backbone and benchmark, with published and measured values.

Accuracies, shares and interval ends are in percent, rounded as printed. Costs are in the paper's unit (D-GEN-1) and
cover the calls that the published cost of the method counts (D-REPORT-2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from analysis.finished_cells import TRAINING, FinishedCell, by_key, identity, read_all
from analysis.published import AVERAGE, KEY, Published, load
from analysis.statistics import accuracy, macro_average, mean
from harness.benchmarks.items import Status
from harness.errors import UserError
from harness.runner import config
from harness.runner.layout import POOL, SINGLE
from harness.runner.run import Run

if TYPE_CHECKING:
    from analysis.registry import Artefact

IDENTITY = ["swept", "seeds", "run_id", "config_hash", "code", "data_checksum", "backbones"]
#: Tables print costs of a question as multiples of 1e-4.
UNIT = 1e4
#: Numbers of questions in the tables of ablations, paradigms and roles, inferred from accuracies (D-REPORT-2).
QUESTIONS: Mapping[str, float] = {"gsm_hard": 1056, "humaneval": 128}
_UNKNOWN = "not in the paper"
#: Half an order of magnitude: beyond this ratio a cost needs an explanation.
FAR = 10**0.5

Key = tuple[str, str, str]


def percent(fraction: float) -> float:
    return round(100 * fraction, 2)


@dataclass(frozen=True, eq=False)
class Results:
    """The inputs of an artefact: finished cells of a run, read when they are used, with the published numbers."""

    run: Run
    artefact: Artefact
    folders: tuple[Path, ...] = ()  # of finished cells
    again: tuple[Path, ...] = ()  # of finished cells that repeat single calls (preset key ``noise_floor``)
    unfinished: tuple[Path, ...] = ()  # of the run's cells that are not finished
    published: Published = field(default_factory=load)

    @cached_property
    def cells(self) -> tuple[FinishedCell, ...]:
        """Load the cells. Raises UserError as :func:`analysis.finished_cells.read_all`."""
        return read_all(self.folders)

    @cached_property
    def methods(self) -> list[str]:
        """Return the methods that were run, in the order of the run."""
        names = {cell.folder: cell.run.method for cell in self.cells}
        return list(dict.fromkeys(names[folder] for folder in self.folders))

    @property
    def own(self) -> list[str]:
        """Return the user's own methods, which ``config/`` does not have."""
        return [method for method in self.methods if method not in config.methods()]

    @cached_property
    def hide_unrun_rows(self) -> bool:
        """Return whether published rows that were not run are left out."""
        asked = {key for cell in self.cells for key in cell.run.backbones}
        is_other_pool = self.has_other_pool or asked.isdisjoint(self.published.prices)
        is_choice = bool(self.run.methods) and not {row.method for row in self.published.rows} <= {*self.run.methods}
        # A single row is shown beside the published ones.
        return is_other_pool or (is_choice and len({key[:2] for key in self.cells_by_row}) > 1)

    @property
    def simulated(self) -> bool:
        return bool(self.folders) and self.cells[0].run.simulated

    @cached_property
    def has_other_pool(self) -> bool:
        """Return whether pool rows asked other backbones than the paper's; nothing is published for these."""
        return bool(self.pool) and self.pool != self.published.prices.keys()

    @cached_property
    def pool(self) -> set[str]:
        """Return the backbones that every pool row may ask. A method may declare further ones for itself."""
        pools = [set(cell.run.backbones) for cell in self.cells if cell.run.backbone == POOL]
        return set.intersection(*pools) if pools else set()

    @cached_property
    def cells_by_row(self) -> dict[Key, tuple[FinishedCell, ...]]:
        return by_key(self.cells)

    @cached_property
    def benchmarks(self) -> dict[str, str]:
        """Return titles by key, in the paper's order."""
        titles = {cell.run.benchmark: cell.run.benchmark_title for cell in self.cells}
        in_paper = [key for key in self.published.benchmarks if key in titles]
        return {key: titles[key] for key in [*in_paper, *sorted(set(titles) - set(in_paper))]}

    def only_benchmark(self) -> tuple[str, str]:
        """Return key and title of the benchmark. Raises UserError if there are several."""
        if len(self.benchmarks) > 1:
            raise UserError(f"cells of {', '.join(self.benchmarks)}; expected those of one benchmark; leave others out")
        return next(iter(self.benchmarks.items()))

    def questions(self, benchmark: str) -> str:
        """Return the number of test questions, such as ``n = 128``."""
        return next(f"n = {len(cell.items)}" for cell in self.cells if cell.run.benchmark == benchmark)

    def printed(self, table: str) -> pd.DataFrame:
        """Return a published table by :data:`KEY`, one column a measure."""
        return self._mask_pool(self.published.table(table))

    def _mask_pool(self, values: pd.DataFrame) -> pd.DataFrame:
        """Blank the published values of pool rows if the run has another pool."""
        of_other = self.has_other_pool and values.index.get_level_values("backbone") == POOL
        return values.mask(pd.Series(of_other, values.index))

    @property
    def has_average(self) -> bool:
        """Return whether the run has every benchmark of the published average."""
        return set(self.published.benchmarks) <= set(self.benchmarks)

    @cached_property
    def rows(self) -> pd.DataFrame:
        """Return the rows to show by method and backbone: published rows first, then the others."""
        printed = {
            (row.method, row.backbone): None if self.has_other_pool and row.backbone == POOL else row.average
            for row in self.published.rows
        }
        runs = {cell.run.method: cell.run for cell in self.cells}
        run = sorted({key[:2] for key in self.cells_by_row}, key=self._order)
        rows = list(dict.fromkeys([*run, *printed] if self.has_other_pool else [*printed, *run]))
        records = []
        for method, backbone in rows:
            entry, average = self.published.methods.get(method), printed.get((method, backbone))
            is_known = entry and (average is not None or self.hide_unrun_rows)
            records.append(
                {
                    "method_title": entry.title if entry else runs[method].method_title,
                    "backbone_title": self.published.backbones.get(backbone, backbone),
                    "family": entry.family if entry and is_known else _UNKNOWN,
                    "multi_agent": (entry or runs[method]).multi_agent,
                    "routing": (entry or runs[method]).routing,
                    "average": average,
                    "was_run": (method, backbone) in run,
                }
            )
        frame = pd.DataFrame(records, index=pd.MultiIndex.from_tuples(rows, names=KEY[:2]))
        frame["name"] = frame["method_title"] + " (" + frame["backbone_title"] + ")"
        return frame[frame["was_run"]] if self.hide_unrun_rows else frame

    def _order(self, row: tuple[str, str]) -> tuple[int, str, float, str]:
        """Sort key of the paper's order: method, then size of the backbone."""
        methods = [*self.published.methods, *self.methods, row[0]]
        known = {key: backbone for cell in self.cells for key, backbone in cell.run.backbones.items()}
        sizes = {key: of.get("parameters_b") or of.get("prices", [0])[-1] for key, of in known.items()}
        return methods.index(row[0]), row[0], sizes.get(row[1], math.inf), row[1]

    @cached_property
    def reference(self) -> tuple[str, str]:
        """Return the row that is compared with all others: a method on its dearest backbone (ties: the most accurate).

        The method is the preset's ``reference``, else the user's last own method, else GMR, else Single LLM, else the
        last row.
        """
        rows = self.rows.index
        known = rows.unique("method")
        usual = [self.run.reference, *(name for name in reversed(known) if name in self.own), "gmr", SINGLE, known[-1]]
        method = next(name for name in usual if name in known)
        prices = {key: of.get("prices", [0]) for cell in self.cells for key, of in cell.run.backbones.items()}
        right = self.measured["measured"].groupby(level=KEY[:2]).mean()
        of_method = [row for row in rows if row[0] == method]
        return max(of_method, key=lambda row: (row in self.ran.index, prices.get(row[1], [0])[-1], right.get(row, 0)))

    @cached_property
    def ran(self) -> pd.DataFrame:
        return self.rows[self.rows["was_run"]]

    @cached_property
    def measured(self) -> pd.DataFrame:
        return self.per_row(measure)

    def per_row(self, function: Callable[[Sequence[FinishedCell]], Mapping[str, Any]]) -> pd.DataFrame:
        """Apply a function to the cells of each row and benchmark. Its results are the columns."""
        records = [dict(function(cells)) for cells in self.cells_by_row.values()]
        return pd.DataFrame(records, index=pd.MultiIndex.from_tuples(self.cells_by_row, names=KEY))

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Return every row to show on every benchmark: published and measured values."""
        keys = [(*row, key) for row in self.rows.index for key in self.benchmarks]
        rows = pd.DataFrame(index=pd.MultiIndex.from_tuples(keys, names=KEY))
        return self.with_measured(rows.join(self.rows.drop(columns="average"), on=KEY[:2]).join(self._printed))

    def with_measured(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Join published accuracies with measured values. Real runs get a ``difference``."""
        titles = [self.benchmarks[key] for key in frame.index.get_level_values("benchmark")]
        return self._with_difference(frame.assign(benchmark_title=titles).join(self.measured))

    @cached_property
    def _printed(self) -> pd.DataFrame:
        records = {}
        for row in self.published.rows:
            for key, printed in row.accuracies.items():
                count = printed.counts[0] if printed.counts else printed.near
                records[row.method, row.backbone, key] = printed.percent, count.n if count else None
        index = pd.MultiIndex.from_tuples(records, names=KEY)
        frame = pd.DataFrame(list(records.values()), index, ["published", "published_questions"])
        return self._mask_pool(frame.assign(published_total=self.published.table("costs")["cost"]))

    @cached_property
    def averages(self) -> pd.DataFrame:
        """Return each row's average over the paper's benchmarks; NaN unless all were run with the same seeds."""
        columns = ["measured", "seed0", "low", "high", "fraction", "several", *IDENTITY]
        rows = self.rows.rename(columns={"average": "published"})
        averages = pd.DataFrame([self._average(*row) for row in rows.index], rows.index, columns)
        frame = self._with_difference(rows.join(averages), "measured")
        return frame.assign(benchmark=AVERAGE, benchmark_title="Avg.").set_index("benchmark", append=True)

    def compared(self, values: pd.Series) -> pd.Series:
        """Blank a comparison with published values if the run is simulated."""
        return values * math.nan if self.simulated else values

    def _with_difference(self, frame: pd.DataFrame, known_if_run: str = "n") -> pd.DataFrame:
        difference = self.compared((frame["measured"] - frame["published"]).astype(float))
        return frame.assign(ran=frame[known_if_run].notna(), difference=difference.round(2))

    def _average(self, method: str, backbone: str) -> dict[str, Any]:
        keys = [key for item in self.published.benchmarks if (key := (method, backbone, item)) in self.cells_by_row]
        rows = self.measured.loc[keys]
        if rows["seeds"].nunique() > 1 or len(rows) < len(self.published.benchmarks):
            return {}
        estimate = macro_average(rows["fraction"], rows["variance"], rows["df"]).estimate(0.0, 1.0)
        first = rows["fraction_seed0"].astype(float)
        return {
            "measured": percent(estimate.mean),
            "seed0": None if first.isna().any() else percent(first.mean()),
            "low": percent(estimate.low),
            "high": percent(estimate.high),
            "fraction": estimate.mean,
            "several": bool(rows["several"].any()),
            **identity([cell.run for key in keys for cell in self.cells_by_row[key]]),
        }


def rules(cells: Iterable[FinishedCell]) -> list[str]:
    return sorted({rule for cell in cells for rule in cell.rules})


def measure(cells: Sequence[FinishedCell]) -> dict[str, Any]:
    """Return accuracy, verdicts and costs of a row as means over its seeds; calls and tokens as sums over questions."""
    items = pd.concat([cell.items for cell in cells])
    estimate = accuracy([cell.items["correct"] for cell in cells])
    first = next((float(cell.items["correct"].mean()) for cell in cells if cell.run.seed == 0), None)
    n, seeds = len(cells[0].items), len(cells)
    shares = items["status"].value_counts(normalize=True)
    sums = items[["calls", "cost", "cost_total", "cost_steps", "prompt_tokens", "completion_tokens"]].sum() / seeds
    also: dict[str, float] = {}
    for rule in rules(cells):
        # An item without a secondary verdict counts as wrong, so that n is the same.
        undecided = (items["status"] == Status.GRADED) & items[rule].isna()
        also |= {rule: percent(items[rule].eq(True).mean()), f"{rule}_undecided": percent(undecided.mean())}
    return {
        "measured": percent(estimate.mean),
        "seed0": None if first is None else percent(first),
        "n": n,
        "low": percent(estimate.low),
        "high": percent(estimate.high),
        "fraction": estimate.mean,
        "fraction_seed0": first,
        "variance": estimate.variance,
        "df": estimate.df,
        **also,
        **{status.value: percent(shares.get(status, 0.0)) for status in Status},
        **{name: float(value) for name, value in sums.items()},
        "cost_per_query": float(sums["cost"]) / n,
        "cost_per_query_all_calls": float(sums["cost_total"]) / n,
        "several": seeds > 1,
        "learned": seeds > 1 or (cells[0].folder / TRAINING).is_file(),
        **identity([cell.run for cell in cells]),
    }


def with_costs(frame: pd.DataFrame, results: Results) -> pd.DataFrame:
    """Add costs of a question, published and measured, and their ratios."""
    ends = results.per_row(lambda cells: mean_with_interval(cells, "cost", lambda cell: cell.items["cost"]))
    costs = frame.astype({"published_total": float, "published_questions": float}).join(ends.drop(columns="cost"))
    printed = costs["published_total"] / costs["published_questions"]
    costs["published_cost_per_query"] = printed
    costs["cost_ratio"] = results.compared(costs["cost_per_query"] / printed)
    costs["is_far"] = costs["cost_ratio"].notna() & ~costs["cost_ratio"].between(1 / FAR, FAR, inclusive="neither")
    return costs.assign(total_scaled=costs["cost_per_query"] * costs["published_questions"])


def mean_with_interval(
    cells: Sequence[FinishedCell], name: str, value_of: Callable[[FinishedCell], pd.Series]
) -> dict[str, float]:
    """Return the mean of one value per question as ``NAME``, with ``NAME_low``, ``NAME_high`` and ``NAME_seed0``.

    ``NAME_seed0`` is the mean of seed 0; NaN for single-seed runs.
    """
    seeds = {cell.run.seed: value_of(cell) for cell in cells}
    estimate = mean(list(seeds.values()))
    alone = float(seeds[0].mean()) if len(seeds) > 1 and 0 in seeds else float("nan")
    return {name: estimate.mean, f"{name}_low": estimate.low, f"{name}_high": estimate.high, f"{name}_seed0": alone}
