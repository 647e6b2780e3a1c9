"""The job that makes results: one cell."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from harness.runner.config import Cell
from workflow import signals
from workflow.app import JOB, BackboneRow, BenchmarkKey, MethodKey, Overrides, PresetName, Seed, app, preset_of

if TYPE_CHECKING:
    from harness.runner.plan import Plan


@app.command(rich_help_panel=JOB)
def cell(
    preset: PresetName,
    method: MethodKey,
    benchmark: BenchmarkKey,
    backbone: BackboneRow,
    seed: Seed = 0,
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="Ask its failed calls again; a training beside them starts over.")
    ] = False,
    overrides: Overrides = None,
) -> None:
    """Run one cell: a method on a benchmark with a backbone and a seed. Goes on where it stopped."""
    _spare_pandas()
    from harness.runner import cell as cells
    from harness.runner.plan import plan

    planned = plan(preset_of(preset, overrides), Cell(method, benchmark, backbone, seed))
    if retry_errors:
        _forget_failed_calls(planned)
    signals.run(cells.run(planned))


def _spare_pandas() -> None:
    """Keep pyarrow from importing pandas, a third of the start of a cell, to ask whether a list of rows is its object.

    It tries once a process; whoever needs pandas later imports it as ever.
    """
    import pyarrow

    if "pandas" not in sys.modules:
        sys.modules["pandas"] = None  # type: ignore[assignment]
        with contextlib.suppress(ImportError, AttributeError):
            pyarrow.array([])
        del sys.modules["pandas"]


def _forget_failed_calls(plan: Plan) -> None:
    """First the result, then the calls: interrupted in between, the cell is run again all the same."""
    from harness.llm.call_log import CallLog, CallLogReader
    from harness.runner import layout
    from harness.training.loop import forget

    path = plan.folder / layout.CALL_LOG
    if not path.exists():
        return
    with CallLogReader(path) as log:
        if not log.failed():
            return
    with CallLog(path) as log:
        (plan.folder / "run.json").unlink(missing_ok=True)
        forget(plan.folder)
        log.forget_failed()
