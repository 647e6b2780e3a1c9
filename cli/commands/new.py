"""Command that writes a method to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from cli.app import app
from harness.errors import UserError

_FOLDER = Path("my")


@app.command()
def new(
    kind: Annotated[Literal["method"], typer.Argument(help="What to begin: a method.")],
    name: Annotated[str, typer.Argument(help="Its key and its module, such as length_router.")],
) -> None:
    """Write a method of your own that runs as it is: my/NAME.py, and its entry in my/methods.yaml."""
    from harness.files import ROOT, write_atomically
    from harness.fingerprint import source_of
    from harness.runner import config

    entries, module = _FOLDER / "methods.yaml", _FOLDER / f"{name}.py"
    known = config.methods(str(entries) if entries.exists() else None)
    if not name.isidentifier() or name in known or module.exists() or source_of(name) is not None:
        raise UserError(f"{name!r} is a {kind} or module already, or no name of a module; choose another name")
    write_atomically(module, (ROOT / "cli" / "method_template.py").read_text(encoding="utf-8"))
    text = entries.read_text(encoding="utf-8") if entries.exists() else ""
    entry = f"{name}: {{module: {name}, title: {name}, rows: pool, multi_agent: false, routing: true}}\n"
    write_atomically(entries, f"{text}{entry}")
    typer.echo(f"{module} and its entry in {entries} are yours to change; beside two others it runs by")
    typer.echo(
        f"  snakemake --cores all reports/smoke/main_table.md --config extra={entries} methods='[single, gmr, {name}]'"
    )
