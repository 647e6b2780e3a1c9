"""The command that sets two methods side by side on the same questions."""

from __future__ import annotations

from typing import Annotated

import orjson
import typer

from workflow.app import Json, Overrides, PresetName, app, preset_of


@app.command()
def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="METHOD, or METHOD/BACKBONE where it has several rows.")],
    second: Annotated[str, typer.Argument(metavar="B", help="The one it is compared with, named likewise.")],
    preset: PresetName = "embedded",
    benchmark: Annotated[
        list[str] | None, typer.Option(help="Only on this benchmark; may be repeated. All that both have without.")
    ] = None,
    items: Annotated[bool, typer.Option("--items", help="List the questions that only one got right.")] = False,
    as_json: Json = False,
    overrides: Overrides = None,
) -> None:
    """Compare two methods question by question: difference, interval, exact test, costs, what could have been shown.

    The numbers are those of the artefact `paired` and are explained in docs/artefacts.md. Cells of other questions or
    rules, or simulated ones beside real ones, are refused. Whatever is found, the status is 0.
    """
    from workflow.comparing import rows, text

    chosen = preset_of(preset, overrides)
    found = rows.compare(chosen, rows.row(chosen, first), rows.row(chosen, second), benchmark)
    if as_json:
        typer.echo(orjson.dumps(text.as_json(found), option=orjson.OPT_INDENT_2).decode())
        return
    typer.echo("\n".join(text.lines(found, items=items)))
