"""How far apart the trainings of a method end: its accuracy by seed, on each benchmark and over all.

Paper, Variance across Training Seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from analysis.grid import Grid
from analysis.measures import Key, Measurement
from analysis.published import Published
from analysis.statistics import Estimate, macro_average
from harness.errors import UserError
from harness.runner.config import POOL

OVERALL = "overall"
TABLE = "seed_variance"
# The paper has its table of one row of each method: the pool, or this backbone.
_BACKBONES = {"puppeteer": "qwen-2.5-32B"}


@dataclass(frozen=True, slots=True)
class Spread:
    """The accuracies of one row on one benchmark, or on all of them together; in percent.

    Attributes:
        by_seed: In the order of the seeds.
        estimate: Their mean, a fraction, with the interval over questions and seeds.
        n: Test questions, of all benchmarks together where it is over all.
        of: What it was measured by; over all benchmarks, the first of them with the cells of all.
        printed: Mean and deviation in the paper, where it has both.
    """

    by_seed: tuple[float, ...]
    estimate: Estimate
    n: int
    of: Measurement
    printed: tuple[float, float] | None

    @property
    def seeds(self) -> tuple[int, ...]:
        """Ascending, as ``by_seed``."""
        return tuple(dict.fromkeys(self.of.seeds))

    @property
    def mean(self) -> float:
        """Over the seeds."""
        return fmean(self.by_seed)

    @property
    def deviation(self) -> float | None:
        """Of the sample; ``None`` for a single seed, which has none."""
        return stdev(self.by_seed) if len(self.by_seed) > 1 else None


Line = tuple[str, str]


def lines(grid: Grid) -> list[Line]:
    """Method and backbone of the rows among the cells, in the order of the paper's table."""
    known = [(method, _BACKBONES.get(method, POOL)) for method in grid.published.further[TABLE]]
    found = {(key.method, key.backbone) for key in grid.measurements}
    return [line for line in known if line in found] + sorted(found - set(known))


def spreads(grid: Grid, line: Line) -> dict[str, Spread]:
    """The spread of a row by benchmark, and as :data:`OVERALL` where all of the paper's were run.

    Raises:
        UserError: A seed that the row has on one benchmark is missing on another.
    """
    measured = {
        key: grid.measurements[Key(*line, key)] for key in grid.benchmarks if Key(*line, key) in grid.measurements
    }
    _check_seeds(line, measured)
    found = {key: _spread(grid.published, line, key, one) for key, one in measured.items()}
    if set(grid.published.benchmarks) <= set(found):
        found[OVERALL] = _overall(grid.published, line, [measured[key] for key in grid.published.benchmarks])
    return found


def _check_seeds(line: Line, measured: Mapping[str, Measurement]) -> None:
    """A mean that weighs one training more than another is of no method."""
    expected = sorted({seed for one in measured.values() for seed in one.seeds})
    for benchmark, one in measured.items():
        missing = [seed for seed in expected if seed not in one.seeds]
        if missing:
            raise UserError(
                f"no cell of {line[0]} on {benchmark} with {line[1]} and seed {missing[0]}; its other benchmarks have "
                f"seeds {', '.join(map(str, expected))}; run it, or leave that seed out everywhere"
            )


def _spread(published: Published, line: Line, benchmark: str, measured: Measurement) -> Spread:
    by_seed = tuple(100 * fmean(cell.items.correct) for cell in measured.cells)
    return Spread(by_seed, measured.accuracy, measured.n, measured, _mean_and_deviation(published, line, benchmark))


def _overall(published: Published, line: Line, measured: Sequence[Measurement]) -> Spread:
    """The unweighted mean of the benchmarks seed by seed, so that its deviation is that of whole trainings."""
    by_benchmark = [_spread(published, line, "", one).by_seed for one in measured]
    return Spread(
        by_seed=tuple(fmean(values) for values in zip(*by_benchmark, strict=True)),
        estimate=macro_average([one.accuracy for one in measured]),
        n=sum(one.n for one in measured),
        of=replace(measured[0], cells=tuple(cell for one in measured for cell in one.cells)),
        printed=_mean_and_deviation(published, line, OVERALL),
    )


def _mean_and_deviation(published: Published, line: Line, benchmark: str) -> tuple[float, float] | None:
    if not has_printed(line):
        return None
    mean, deviation = (published.at(TABLE, line[0], benchmark, name) for name in ("mean", "sd"))
    return None if mean is None or deviation is None else (mean, deviation)


def has_printed(line: Line) -> bool:
    """Whether the paper's table could have the row: it has one backbone, or the pool, of each method."""
    method, backbone = line
    return backbone == _BACKBONES.get(method, POOL)
