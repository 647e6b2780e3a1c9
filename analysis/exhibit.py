"""Exhibits (tables, figures and reports): captions and provenance, formatted entries, and files."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import pandas as pd

from harness.errors import printable
from harness.files import write_atomically
from harness.runner.results import SIMULATED_WARNING

NOT_RUN = "–"
FAR, TIED, ABOVE = "‡", "†", "↑"
ALL_CALLS = "All calls"
YES, NO = "●", "○"
BEST, SECOND = "best", "second"
# This label is printed below the label before it, to save width.
_SECOND_LINE = "LLM"
# Number of letters per line in a long entry or label.
_LINE = 28
# Keys of the provenance that is printed. Comments of a LaTeX fragment have all keys.
_PRINTED = ("run", "preset", "cells", "seeds")
#: A format such as ``"{:.2f}"``, or a function from a number to text.
Form: TypeAlias = str | Callable[[float], str]


class Entry(NamedTuple):
    """One number as printed."""

    text: str = ""  # the number itself, or NOT_RUN; empty if there is no number
    mark: str = ""  # BEST in bold, SECOND underlined
    sign: str = ""  # a footnote sign such as FAR
    beside: str = ""  # a smaller figure next to it, such as a difference
    below: str = ""  # a smaller figure on a second line, such as an interval


def format_series(values: pd.Series, form: Form) -> pd.Series:
    """Format numbers with a format string or function; empty if NaN."""
    write = form.format if isinstance(form, str) else form
    return pd.Series(["" if pd.isna(value) else write(value) for value in values], values.index, dtype=object)


def entries(values: pd.Series, form: Form | None = None, missing: str = "", **parts: pd.Series | str) -> list[Entry]:
    """Return a column of entries: formatted values (or texts without ``form``), with further parts of :class:`Entry`.

    Entries without a value show only ``missing``.
    """
    text = values if form is None else format_series(values, form)
    frame = pd.DataFrame({"text": text.to_numpy()}, dtype=object)
    for name, part in parts.items():
        frame[name] = part if isinstance(part, str) else part.to_numpy()
    return [Entry(**row) if row["text"] else Entry(missing) for row in frame.to_dict("records")]


@dataclass(frozen=True, eq=False, kw_only=True)
class Exhibit(ABC):
    """A table, figure or report with its caption, warning and provenance."""

    label: str  # the key of the artefact, for cross-references
    caption: str  # without the warning of a simulated run
    notes: tuple[str, ...] = ()  # legend and footnotes
    run_notes: tuple[str, ...] = ()  # what holds for the whole run
    simulated: bool  # whether any number is from simulated backbones; every file then says so
    provenance: Mapping[str, str]  # names and values that identify the run
    frame: pd.DataFrame  # the tidy form of the same numbers

    @property
    def warning(self) -> str:
        return SIMULATED_WARNING if self.simulated else ""

    @abstractmethod
    def contents(self) -> Mapping[str, str | bytes]:
        """Return the content of each file by its ending."""


def write(exhibit: Exhibit, folder: Path, name: str) -> list[Path]:
    """Write an exhibit in every format, each file atomically."""
    paths = {folder / f"{name}.{ending}": content for ending, content in exhibit.contents().items()}
    for path, content in paths.items():
        write_atomically(path, content if isinstance(content, bytes) else printable(content, keep="\n"))
    return list(paths)


def line_count(text: str) -> int:
    """Estimate the lines of a text. Without a space it cannot be broken."""
    return max(1, math.ceil(len(text) / _LINE)) if " " in text else 1


def two_lines(names: Sequence[str], labels: Sequence[str]) -> list[tuple[str, str]]:
    """Pair each label of a row with its second line, which may be empty."""
    below = names.index(_SECOND_LINE) if _SECOND_LINE in names[1:] else 0
    small = {below - 1: labels[below]} if below else {}
    return [(label, small.get(number, "")) for number, label in enumerate(labels) if not below or number != below]


def parts(shown: pd.DataFrame, most: int) -> list[pd.DataFrame]:
    """Split a table between groups of columns, so that each part has at most so many columns or one group."""
    groups = [list(columns) for _, columns in groupby(shown.columns, lambda column: column[:2])]
    size = max(1, most // max(map(len, groups)))
    return [shown[[*chain(*groups[at : at + size])]] for at in range(0, len(groups), size)]


def marks(values: Iterable[float | None]) -> pd.Series:
    """Mark the best and second best of a column. Equal values share a mark; no marks if all are equal."""
    column = pd.Series(values, dtype=float)
    names = {1: BEST, 2: SECOND} if column.nunique() > 1 else {}
    ranks = column.rank(method="dense", ascending=False)
    return pd.Series([names.get(rank, "") for rank in ranks], column.index, dtype=object)


def number(value: float, digits: int, sign: str = "") -> str:
    """Format with a true minus; with ``sign="+"`` also a plus. Zero has no sign."""
    text = f"{value:{sign}.{digits}f}"
    return (text if float(text) else text.lstrip("+-")).replace("-", "−")


def format_cost(value: float, decimals: int = 2, sign: Literal["", "+"] = "") -> str:
    """Format with at least ``decimals`` decimals, and as many as two significant digits need."""
    digits = 1 - math.floor(math.log10(abs(value))) if value else 0
    return number(value, max(decimals, digits), sign)


def signed(points: float, digits: int = 2) -> str:
    """Format percentage points with their sign, such as ``"+1.20"``."""
    return number(points, digits, "+")


def csv(frame: pd.DataFrame, warning: str) -> str:
    """Return a tidy CSV. A warning is its first column, so that readers need no option."""
    flags = [name for name, column in frame.items() if set(map(type, column.dropna())) == {bool}]
    words = {name: frame[name].map({True: "true", False: "false"}) for name in flags}
    tidy = frame.assign(**words)
    if warning:
        tidy.insert(0, "SIMULATED", warning)
    text: str = tidy.to_csv(index=False, float_format="%.10g", lineterminator="\n")
    return text


def md_escape(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>#|~&$])", r"\\\1", text)


def grid(heads: Sequence[str], rows: Iterable[Sequence[str]], left: int) -> list[str]:
    """Return the lines of a pipe table and an empty line. The first ``left`` columns are left-aligned."""
    rule = ["---"] * left + ["--:"] * (len(heads) - left)
    return [*(f"| {' | '.join(line)} |" for line in ([md_escape(head) for head in heads], rule, *rows)), ""]


def provenance_text(exhibit: Exhibit, full: bool = False) -> str:
    """Return the provenance in one line: all of it, or only what print needs."""
    return "; ".join(f"{name}: {value}" for name, value in exhibit.provenance.items() if full or name in _PRINTED)


def anchor(*words: str) -> str:
    """Return the id of a part of the page."""
    return re.sub(r"[^\w.]+", "-", "-".join(words))


def render(template: str, **values: Any) -> str:
    """Render a template with every value escaped. An undefined name is an error."""
    return str(_templates().get_template(template).render(values))


@cache
def _templates() -> Any:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
