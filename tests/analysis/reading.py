"""A table or figure as tests look at it: rows with labels and entries, groups of columns, records as text."""

import csv
import importlib
import importlib.util
import io
from dataclasses import replace
from html.parser import HTMLParser
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from analysis import table
from analysis.source import Source
from analysis.table import csv as tidy
from analysis.tables.variants import DESIGNS


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
    def heads(self) -> tuple:
        return tuple(self.made.shown.index.names[1:])

    @property
    def records(self) -> list[dict[str, str]]:
        lines = csv.DictReader(io.StringIO(tidy(self.made.frame, "")))
        return [{key: Field(value) for key, value in line.items()} for line in lines]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Read) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self.made.label)

    @property
    def _content(self) -> tuple:
        shown = (self.rows, self.groups, self.notes) if hasattr(self.made, "shown") else ()
        return self.label, self.caption, self.provenance, self.records, shown


class Artefact:
    """A module of an artefact, whose result is read."""

    def __init__(self, module: str, **options: Any) -> None:
        self._module = importlib.import_module(module)
        self._options = options

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)

    def build(self, source: Source) -> Read:
        return Read(self._module.build(replace(source, options={**self._options, **source.options})))


def __getattr__(name: str) -> Any:
    """The artefact whose module has a name."""
    for folder in ("tables", "figures"):
        if importlib.util.find_spec(f"analysis.{folder}.{name}"):
            return Artefact(f"analysis.{folder}.{name}")
    raise AttributeError(name)


ablation, paradigm, roles = (Artefact("analysis.tables.variants", design=design) for design in DESIGNS)


def write(read: Read, folder: Path, name: str) -> list[Path]:
    """Every file of a table."""
    return table.write(read.made, folder, name)
