"""Command that says how well this machine confines the programs that models write."""

from __future__ import annotations

import typer

from cli.app import app


@app.command()
def sandbox() -> None:
    """Say which levels of confinement work on this machine, and why one does not.

    Status 0: programs of real models can be run here. 1: they would be refused.
    """
    from harness.sandbox.pool import LEVELS, refusal

    for name in LEVELS:
        reason = refusal(name)
        typer.echo(f"{name:<10}{'does not work: ' + reason if reason else 'works'}")
    raise typer.Exit(1 if refusal(LEVELS[0]) else 0)
