"""Tables as data: what every record of a measurement says, and the records of the main table; all values are text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from analysis import tables
from analysis.costs import Cost
from analysis.grid import Grid, Line
from analysis.measures import Measurement
from analysis.provenance import served
from analysis.published import PublishedAccuracy
from analysis.results import Cell, Run
from harness.benchmarks.items import Status

AVERAGE = "average"


def records(grid: Grid) -> tuple[Mapping[str, str], ...]:
    """Every row and benchmark of the main table, the places where nothing was run included.

    Where the table has an average, it follows the benchmarks of a row under their key :data:`AVERAGE`; it is of
    accuracies alone and has no number of questions.

    Accuracies, interval ends, differences and the shares of answers without a verdict are in percent; costs, in the
    paper's unit, and tokens are totals over the test set, as means over the seeds. A field is empty where there is
    nothing to say.
    """
    return even([record for line in grid.lines for record in _row(grid, line)])


def measured(measurement: Measurement) -> dict[str, str]:
    """What was measured, as fields of a record: accuracy with its interval, shares, costs, tokens.

    Accuracies and shares are in percent; costs, in the paper's unit, and tokens are means over the seeds. ``seed0`` is
    the accuracy of that seed alone, empty where it was not run.
    """
    estimate, verify = measurement.accuracy, measurement.math_verify
    return {
        "measured": in_percent(estimate.mean),
        "seed0": "" if measurement.seed_0 is None else in_percent(measurement.seed_0),
        "n": str(measurement.n),
        "low": in_percent(estimate.low),
        "high": in_percent(estimate.high),
        "calibrated": str(measurement.calibrated).lower(),
        "math_verify": "" if verify is None else in_percent(verify.mean),
        **without_verdict(measurement),
        "cost_total": exact(measurement.cost_total),
        "cost_steps": exact(measurement.cost_steps),
        "cost_per_query": exact(measurement.cost / measurement.n),
        "cost_per_query_all_calls": exact(measurement.cost_total / measurement.n),
        "prompt_tokens": exact(measurement.prompt_tokens),
        "completion_tokens": exact(measurement.completion_tokens),
    }


def without_verdict(measurement: Measurement) -> dict[str, str]:
    """The answers that count as wrong without having been judged, one field a status, in percent of all answers.

    Of mathematics, ``math_verify_undecided`` has those that were judged and left undecided by Math-Verify.
    """
    undecided = measurement.math_verify_undecided
    return {
        **{status.value: in_percent(share) for status, share in measurement.shares.items() if status != Status.GRADED},
        "math_verify_undecided": "" if undecided is None else in_percent(undecided),
    }


def identity(measurement: Measurement) -> dict[str, str]:
    """What identifies the runs behind a number, as fields of a record; see :func:`identity_of`."""
    return identity_of(measurement.cells)


def identity_of(cells: Sequence[Cell]) -> dict[str, str]:
    """What identifies runs, as fields of a record.

    Several seeds are joined by a space, ascending, and what differs between the cells is in their order; the backbones
    are ``key=model at revision by served_by``, joined by a semicolon (:func:`analysis.provenance.served`).
    """
    return {
        "seeds": " ".join(map(str, sorted({cell.run.seed for cell in cells}))),
        "run_id": _of_cells(cells, lambda run: run.run_id),
        "config_hash": _of_cells(cells, lambda run: run.config_hash),
        "code": _of_cells(cells, lambda run: run.code),
        "data_checksum": _of_cells(cells, lambda run: run.data.checksum),
        "backbones": _backbones(cells),
    }


def place(printed: float | None, measurement: Measurement | None, cost: Cost) -> dict[str, str]:
    """Everything a record says of one place of a table of accuracy and cost.

    Args:
        printed: The published accuracy in percent.
        measurement: ``None`` where nothing was run: the record is then shorter.
        cost: Of the same place.
    """
    published = {"published": "" if printed is None else f"{printed:.2f}"}
    if measurement is None:
        return {**published, **costs(cost)}
    difference = accuracy_difference(measurement, printed)
    return {**published, **costs(cost), **measured(measurement), "difference": difference, **identity(measurement)}


def costs(cost: Cost) -> dict[str, str]:
    """Published and measured cost as fields of a record: of one question, and over the paper's test set."""
    found = cost.measured
    return {
        "published_total": _optional(cost.total),
        "published_questions": _optional(cost.questions),
        "published_cost_per_query": _optional(cost.printed),
        "cost_low": _optional(found.low if found else None),
        "cost_high": _optional(found.high if found else None),
        "cost_ratio": _optional(cost.ratio),
        "cost_seed0": _optional(cost.seed_0),
        "total_scaled": _optional(cost.scaled),
    }


def even(records: Sequence[Mapping[str, str]]) -> tuple[Mapping[str, str], ...]:
    """Records with the same keys, those of the longest, empty where a record had nothing to say."""
    columns = max(records, key=len)
    return tuple({column: record.get(column, "") for column in columns} for record in records)


def accuracy_difference(measurement: Measurement, printed: float | None) -> str:
    """Measured minus printed in points; empty without a printed value, and where the measured one was fitted to it."""
    return _difference(measurement.accuracy.mean, printed, measurement.calibrated)


def in_percent(fraction: float) -> str:
    """A fraction in percent, as printed."""
    return f"{tables.percent(fraction):.2f}"


def _optional(value: float | None) -> str:
    return "" if value is None else exact(value)


def exact(value: float) -> str:
    """A number with more digits than any table prints."""
    return f"{value:.10g}"


def plain(text: str) -> str:
    """A printed number with the minus sign that programs read."""
    return text.replace("−", "-")


def _difference(fraction: float, printed: float | None, calibrated: bool) -> str:
    if calibrated or printed is None:
        return ""
    return plain(tables.difference(tables.percent(fraction), printed))


def _row(grid: Grid, line: Line) -> list[dict[str, str]]:
    found = [_record(grid, line, benchmark) for benchmark in grid.benchmarks]
    return [*found, _average(grid, line)] if grid.has_average else found


def _average(grid: Grid, line: Line) -> dict[str, str]:
    """Identified by all cells of the row."""
    printed = line.published.average if line.published else None
    estimate, seed_0 = grid.average(line), grid.average_of_seed_0(line)
    record = {
        "method": line.method,
        "backbone": line.backbone,
        "benchmark": AVERAGE,
        "benchmark_title": "Avg.",
        "published": "" if printed is None else f"{printed:.2f}",
    }
    if estimate is None:
        return record
    calibrated = grid.is_calibrated(line)
    return record | {
        "measured": in_percent(estimate.mean),
        "seed0": "" if seed_0 is None else in_percent(seed_0),
        "low": in_percent(estimate.low),
        "high": in_percent(estimate.high),
        "calibrated": str(calibrated).lower(),
        "difference": _difference(estimate.mean, printed, calibrated),
        **identity_of([cell for measurement in grid.row(line) for cell in measurement.cells]),
    }


def _record(grid: Grid, line: Line, benchmark: str) -> dict[str, str]:
    printed = line.published.accuracies.get(benchmark) if line.published else None
    measurement = grid.at(line, benchmark)
    return {
        "method": line.method,
        "backbone": line.backbone,
        "benchmark": benchmark,
        "benchmark_title": grid.benchmarks[benchmark],
        **_published(printed),
        **(_run(measurement, printed) if measurement else {}),
    }


def _published(printed: PublishedAccuracy | None) -> dict[str, str]:
    if printed is None:
        return {"published": "", "published_fit": "", "published_counts": ""}
    counts = " ".join(f"{count.k}/{count.n}" for count in printed.counts)
    return {"published": f"{printed.percent:.2f}", "published_fit": printed.fit, "published_counts": counts}


def _run(measurement: Measurement, printed: PublishedAccuracy | None) -> dict[str, str]:
    difference = accuracy_difference(measurement, printed.percent if printed else None)
    return {**measured(measurement), "difference": difference, **identity(measurement)}


def _of_cells(cells: Sequence[Cell], of: Callable[[Run], str]) -> str:
    """One value where all cells agree, else one a cell."""
    values = [of(cell.run) for cell in cells]
    return values[0] if len(set(values)) == 1 else " ".join(values)


def _backbones(cells: Sequence[Cell]) -> str:
    """Every identity once: cells that were answered by different servers show all of them."""
    found = {f"{key}={served(backbone)}" for cell in cells for key, backbone in cell.run.backbones.items()}
    return "; ".join(sorted(found))
