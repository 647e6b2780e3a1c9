"""The paper's statements (``statements.yaml``): each is a list of comparisons, evaluated here on the paper's tables."""

import math
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

from annotated_types import MinLen
from pydantic import BeforeValidator

from analysis.published import AVERAGE, load, row_of
from harness.errors import check_names
from harness.files import Declaration, Many, Text, check, check_entries, read_yaml

#: A method and the backbone it runs on.
Row: TypeAlias = tuple[str, str]
FILE = Path(__file__).with_name("statements.yaml")
OVERALL = "overall"
LARGE = "qwen-2.5-32B"
PAPER = load()
#: The rows of the main table.
ROWS = tuple((row.method, row.backbone) for row in PAPER.rows)
#: Units: points of accuracy, a share in percent, an amount such as a cost, or the name of another unit.
POINTS, SHARE, AMOUNT = "points", "%", "amount"
_COSTS = ("costs", "ablation", "paradigm", "roles13")


class Measure(NamedTuple):
    """The unit of a measure, and its values in the paper."""

    unit: str
    tables: tuple[str, ...] = ()  # that print it, in order of preference
    column: str = ""
    half: float = 0.0  # half a unit of its last digit


#: Of a test question, unless the comment says otherwise. Costs are totals in the paper and means in a run.
MEASURES: Mapping[str, Measure] = {
    "accuracy": Measure(POINTS, ("main", *_COSTS), "accuracy", 0.005),
    # Over three training seeds, of one of them, or of that with the lowest or highest average over the benchmarks.
    "seed_mean": Measure(POINTS, ("seed_variance",), "mean", 0.005),
    **{f"seed_{seed}": Measure(POINTS) for seed in range(3)},
    "seed_lowest": Measure(POINTS, ("seed_variance",), "lowest", 0.005),
    "seed_highest": Measure(POINTS, ("seed_variance",), "highest", 0.005),
    "cost": Measure(AMOUNT, _COSTS, "cost", 0.0005),
    "cost_total": Measure(AMOUNT),  # of all calls
    "flops": Measure(AMOUNT, ("hw_cost",), "pflops", 0.0005),
    "seconds": Measure(AMOUNT, ("hw_cost",), "seconds", 0.05),
    "later_prompt": Measure(AMOUNT),  # tokens of a prompt after the first step
    "training_steps": Measure(AMOUNT, ("halting_training",), "steps", 50),  # of a whole training
    "six_steps": Measure(SHARE),  # questions with six steps
    f"calls_{LARGE}": Measure(SHARE),  # calls of the steps
    "write_rate": Measure(SHARE, ("gate_behaviour",), "write_rate", 0.05),  # steps that entered memory
    # Stored records that are shown at this step, counted from 0.
    **{name: Measure(SHARE, ("gate_behaviour",), name, 0.5) for name in (f"retrieved_{step}" for step in range(1, 6))},
    # Steps of hard questions, which at least half of the single-call rows answer wrong, and of all others.
    **dict.fromkeys(("depth_hard", "depth_easy"), Measure("steps")),
    "accuracy_hard": Measure(POINTS),  # on hard questions
    "entropy_write": Measure("nats"),  # lowest in training, as the next
    "entropy_retrieval": Measure("nats"),
    "redundancy_stored": Measure("cosine"),  # highest similarity of a contribution with a stored record, as the next
    "redundancy_refused": Measure("cosine"),
}
# The paper's tables: values by method, backbone, benchmark and column.
_TABLES: Mapping[str, Mapping[tuple[str, ...], float]] = {
    name: PAPER.table(name).stack(future_stack=True).dropna().to_dict()
    for name in dict.fromkeys(name for measure in MEASURES.values() for name in measure.tables)
}


class Side(NamedTuple):
    """One side of a comparison."""

    row: Row
    measure: str


class Comparison(NamedTuple):
    """A measure of a row on a benchmark, alone or against another row on the same questions."""

    benchmark: str  # or AVERAGE or OVERALL
    sides: tuple[Side, ...]  # one or two

    @property
    def benchmarks(self) -> tuple[str, ...]:
        return tuple(PAPER.benchmarks) if self.benchmark in (AVERAGE, OVERALL) else (self.benchmark,)

    @property
    def unit(self) -> str:
        """Return the unit of the value. The difference of two shares is in points."""
        unit = MEASURES[self.sides[0].measure].unit
        return unit if len(self.sides) == 1 else {AMOUNT: "%", SHARE: POINTS}.get(unit, unit)

    def value(self, first: Any, *other: Any) -> Any:
        """Return an amount's change from the other row in percent, the difference of other measures, or the measure."""
        is_amount = MEASURES[self.sides[0].measure].unit == AMOUNT
        return 100 * (first / other[0] - 1) if other and is_amount else first - sum(other)

    def published(self) -> tuple[float, float, float] | None:
        """Return the value from the paper's tables, and its range before rounding; None if one is not printed."""
        printed = (_printed(*side, self.benchmark) for side in self.sides)
        values = [self.value(*numbers) for numbers in product(*printed)]
        return (values[0], min(values), max(values)) if values else None


def _printed(row: Row, measure: str, benchmark: str) -> tuple[float, ...]:
    """Return a number of the paper and the ends of its range before rounding; nothing if it is not printed."""
    _, tables, column, half = MEASURES[measure]
    key = (*row, benchmark, column)
    for table in tables:
        if value := _TABLES[table].get(key):
            return value, value - half, value + half
    return ()


def _listed(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _rows(value: Any) -> tuple[Row, ...]:
    """Read rows (:func:`analysis.published.row_of`), or ``baselines``, which are all but GMR."""
    baselines = [row for row in ROWS if row[0] != "gmr"]
    return tuple(row for name in _listed(value) for row in (baselines if name == "baselines" else [row_of(name)]))


def _measures(value: Any) -> tuple[str, ...]:
    check_names("measure", _listed(value), MEASURES, str(FILE))
    return tuple(_listed(value))


Rows = Annotated[Many[Row], BeforeValidator(_rows)]
Names = Annotated[Many[str], BeforeValidator(_listed)]
Measures = Annotated[Many[str], BeforeValidator(_measures)]


class Part(Declaration):
    """The value of a row, or of its comparison with others (:class:`Comparison`), and where it must be."""

    row: Rows  # if there are several, each is compared
    than: Rows = ()  # the other rows; those in ``row`` are left out
    benchmark: Names  # each is a part of its own, as is each measure
    measure: Measures = ("accuracy",)
    than_measure: Measures = ()  # of the other rows, if it is another
    at_least: float = -math.inf
    at_most: float = math.inf
    stated: int | float | None = None  # the value as the paper states it in words

    def expanded(self) -> Iterator[list[Comparison]]:
        """Yield the comparisons of each part."""
        for benchmark, measure in product(self.benchmark, self.measure):
            firsts = [Side(row, measure) for row in self.row]
            others = [Side(*other) for other in product(self.than, self.than_measure or (measure,))]
            pairs = product(firsts, (side for side in others if side not in firsts)) if others else zip(firsts)
            yield [Comparison(benchmark, sides) for sides in pairs]

    def __str__(self) -> str:
        if math.isinf(self.at_most):
            return "" if math.isinf(self.at_least) else f"above {self.at_least:g}"
        return f"below {self.at_most:g}" if math.isinf(self.at_least) else f"{self.at_least:g} to {self.at_most:g}"


class Claim(Declaration):
    """One statement of the paper."""

    key: str
    section: str  # section of the paper; reports group statements by it
    place: Text  # all places of the statement in the paper
    says: Text  # paraphrase of the statement
    note: str = ""  # shown with the verdict
    parts: Annotated[Many[Part], MinLen(1)]
    is_rank: bool = False  # a rank that is no conjunction of comparisons: numbers of a run, no verdict
    implied: bool = False  # our inference or a second reading; no sentence of the paper says it
    primary: bool = False  # a primary endpoint (docs/report.md); all others are secondary


_SECTIONS = check(read_yaml(FILE), dict[str, dict[str, Any]], FILE)
_ENTRIES = {key: {"section": name, **entry} for name, group in _SECTIONS.items() for key, entry in group.items()}
#: In the order of a report.
CLAIMS = tuple(check_entries(_ENTRIES, Claim, FILE).values())
