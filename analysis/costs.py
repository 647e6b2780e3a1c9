"""What a question costs, published and measured, so that test sets of different size compare.

Costs are in the paper's unit, a price by the size of the model (D-GEN-1). What is measured counts the calls that
the published cost of the method counts (D-REPORT-2); the cost of all calls stands beside it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from analysis.grid import Line
from analysis.measures import Measurement
from analysis.published import Published
from analysis.ratios import estimates, mean_of
from analysis.statistics import Estimate

FAR = "‡"
ALL_CALLS = "All calls"
# Which calls a measured cost counts, in words.
COUNTED = (
    "Measured costs count the calls that the published ones count: of GMR, its variants and Puppeteer those of the "
    f"steps, of every other method all of them (D-REPORT-2). {ALL_CALLS}: with the final call of the former, too."
)
# Half an order of magnitude: beyond it, the nearest power of ten is another one.
FACTOR = 10**0.5
# Tables print costs of a question as multiples of 1e-4.
UNIT = 1e4
# Behind the tables of ablations, paradigms and roles, whose accuracies all fit these numbers of questions (D-REPORT-2).
QUESTIONS = {"gsm_hard": 1056, "humaneval": 128}


def published_total(published: Published, line: Line, benchmark: str) -> float | None:
    """What the cost table of a benchmark prints for a row, ``None`` where it prints nothing."""
    rows = published.costs.get(benchmark, ())
    return next((row.cost for row in rows if (row.method, row.backbone) == (line.method, line.backbone)), None)


def published_questions(line: Line, benchmark: str) -> int | None:
    """How many questions are behind a row of the main table, by the accuracy it prints (D-REPORT-2).

    Returns:
        The number that explains the accuracy or comes closest, ``None`` for a row that the paper does not have.
    """
    cell = line.published.accuracies.get(benchmark) if line.published else None
    if cell is None:
        return None
    count = cell.counts[0] if cell.counts else cell.near
    return count.n if count else None


def published_cost(published: Published, line: Line, benchmark: str) -> float | None:
    """What the paper prints for a row, for one question: its total over the number of questions behind its accuracy.

    Returns:
        In the paper's unit; ``None`` where it prints none.
    """
    total, questions = published_total(published, line, benchmark), published_questions(line, benchmark)
    return None if total is None or questions is None else total / questions


def is_far(ratio: float) -> bool:
    """Whether two costs differ by more than half an order of magnitude."""
    return not 1 / FACTOR < ratio < FACTOR


@dataclass(frozen=True, slots=True)
class Cost:
    """What the paper prints of a row's cost on one benchmark, and what was measured.

    Attributes:
        total: Printed, over the paper's test set; ``None`` where it prints none.
        questions: Of that test set; ``None`` where the paper does not have the row.
        measured: Of one question; ``None`` where nothing was run.
        all_calls: Of one question, whichever calls the printed one counts.
        seed_0: Of one question with that seed alone, where it is one of several.
        calibrated: Whether the lengths of replies were fitted to the printed cost.
    """

    total: float | None
    questions: int | None
    measured: Estimate | None = None
    all_calls: float | None = None
    seed_0: float | None = None
    calibrated: bool = False

    @classmethod
    def of(cls, measurement: Measurement | None, total: float | None, questions: int | None) -> Cost:
        """The cost of a row, run or not."""
        if measurement is None:
            return cls(total, questions)
        return cls(
            total,
            questions,
            measured=per_query(measurement),
            all_calls=measurement.cost_total / measurement.n,
            seed_0=_seed_0(measurement),
            calibrated=measurement.calibrated,
        )

    @property
    def printed(self) -> float | None:
        """Of one question, by the paper."""
        return None if self.total is None or self.questions is None else self.total / self.questions

    @property
    def ratio(self) -> float | None:
        """Measured over printed; ``None`` without either, and where the one was fitted to the other."""
        if self.printed is None or self.measured is None or self.calibrated:
            return None
        return self.measured.mean / self.printed

    @property
    def is_far(self) -> bool:
        """Whether the ratio asks for an explanation."""
        return self.ratio is not None and is_far(self.ratio)

    @property
    def scaled(self) -> float | None:
        """What as many questions as the paper's would have cost at the measured mean."""
        return None if self.measured is None or self.questions is None else self.measured.mean * self.questions


def per_query(measurement: Measurement) -> Estimate:
    """Mean cost of a test question, with the interval of a bootstrap over questions, and over several seeds.

    Costs are skewed and sometimes all but constant, so no distribution is assumed.
    """
    return estimates([{"cost": mean_of(cell.costs)} for cell in measurement.cells])["cost"]


def _seed_0(measurement: Measurement) -> float | None:
    costs = [cell.costs for cell in measurement.cells if cell.run.seed == 0]
    return math.fsum(costs[0]) / len(costs[0]) if costs and len(measurement.cells) > 1 else None
