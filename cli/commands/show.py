"""Commands that show trajectories and trained routers, question by question."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import signals
from cli.app import Json, Overrides, PresetName, app, default_preset, preset_of
from harness.errors import UserError

if TYPE_CHECKING:
    from harness.runner.config import Cell, Preset


@app.command()
def show(
    preset: PresetName,
    method: Annotated[str, typer.Argument(help="A key of config/methods.yaml.")],
    benchmark: Annotated[str, typer.Argument(help="A key of config/benchmarks.yaml.")],
    item: Annotated[
        str | None, typer.Argument(help="A question by its id; a list of all without.", show_default=False)
    ] = None,
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
    if item is not None and (wrong or errors):
        raise UserError("--wrong and --errors are for the list; leave the question out, or them")
    chosen = preset_of(preset, overrides)
    cell = _cell_of(chosen, method, benchmark, backbone, seed)
    typer.echo(_list(chosen, cell, wrong, errors, as_json) if item is None else _one(chosen, cell, item, full, as_json))


@app.command()
def route(
    question: Annotated[str | None, typer.Argument(help="The question, in quotes.", show_default=False)] = None,
    item: Annotated[str | None, typer.Option(help="A prepared question by its id, instead of a text.")] = None,
    benchmark: Annotated[str | None, typer.Option(help="The benchmark it was trained on.")] = None,
    method: Annotated[str | None, typer.Option(help="GMR or a variant of it; gmr unless given.")] = None,
    seed: Annotated[int | None, typer.Option(help="Training seed; the first of the preset unless given.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="The router's file, instead of benchmark, method and seed.")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="Whose router, data and backbones; else that of config/config.yaml, or of --checkpoint."),
    ] = None,
    walk: Annotated[bool, typer.Option("--run", help="Ask the backbones, step by step to the answer.")] = False,
    greedy: Annotated[bool, typer.Option("--greedy", help="With --run: always the most probable choice.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Show long texts whole.")] = False,
    as_json: Json = False,
    overrides: Overrides = None,
) -> None:
    """Show what a trained router of GMR does with a question: its next decision, or with --run the whole trajectory."""
    if (question is None) == (item is None):
        raise UserError("give either a question in quotes or --item with the id of a prepared one")
    if greedy and not walk:
        raise UserError("--greedy says how --run decides; give both, or neither")
    if checkpoint is not None and (benchmark, method, seed) != (None, None, None):
        raise UserError("--checkpoint names the router already; leave --benchmark, --method and --seed out")
    from cli import route as routing
    from cli.trajectory_printer import Page, to_json
    from harness.training.loop import CHECKPOINT

    def chosen(trained: str, backbones: Sequence[str]) -> Preset:
        return preset_of(preset or trained, [*(overrides or ()), f"backbones=[{', '.join(backbones)}]"])

    if checkpoint is None:
        if benchmark is None:
            raise UserError("name the --benchmark that the router was trained on, or its file by --checkpoint")
        own = preset_of(preset or default_preset(), overrides)
        checkpoint = _finished(own, _cell_of(own, method or "gmr", benchmark, None, seed)) / CHECKPOINT
    restored = routing.restore(checkpoint, chosen, greedy=greedy)
    if item is not None:
        asked = routing.prepared_question(restored, item)
    else:
        asked = routing.own_question(restored, question or "")
    found = signals.run(routing.run(restored, asked)) if walk else routing.next_decision(restored, asked)
    about = routing.about(restored, asked)
    if as_json:
        typer.echo(to_json({"about": about, "walk" if walk else "outlook": found}))
    else:
        typer.echo(routing.to_text(about, found, Page(full=full)))


def _one(preset: Preset, cell: Cell, item: str, full: bool, as_json: bool) -> str:
    from analysis.results import read
    from analysis.trajectories import questions, records
    from cli.trajectory_printer import Page, check_item, record_lines, to_json
    from harness.runner.results import SIMULATED_WARNING

    found = read(_finished(preset, cell))
    run = found.run
    check_item(item, list(found.items["item_id"]), str(cell))
    asked = questions(preset.name, cell.benchmark)
    record = next(one for one in records(preset.name, cell, asked) if one.item.id == item)
    if as_json:
        return to_json({"preset": preset.name, "simulated": run.simulated, "cell": cell, "record": record})
    head = [f"{run.method_title} on {run.benchmark_title}, {cell}, preset {preset.name}", ""]
    return "\n".join(
        [*([f"{SIMULATED_WARNING}.", ""] if run.simulated else []), *head, *record_lines(record, Page(full=full))]
    )


def _list(preset: Preset, cell: Cell, wrong: bool, errors: bool, as_json: bool) -> str:
    from analysis.results import outcome, read
    from cli.trajectory_printer import in_order, to_json, visible
    from harness.runner.results import SIMULATED_WARNING

    made = read(_finished(preset, cell))
    rows, simulated = made.items, made.run.simulated
    kept = rows[["item_id", "correct", "status", "detail", "calls", "cost_total"]]
    found = kept.rename(columns={"item_id": "id", "cost_total": "cost"}).assign(
        tokens=rows["prompt_tokens"] + rows["completion_tokens"],
        outcome=list(map(outcome, rows["status"], rows["correct"])),
    )
    asked = [name for name, chosen in (("wrong", wrong), ("error", errors)) if chosen]
    some = (found[found["outcome"].isin(asked)] if asked else found).sort_values("id", key=in_order)
    if as_json:
        items = some.drop(columns="outcome").to_dict("records")
        return to_json({"preset": preset.name, "simulated": simulated, "cell": cell, "items": items})
    failed = (found["outcome"] == "error").sum()
    head = f"{cell}, preset {preset.name}: {found['correct'].sum()} of {len(found)} right, {failed} in error."
    shown = f"Shown: {len(some)}." if asked else "Shown: all."
    width = some["id"].str.len().max() if len(some) else 0
    lines = [
        f"{visible(one.id):<{width}}  {one.outcome}  {one.calls:>3} calls  "
        f"{one.tokens:>7,} tokens  cost {one.cost:.2e}  {visible(': '.join(filter(None, (one.status, one.detail))))}"
        for one in some.itertuples()
    ]
    return "\n".join([*([f"{SIMULATED_WARNING}."] if simulated else []), head, shown, "", *lines])


def _cell_of(preset: Preset, method: str, benchmark: str, backbone: str | None, seed: int | None) -> Cell:
    """Return the finished cell that the given parts of its name select; UserError if none or several match."""
    from harness.runner import config

    entries = config.methods()
    if backbone is None and method in entries:
        rows = config.rows(preset, entries[method])
        if len(rows) != 1:
            raise UserError(f"{method} has the rows {', '.join(rows)}; name one by --backbone")
        backbone = rows[0]
    cell = config.Cell(method, benchmark, backbone or "", preset.seeds[0] if seed is None else seed)
    config.check_cell(preset, cell)
    return cell


def _finished(preset: Preset, cell: Cell) -> Path:
    """Return the folder of a finished cell; UserError with the command that makes it."""
    from harness.runner import layout

    run = layout.cell(preset.name, cell) / "run.json"
    if not run.exists():
        raise UserError(f"{cell} of preset {preset.name} is not finished; run it with `snakemake --cores all {run}`")
    return run.parent
