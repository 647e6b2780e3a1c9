"""Views of a table or figure for tests: rows with labels and entries, groups of columns, records as text."""

import csv
import importlib
import io
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from matplotlib.figure import Figure as Picture
from matplotlib.text import Text

from analysis.exhibit import Entry
from analysis.exhibit import csv as tidy
from analysis.frames import Results
from analysis.registry import artefact


class Row(NamedTuple):
    section: str
    labels: tuple
    entries: tuple


class Group(NamedTuple):
    title: str
    detail: str
    columns: tuple


class Field(str):
    """A CSV field, which equals any spelling of the same number."""

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        try:
            return float(self) == float(str(other).replace("−", "-"))
        except ValueError:
            return str(self) == other

    def __ne__(self, other: object) -> bool:
        return not self == other


class Read:
    """Access to rows, columns and records of a table or figure ``made``."""

    def __init__(self, made: Any) -> None:
        self.made = made

    def __getattr__(self, name: str) -> Any:
        return getattr(self.made, name)

    @property
    def rows(self) -> list[Row]:
        shown = self.made.shown
        return [Row(label[0], label[1:], tuple(row)) for label, row in zip(shown.index, shown.to_numpy(), strict=True)]

    @property
    def texts(self) -> list[list[str]]:
        return [[entry.text for entry in row.entries] for row in self.rows]

    @property
    def groups(self) -> list[Group]:
        columns = groupby(self.made.shown.columns, key=lambda column: column[:2])
        return [Group(*head, tuple(title for *_, title in of)) for head, of in columns]

    @property
    def records(self) -> list[dict[str, str]]:
        lines = csv.DictReader(io.StringIO(tidy(self.made.frame, "")))
        return [{key: Field(value) for key, value in line.items()} for line in lines]

    def row(self, *labels: str) -> Row:
        [row] = [row for row in self.rows if set(labels) <= set(row.labels)]
        return row

    def entries(self, group: str, column: str) -> list[Entry]:
        return list(self.made.shown.xs((group, column), axis="columns", level=(0, 2)).iloc[:, 0])

    def entry(self, group: str, column: str, *labels: str) -> Entry:
        return self.entries(group, column)[self.rows.index(self.row(*labels))]

    def record(self, **fields: str) -> dict[str, str]:
        [record] = [record for record in self.records if fields.items() <= record.items()]
        return record


#: One that chooses nothing.
PRESET: Any = SimpleNamespace(margin=None, methods=(), reference=None)


def __getattr__(name: str) -> Callable[..., Read]:
    """Return what builds the artefact with a given key from cells, for reading."""
    if name.startswith("_"):
        raise AttributeError(name)
    entry = artefact({"benchmark_cost": "gsm_cost", "roles": "roles13"}.get(name, name))
    entry = entry.model_copy(update={"caption": "Caption.", "legend": ()})

    def build(*cells: Path, preset: Any = PRESET, again: tuple[Path, ...] = ()) -> Read:
        function = getattr(importlib.import_module(entry.module), entry.function)
        return Read(function(Results(preset, entry, cells, again=again)))

    return build


def words(picture: Picture) -> str:
    """Return all text of a picture, with white space normalised."""
    texts = picture.findobj(Text)
    return " ".join(" ".join(text.get_text() for text in texts if isinstance(text, Text)).split())
