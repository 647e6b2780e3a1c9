"""The granularity check as a command."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.errors import UserError
from workflow.app import app

if TYPE_CHECKING:
    from analysis.grim_table import Plausible


@app.command()
def grim(
    table: Annotated[
        Path | None,
        typer.Argument(help="A CSV table with percentages as printed; the paper's own without.", show_default=False),
    ] = None,
    n: Annotated[
        list[str] | None,
        typer.Option("--n", metavar="[COLUMN=]N,N...", help="Plausible numbers of items, for a column or for all."),
    ] = None,
    scan: Annotated[
        str | None, typer.Option(metavar="LOW-HIGH", help="Search the numbers of items of the columns without --n.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the outcome to this CSV file too.")] = None,
) -> None:
    """Show which counts of correct answers each printed percentage can come from (the GRIM test)."""
    from analysis import grim_table
    from analysis.published import load
    from harness.files import write_atomically

    if table is None:
        if n or scan:
            raise UserError("--n and --scan are for a table of your own; name its file")
        report, below = grim_table.check_published(load()), list(grim_table.seed_lines(load()))
    else:
        report, below = grim_table.check(grim_table.read(table), _plausible(n or [], scan)), []
    typer.echo(
        "\n".join([grim_table.to_text(report), *(["", "Mean and deviation of three runs:"] if below else []), *below])
    )
    if out is not None:
        write_atomically(out, grim_table.to_csv(report))


def _plausible(given: list[str], scan: str | None) -> Plausible:
    from analysis.grim_table import Plausible

    if not given and scan is None:
        raise UserError("which numbers of items are plausible? Give --n 416,1056, --n COLUMN=416 or --scan 50-2000")
    pairs = [text.rpartition("=") for text in given]
    everywhere = [values for name, _, values in pairs if not name]
    if len(everywhere) > 1 or (everywhere and scan is not None):
        raise UserError("give --n without a column once, and not beside --scan")
    return Plausible(
        named={name: _numbers(values) for name, _, values in pairs if name},
        elsewhere=_numbers(everywhere[0]) if everywhere else (),
        scanned=_range(scan) if scan is not None else (),
    )


def _numbers(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise UserError(f"--n {text!r}: expected numbers of items with commas between, such as 416,1056")
    return tuple(map(int, dict.fromkeys(parts)))


def _range(text: str) -> tuple[int, ...]:
    found = re.fullmatch(r"(\d+)-(\d+)", text.strip())
    low, high = map(int, found.groups()) if found else (0, 0)
    if not 0 < low <= high:
        raise UserError(f"--scan {text!r}: expected the lowest and the highest number of items, such as 50-2000")
    return tuple(range(low, high + 1))
