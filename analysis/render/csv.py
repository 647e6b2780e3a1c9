"""Tidy CSV: the records of a table or a figure, after a comment line where the run is simulated."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Protocol


class Tidy(Protocol):
    """Whatever has a tidy form: one mapping a line, all with the same keys."""

    @property
    def warning(self) -> str:
        """The sentence about simulated backbones, or nothing."""

    @property
    def records(self) -> Sequence[Mapping[str, str]]:
        """The lines."""


def render(tidy: Tidy) -> str:
    """The text of the file; readers skip the warning with ``comment="#"``."""
    text = io.StringIO()
    if tidy.warning:
        text.write(f"# {tidy.warning}\n")
    writer = csv.DictWriter(text, fieldnames=list(tidy.records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(tidy.records)
    return text.getvalue()
