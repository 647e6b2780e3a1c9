"""What a question costs: calls, tokens and cost of every method, beside the cost the paper prints where it does."""

from __future__ import annotations

from paper import tables
from paper.costs import FAR, UNIT, is_far, published_cost
from paper.grid import Grid, Line, build_grid
from paper.measures import Measurement
from paper.notes import conditions
from paper.provenance import provenance
from paper.published import load
from paper.source import Source
from paper.tables import Entry, Group, Row, Table

_OWN = ("Calls", "Tokens", "Meas.")
_BESIDE = ("Publ.", "Ratio")
_HEADS = ("Method", "LLM")


def build(source: Source) -> Table:
    """Build the table.

    The rows are those that were run. Everything is a mean over the test questions, and over the seeds.

    Raises:
        UserError: When a cell cannot be read or the cells do not belong in one table.
    """
    grid = build_grid(source.read(), load())
    lines = [line for line in grid.lines if any(grid.at(line, key) for key in grid.benchmarks)]
    return Table(
        label="costs",
        caption=f"Calls, tokens and cost of a test question.{conditions(grid)}",
        simulated=grid.cells[0].run.simulated,
        heads=_HEADS,
        groups=tuple(_group(grid, key) for key in grid.benchmarks),
        rows=tuple(_row(grid, line) for line in lines),
        notes=_notes(grid),
        provenance=provenance(grid.cells),
        records=tuple(_record(grid, line, key) for line in lines for key in grid.benchmarks),
    )


def _group(grid: Grid, benchmark: str) -> Group:
    n = next(measured.n for key, measured in grid.measurements.items() if key.benchmark == benchmark)
    columns = _OWN + (_BESIDE if benchmark in grid.published.costs else ())
    return Group(grid.benchmarks[benchmark], f"n = {n}", columns)


def _row(grid: Grid, line: Line) -> Row:
    entries = [entry for key in grid.benchmarks for entry in _entries(grid, line, key)]
    return Row(line.family, (line.method_title, line.backbone_title), tuple(entries))


def _entries(grid: Grid, line: Line, benchmark: str) -> list[Entry]:
    measured = grid.at(line, benchmark)
    own = [Entry(tables.NOT_RUN)] * len(_OWN) if measured is None else _own(measured)
    if benchmark not in grid.published.costs:
        return own
    printed = published_cost(grid.published, line, benchmark)
    beside = Entry("" if printed is None else f"{UNIT * printed:.2f}")
    if printed is None or measured is None:
        return [*own, beside, Entry()]
    ratio = measured.cost_total / measured.n / printed
    sign = FAR if is_far(ratio) and not measured.calibrated else ""
    return [*own, beside, Entry(f"{ratio:.2f}", sign=tables.DAGGER if measured.calibrated else sign)]


def _own(measured: Measurement) -> list[Entry]:
    tokens = f"{measured.prompt_tokens / measured.n:.0f} + {measured.completion_tokens / measured.n:.0f}"
    return [
        Entry(f"{measured.calls / measured.n:.1f}"),
        Entry(tokens),
        Entry(f"{UNIT * measured.cost_total / measured.n:.2f}"),
    ]


def _notes(grid: Grid) -> tuple[str, ...]:
    legend = (
        "Calls: of models, the final one included. Tokens: prompt + completion, as the servers report. Meas. and "
        "Publ.: cost of all calls of a question in 1e-4 of the paper's unit; the paper's is its total over the number "
        "of questions that its accuracy implies. Ratio: measured over published."
    )
    found = [
        legend,
        f"{FAR}: apart by more than half an order of magnitude; docs/baselines.md says why.",
        "Training and search are not in here: the paper charges the test questions alone.",
    ]
    if any(measured.calibrated for measured in grid.measurements.values()):
        found.append(
            f"{tables.DAGGER}: the lengths of simulated replies were fitted to these published costs, before any "
            "length_scale; their ratio is no finding."
        )
    return tuple(found)


def _record(grid: Grid, line: Line, benchmark: str) -> dict[str, str]:
    measured, printed = grid.at(line, benchmark), published_cost(grid.published, line, benchmark)
    record = dict.fromkeys(
        ("calls", "prompt_tokens", "completion_tokens", "cost", "published_cost", "ratio", "calibrated"), ""
    )
    if printed is not None:
        record["published_cost"] = f"{printed:.10g}"
    if measured is not None:
        values = {
            "calls": measured.calls,
            "prompt_tokens": measured.prompt_tokens,
            "completion_tokens": measured.completion_tokens,
            "cost": measured.cost_total,
        }
        record |= {name: f"{value / measured.n:.10g}" for name, value in values.items()}
        record["calibrated"] = str(measured.calibrated).lower()
    if printed is not None and measured is not None:
        record["ratio"] = f"{measured.cost_total / measured.n / printed:.10g}"
    return {"method": line.method, "backbone": line.backbone, "benchmark": benchmark, **record}
