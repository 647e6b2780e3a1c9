"""What a question costs: calls, tokens and cost of every method, beside the cost the paper prints where it does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from analysis import beside, copies, tables, tidy
from analysis.costs import ALL_CALLS, COUNTED, FAR, Cost, published_questions, published_total
from analysis.grid import Grid, Line, build_grid
from analysis.measures import Key, Measurement
from analysis.notes import conditions
from analysis.provenance import provenance
from analysis.published import load
from analysis.source import Source
from analysis.tables import Entry, Group, Row, Table

_OWN = ("Calls", "Tokens")
_COST = "Meas."
_HEADS = ("Method", "LLM")

# Of every row on every benchmark of the run, run or not.
_Costs = Mapping[Key, Cost]


def build(source: Source) -> Table:
    """Build the table.

    The rows are those that were run. Everything is a mean over the test questions, and over the seeds.

    Raises:
        UserError: When a cell cannot be read or the cells do not belong in one table.
    """
    grid = build_grid(source.read(), load())
    lines = [line for line in grid.lines if any(grid.at(line, key) for key in grid.benchmarks)]
    found = {Key(line.method, line.backbone, key): _cost(grid, line, key) for line in lines for key in grid.benchmarks}
    return Table(
        label="costs",
        caption=f"Calls, tokens and cost of a test question.{conditions(grid)}",
        simulated=grid.cells[0].run.simulated,
        heads=_HEADS,
        groups=tuple(_group(grid, key) for key in grid.benchmarks),
        rows=tuple(_row(grid, line, found) for line in lines),
        notes=tuple(_notes(grid, found)),
        provenance=provenance(grid.cells),
        records=tidy.even([_record(key, grid.measurements.get(key), cost) for key, cost in found.items()]),
    )


def _cost(grid: Grid, line: Line, benchmark: str) -> Cost:
    total = published_total(grid.published, line, benchmark)
    return Cost.of(grid.at(line, benchmark), total, published_questions(line, benchmark))


def _group(grid: Grid, benchmark: str) -> Group:
    n = next(measured.n for key, measured in grid.measurements.items() if key.benchmark == benchmark)
    costs = beside.PAIR if benchmark in grid.published.costs else (_COST,)
    return Group(grid.benchmarks[benchmark], f"n = {n}", (*_OWN, *costs, ALL_CALLS))


def _row(grid: Grid, line: Line, found: _Costs) -> Row:
    places = [Key(line.method, line.backbone, key) for key in grid.benchmarks]
    entries = [entry for key in places for entry in _entries(grid, key, found[key])]
    return Row(line.family, (line.method_title, line.backbone_title), tuple(entries))


def _entries(grid: Grid, key: Key, cost: Cost) -> list[Entry]:
    measured = grid.measurements.get(key)
    used = [Entry(tables.NOT_RUN)] * len(_OWN) if measured is None else _used(measured)
    [(printed, own)] = beside.costs([cost])
    own = replace(own, sign=_sign(cost))
    found = [own, *beside.all_calls([cost])]
    return [*used, printed, *found] if key.benchmark in grid.published.costs else [*used, *found]


def _sign(cost: Cost) -> str:
    """Where the paper prints no cost, none was fitted to it."""
    if _is_fitted(cost):
        return tables.DAGGER
    return FAR if cost.is_far else ""


def _is_fitted(cost: Cost) -> bool:
    return cost.calibrated and cost.printed is not None


def _used(measured: Measurement) -> list[Entry]:
    tokens = f"{measured.prompt_tokens / measured.n:.0f} + {measured.completion_tokens / measured.n:.0f}"
    share = copies.share(measured)
    return [Entry(f"{measured.calls / measured.n:.1f}", below=f"{share:.0%} copies" if share else ""), Entry(tokens)]


def _notes(grid: Grid, found: _Costs) -> Iterator[str]:
    several = any(len(measured.seeds) > 1 for measured in grid.measurements.values())
    yield (
        "Calls: of models, the final one included. Tokens: prompt + completion of all calls, as the servers report. "
        "Meas. and Publ.: cost of a question in 1e-4 of the paper's unit; the paper's is its total over the number of "
        "questions that its accuracy implies. Beside the measured cost it over the published one, below it the 95 % "
        f"bootstrap interval over questions{' and seeds, then seed 0 alone' if several else ''}. {COUNTED}"
    )
    if any(cost.is_far for cost in found.values()):
        yield f"{FAR}: apart by more than half an order of magnitude; docs/baselines.md says why."
    yield "Training and search are not in here: the paper charges the test questions alone."
    yield (
        "Copies: the share of the calls that repeat an earlier one of their question, with the same prompt, backbone "
        "and draw, and so get its reply; each is charged. None where nothing is said."
    )
    if any(map(_is_fitted, found.values())):
        yield (
            f"{tables.DAGGER}: the lengths of simulated replies were fitted to these published costs, before any "
            "length_scale; agreement is no finding, so no ratio is shown."
        )
    if any(cost.measured is None for cost in found.values()):
        yield f"{tables.NOT_RUN}: not run."


def _record(key: Key, measured: Measurement | None, cost: Cost) -> dict[str, str]:
    """Calls and tokens, too, are those of one question."""
    record = key._asdict()
    if measured is None:
        return record | tidy.costs(cost)
    values = {
        "calls": measured.calls,
        "prompt_tokens": measured.prompt_tokens,
        "completion_tokens": measured.completion_tokens,
        "cost_per_query": measured.cost,
        "cost_per_query_all_calls": measured.cost_total,
    }
    return {
        **record,
        "n": str(measured.n),
        "copies": "" if (share := copies.share(measured)) is None else tidy.in_percent(share),
        **{name: tidy.exact(value / measured.n) for name, value in values.items()},
        **tidy.costs(cost),
        "calibrated": str(measured.calibrated).lower(),
        **tidy.identity(measured),
    }
