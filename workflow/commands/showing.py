"""The command that shows what a method did, question by question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from harness.config import Cell, Preset
from harness.errors import UserError
from workflow.app import Json, Overrides, PresetName, app, preset_of

if TYPE_CHECKING:
    from workflow.showing.choosing import Listed


@app.command()
def show(
    method: Annotated[str, typer.Argument(help="A key of config/methods.yaml.")],
    benchmark: Annotated[str, typer.Argument(help="A key of config/benchmarks.yaml.")],
    item: Annotated[
        str | None, typer.Argument(help="A question by its id; a list of all without.", show_default=False)
    ] = None,
    preset: PresetName = "embedded",
    backbone: Annotated[
        str | None, typer.Option(help="The row, where the method has several.", show_default=False)
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Training seed; the first of the preset without.")] = None,
    wrong: Annotated[bool, typer.Option("--wrong", help="List only what was answered wrong.")] = False,
    errors: Annotated[bool, typer.Option("--errors", help="List only where a server or the sandbox failed.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Show long texts whole, and the prompts.")] = False,
    as_json: Json = False,
    overrides: Overrides = None,
) -> None:
    """Show what a method did on a question, step by step: choices, memory, replies, answer, verdict, cost.

    Of any method and any finished cell. Without a question: all of them with their verdicts.
    """
    from workflow.showing.choosing import cell_of

    if item is not None and (wrong or errors):
        raise UserError("--wrong and --errors are for the list; leave the question out, or them")
    chosen = preset_of(preset, overrides)
    cell = cell_of(chosen, method, benchmark, backbone, seed)
    typer.echo(_list(chosen, cell, wrong, errors, as_json) if item is None else _one(chosen, cell, item, full, as_json))


def _one(preset: Preset, cell: Cell, item: str, full: bool, as_json: bool) -> str:
    from paper.results import read
    from paper.trajectories import open_cell
    from workflow.showing.choosing import check_finished, check_item
    from workflow.showing.documents import to_json
    from workflow.showing.page import Page, terminal_width
    from workflow.showing.trajectory import MADE_UP, record_lines

    run = read(check_finished(preset, cell)).run
    with open_cell(preset.name, cell) as records:
        check_item(item, records.ids, cell)
        record = records.record(item)
    if as_json:
        return to_json({"preset": preset.name, "simulated": run.simulated, "cell": cell, "record": record})
    page = Page(terminal_width(), full=full)
    head = [f"{run.method_title} on {run.benchmark_title}, {cell}, preset {preset.name}", ""]
    return "\n".join([*([MADE_UP, ""] if run.simulated else []), *head, *record_lines(record, page)])


def _list(preset: Preset, cell: Cell, wrong: bool, errors: bool, as_json: bool) -> str:
    from workflow.showing.choosing import listed
    from workflow.showing.documents import to_json
    from workflow.showing.trajectory import MADE_UP

    found = listed(preset, cell)
    asked = {name for name, chosen in (("wrong", wrong), ("error", errors)) if chosen}
    some = [one for one in found if not asked or one.outcome in asked]
    if as_json:
        return to_json({"preset": preset.name, "simulated": preset.simulated, "cell": cell, "items": some})
    right = sum(one.correct for one in found)
    failed = sum(one.outcome == "error" for one in found)
    head = f"{cell}, preset {preset.name}: {right} of {len(found)} right, {failed} in error."
    shown = f"Shown: {len(some)}." if asked else "Shown: all."
    return "\n".join([*([MADE_UP] if preset.simulated else []), head, shown, "", *_rows(some)])


def _rows(listed: Sequence[Listed]) -> list[str]:
    from workflow.showing.page import visible

    width = max((len(one.id) for one in listed), default=0)
    return [
        f"{visible(one.id):<{width}}  {one.outcome}  {one.calls:>3} calls  "
        f"{one.tokens:>7,} tokens  cost {one.cost:.2e}  {visible(': '.join(filter(None, (one.status, one.detail))))}"
        for one in listed
    ]
