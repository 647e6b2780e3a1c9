"""The long proof of the sandbox."""

from __future__ import annotations

import logging
from typing import Annotated

import typer

from harness import layout
from harness.files import write_atomically
from workflow import stopping
from workflow.commands.sandboxing import sandbox


@sandbox.command()
def proof(
    source: Annotated[str, typer.Option("--data", help="embedded or real (GMR_DATA_DIR, else the hub).")] = "embedded",
    workers: Annotated[list[int] | None, typer.Option(help="All programs with each.", show_default="1, 8")] = None,
    mutants: Annotated[int, typer.Option(help="Mutants of every gold program that have to fail.")] = 3,
    sample: Annotated[int, typer.Option(help="Programs that are judged again and again.")] = 100,
    repeats: Annotated[int, typer.Option(help="How often.")] = 20,
    busy: Annotated[bool, typer.Option(help="Whether a process spins on every processor meanwhile.")] = True,
) -> None:
    """Prove that gold programs pass, mutants fail and no verdict ever changes (reports/sandbox/proof.md)."""
    from harness.benchmarks.proof import Plan, problems, prove

    plan = Plan(tuple(workers or (1, 8)), mutants, sample, repeats, busy)
    found = stopping.run(prove(problems(source), source, plan))
    path = layout.REPORTS / "sandbox" / "proof.md"
    write_atomically(path, found.to_markdown())
    typer.echo(found.to_markdown())
    logging.info("%s: %s", "proved" if found.passed else "NOT proved", path)
    if not found.passed:
        raise typer.Exit(1)
