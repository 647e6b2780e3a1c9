"""A run in one line, for who waits for it."""

from __future__ import annotations

import time

import typer

from workflow.watching.cells import State
from workflow.watching.standing import Standing

# Where lines cannot be written over, as in a file.
_SELDOM_S = 30.0


class ProgressLine:
    """Writes the state of a run on standard error: in place on a terminal, elsewhere a line now and then.

    Args:
        width: Columns of the terminal; 0 where there is none.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._last = -_SELDOM_S

    def show(self, text: str) -> None:
        """Show the state of now."""
        if self._width:
            typer.echo(f"\r\033[K{text[: self._width - 1]}", err=True, nl=False)
        elif time.monotonic() - self._last >= _SELDOM_S:
            self._last = time.monotonic()
            typer.echo(text, err=True)

    def clear(self) -> None:
        """Make room for other lines."""
        if self._width:
            typer.echo("\r\033[K", err=True, nl=False)


def one_line(standing: Standing, steps: str) -> str:
    """The state of a run.

    Args:
        standing: Its cells.
        steps: How many jobs of how many are done, as Snakemake says; may be empty.
    """
    counts, spent = standing.counts, standing.spent
    ends = "".join(f", {counts[state]} {state}" for state in (State.RUNNING, State.FAILED) if counts[state])
    rate = "" if standing.rate is None else f" ({standing.rate:.0f}/s)"
    left = f"about {duration(standing.left_s)} left" if standing.left_s else ""
    parts = [
        f"cells {counts[State.FINISHED]}/{len(standing.seen)}{ends}",
        f"jobs {steps}" if steps else "",
        f"{spent.calls:,} calls{rate}",
        f"{spent.tokens:,} tokens",
        f"cost {spent.cost:.4f}",
        left,
    ]
    return " · ".join(part for part in parts if part)


def duration(seconds: float) -> str:
    """A time as one says it: ``40 s``, ``12 min``, ``3 h 20 min``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
