"""What every learner learned from: questions, trajectories, updates, calls and cost of its training, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from analysis import learned, tables, tidy
from analysis.grid import Grid, Line, build_grid
from analysis.learned import Budget, Choice
from analysis.measures import Measurement
from analysis.notes import conditions
from analysis.provenance import provenance
from analysis.published import load
from analysis.source import Source
from analysis.tables import Entry, Group, Row, Table

_HEADS = ("Benchmark", "Method", "LLM")
_USED = ("Questions", "Passes", "Trajectories", "Updates", "Calls", "Tokens (1e3)", "Cost")
_POLICY = ("Entropy (% of uniform)", "Most frequent (%)")


def build(source: Source) -> Table:
    """Build the table: a row for each learner, benchmark by benchmark; means over the seeds.

    Raises:
        UserError: When a cell cannot be read, one was not trained, or the cells do not belong in one table.
    """
    grid = build_grid(source.read(), load())
    found = [
        (key, line, measurement, learned.budget(measurement), learned.choices(measurement))
        for key in grid.benchmarks
        for line in grid.lines
        if (measurement := grid.at(line, key)) is not None
    ]
    return Table(
        label="training-budget",
        caption=f"What every learner used for its training or search, and the policy it ended with.{conditions(grid)}",
        simulated=grid.cells[0].run.simulated,
        heads=_HEADS,
        groups=(Group("Training", "", _USED), Group("Trained policy", "on the test questions", _POLICY)),
        rows=tuple(_row(grid, *one) for one in found),
        notes=tuple(_notes(grid)),
        provenance=provenance(grid.cells),
        records=tuple(_record(grid, *one) for one in found),
    )


def _row(grid: Grid, benchmark: str, line: Line, _: Measurement, budget: Budget, choices: Mapping[str, Choice]) -> Row:
    labels = (grid.benchmarks[benchmark], line.method_title, line.backbone_title)
    return Row(benchmark, labels, (*_used(budget), *_policy(choices)))


def _used(budget: Budget) -> Iterator[Entry]:
    for value in (budget.questions, budget.passes, budget.trajectories, budget.updates, budget.calls):
        yield Entry(f"{value:,.0f}")
    yield Entry(f"{budget.tokens / 1000:,.0f}")
    yield Entry(f"{budget.cost:.4f}")


def _policy(choices: Mapping[str, Choice]) -> tuple[Entry, Entry]:
    entropies = [f"{name} {one.entropy:.0f}" for name, one in choices.items() if one.entropy is not None]
    top = next((f"{one.top} {one.share:.0f}" for one in choices.values()), tables.NOT_RUN)
    return Entry(", ".join(entropies) or tables.NOT_RUN), Entry(top)


def _notes(grid: Grid) -> Iterator[str]:
    several = any(len(one.seeds) > 1 for one in grid.measurements.values())
    yield (
        "Passes: over the training questions, of a search its rounds. Trajectories: graded attempts at a question. "
        "Updates: steps of the optimiser; of a search, workflows that were scored. Calls, tokens and cost, in the "
        "paper's unit: of every use of a model in the training, final calls and those of AFlow's optimizer included. "
        f"The costs of other tables have none of it.{' Means over the seeds.' if several else ''}"
    )
    yield (
        f"{learned.ENTROPY} Most frequent: the backbone, or the action of a method with one backbone, that was chosen "
        f"most. {tables.NOT_RUN}: a search leaves a workflow and no policy, and a greedy choice has no entropy."
    )
    yield (
        "Budgets differ as the methods do, and the paper prints none of a baseline. Where epochs, rollouts and rounds "
        "come from is said under D-GMR-10, D-MR-5, D-PUP-8 and D-AF-6."
    )


def _record(
    grid: Grid, benchmark: str, line: Line, measurement: Measurement, budget: Budget, choices: Mapping[str, Choice]
) -> dict[str, str]:
    record = {
        "method": line.method,
        "backbone": line.backbone,
        "benchmark": benchmark,
        "benchmark_title": grid.benchmarks[benchmark],
        **{name: tidy.exact(getattr(budget, name)) for name in Budget.__dataclass_fields__},
    }
    for name in learned.CHOICES:
        one = choices.get(name)
        record |= {
            f"entropy_{name}": "" if one is None or one.entropy is None else tidy.exact(one.entropy),
            f"top_{name}": "" if one is None else one.top,
            f"top_{name}_share": "" if one is None else tidy.exact(one.share),
        }
    return {**record, **tidy.identity(measurement)}
