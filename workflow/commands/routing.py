"""Showing what a trained router decides."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.errors import UserError
from workflow import stopping
from workflow.app import Overrides, app, preset_of


@app.command()
def route(
    question: Annotated[str | None, typer.Argument(help="The question, in quotes.", show_default=False)] = None,
    item: Annotated[str | None, typer.Option(help="A prepared question by its id, instead of a text.")] = None,
    benchmark: Annotated[
        str | None, typer.Option(help="The benchmark it was trained on; may be left out where there is only one.")
    ] = None,
    method: Annotated[str | None, typer.Option(help="GMR or a variant of it; gmr unless given.")] = None,
    seed: Annotated[int | None, typer.Option(help="Training seed; 0 unless given.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="The router's file, instead of benchmark, method and seed.")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="Whose router, data and backbones: embedded, or with --checkpoint the one it names."),
    ] = None,
    walk: Annotated[bool, typer.Option("--run", help="Ask the backbones, step by step to the answer.")] = False,
    greedy: Annotated[bool, typer.Option("--greedy", help="With --run: always the most probable choice.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Show long texts whole.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    overrides: Overrides = None,
) -> None:
    """Show what a trained router of GMR does with a question: its next decision, or with --run the whole trajectory."""
    if (question is None) == (item is None):
        raise UserError("give either a question in quotes or --item with the id of a prepared one")
    if greedy and not walk:
        raise UserError("--greedy says how --run decides; give both, or neither")
    if checkpoint is not None and (benchmark, method, seed) != (None, None, None):
        raise UserError("--checkpoint names the router already; leave --benchmark, --method and --seed out")
    from workflow import restored as routers
    from workflow import route as routing
    from workflow.route_text import Page, to_json
    from workflow.showing.page import terminal_width

    path = checkpoint or routers.find(preset_of(preset or "embedded", overrides), method or "gmr", benchmark, seed or 0)
    restored = routers.restore(path, greedy=greedy)
    chosen = preset_of(preset or restored.facts["preset"], overrides)
    if item is not None:
        asked = routing.prepared_question(restored, chosen, item)
    else:
        asked = routing.own_question(restored, question or "")
    found = stopping.run(routing.run(restored, chosen, asked)) if walk else routing.next_decision(restored, asked)
    about = routing.about(restored, asked)
    typer.echo(to_json(about, found) if as_json else Page(terminal_width(), full=full).show(about, found))
