"""A table or figure as tests look at it: rows with labels and entries, groups of columns, records as text."""

import csv
import importlib
import importlib.util
import io
from dataclasses import replace
from html.parser import HTMLParser
from itertools import groupby
from typing import Any, NamedTuple

from matplotlib.figure import Figure as Picture
from matplotlib.text import Text

from analysis.registry import artefact
from analysis.source import Source
from analysis.table import Entry
from analysis.table import csv as tidy


class Html(HTMLParser):
    """The start tags of a document with their attributes, its text, and which tags are open at its end."""

    VOID = frozenset(("meta", "link", "img", "br", "hr", "input"))

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    @property
    def tags(self) -> set[str]:
        return {tag for tag, _ in self.found}

    def values(self, name: str) -> list[str]:
        return [value for _, attributes in self.found if (value := attributes.get(name))]


class Row(NamedTuple):
    section: str
    labels: tuple
    entries: tuple


class Group(NamedTuple):
    title: str
    detail: str
    columns: tuple


class Field(str):
    """A field of a CSV, equal to every spelling of its number."""

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        try:
            return float(self) == float(str(other).replace("−", "-"))
        except ValueError:
            return str(self) == other

    def __ne__(self, other: object) -> bool:
        return not self == other


class Read:
    """What was built, which stays at hand as ``made``."""

    def __init__(self, made: Any) -> None:
        self.made = made

    def __getattr__(self, name: str) -> Any:
        return getattr(self.made, name)

    @property
    def rows(self) -> list[Row]:
        shown = self.made.shown
        return [Row(label[0], label[1:], tuple(row)) for label, row in zip(shown.index, shown.to_numpy(), strict=True)]

    @property
    def groups(self) -> list[Group]:
        columns = groupby(self.made.shown.columns, key=lambda column: column[:2])
        return [Group(*head, tuple(title for *_, title in of)) for head, of in columns]

    @property
    def records(self) -> list[dict[str, str]]:
        lines = csv.DictReader(io.StringIO(tidy(self.made.frame, "")))
        return [{key: Field(value) for key, value in line.items()} for line in lines]


class Artefact:
    """A module of an artefact, whose result is read."""

    def __init__(self, module: str, **options: Any) -> None:
        self._module = importlib.import_module(module)
        self._options = options

    def build(self, source: Source) -> Read:
        return Read(self._module.build(replace(source, options={**self._options, **source.options})))


def __getattr__(name: str) -> Any:
    """The artefact whose module has a name."""
    for folder in ("tables", "figures"):
        if importlib.util.find_spec(f"analysis.{folder}.{name}"):
            return Artefact(f"analysis.{folder}.{name}")
    raise AttributeError(name)


ablation, paradigm, roles = (
    Artefact("analysis.tables.variants", **artefact(key).options) for key in ("ablation", "paradigm", "roles13")
)


def row_of(made: Read, *labels: str) -> Row:
    """The one row that has all of these labels."""
    [row] = [row for row in made.rows if set(labels) <= set(row.labels)]
    return row


def cell_of(made: Read, row: Row, group: str, column: str) -> Entry:
    """The entry of a row below a heading and a column title."""
    places = [(one.title, title) for one in made.groups for title in one.columns]
    return row.entries[places.index((group, column))]


def record_of(made: Read, **wanted: str) -> dict[str, str]:
    """The one record with these fields."""
    [record] = [one for one in made.records if all(one[key] == value for key, value in wanted.items())]
    return dict(record)


def words(picture: Picture) -> str:
    """All text of a picture, line breaks and other white space as one blank."""
    texts = picture.findobj(Text)
    return " ".join(" ".join(text.get_text() for text in texts if isinstance(text, Text)).split())
