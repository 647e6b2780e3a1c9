"""Graders held against gold answers."""

from __future__ import annotations

from typing import Annotated

import typer

from workflow import signals
from workflow.app import app


@app.command()
def validate(
    source: Annotated[str, typer.Option("--data", help="embedded or real (GMR_DATA_DIR, else the hub).")] = "embedded",
    benchmark: Annotated[list[str] | None, typer.Option(help="Only these benchmarks.")] = None,
) -> None:
    """Prove that every gold answer is graded right and a mutated one wrong.

    Status 1: a verdict is not as it should be.
    """
    from harness.benchmarks import keys
    from harness.benchmarks.validate import validate as validate_benchmark

    reports = [signals.run(validate_benchmark(key, source)) for key in benchmark or keys()]
    for report in reports:
        typer.echo(report.to_markdown())
    if any(not report.passed for report in reports):
        raise typer.Exit(1)
