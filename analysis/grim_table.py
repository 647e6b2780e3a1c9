"""The granularity check on a whole table: which columns and candidates, and the outcome as text and as CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.grim import Candidate, Explanation, best_n, explain, printed, scan
from analysis.grim_seeds import triples
from analysis.published import Count, Fit, Published, PublishedRow
from harness.errors import UserError, unknown

if TYPE_CHECKING:
    import pandas as pd

# What is plausible: splits that the released code makes, with and without a last, dropped batch (D-GEN-6).
PLAUSIBLE: Mapping[str, tuple[int, ...]] = {
    "math": (416,),
    "gsm_hard": (1056,),
    "mbpp": (500, 496),
    "humaneval": (129, 128),
    "mmlu_pro": (880, 400),
}
_NOTHING = {"", "-", "–", "—"}
_SHOWN = 5
_LONG = 3


@dataclass(frozen=True, slots=True)
class Plausible:
    """Numbers of items to try.

    Attributes:
        named: By column; a column named here must hold percentages.
        elsewhere: For every other column of percentages, taken as they stand.
        scanned: For every other column, searched for the few that explain it; only without ``elsewhere``.
    """

    named: Mapping[str, tuple[int, ...]]
    elsewhere: tuple[int, ...] = ()
    scanned: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Column:
    """One column and what explains it.

    Attributes:
        title: Its heading.
        ranking: All candidates, the most telling first.
        taken: The candidates by which the cells are explained; of a scan, those it found.
        cells: One a row; ``None`` where nothing is printed.
    """

    title: str
    ranking: tuple[Candidate, ...]
    taken: tuple[int, ...]
    cells: tuple[Explanation | None, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome for one table: what its rows are called, and its columns of percentages."""

    rows: tuple[str, ...]
    columns: tuple[Column, ...]


def read(path: Path) -> pd.DataFrame:
    """A CSV file with every cell as the text it is; lines that begin with ``#`` are comments.

    Raises:
        UserError: There is no such file, or it is no table.
    """
    import pandas as pd

    try:
        return pd.read_csv(path, dtype=str, comment="#", keep_default_na=False, skipinitialspace=True)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); name a CSV file") from error
    except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{path}: no readable CSV table ({reason}); give one with a line of headings") from error


def check(frame: pd.DataFrame, plausible: Plausible) -> Report:
    """Explain every percentage of a table.

    Raises:
        UserError: A named column is not there or holds something else, or there is no column to check.
    """
    for title in plausible.named:
        if title not in frame.columns:
            raise unknown("column", title, frame.columns, "the first line of the table")
        _check_percentages(title, list(frame[title]))
    others = [title for title in frame.columns if title not in plausible.named and _looks_printed(list(frame[title]))]
    tried = {title: (values, False) for title, values in plausible.named.items()}
    if plausible.elsewhere or plausible.scanned:
        tried |= dict.fromkeys(others, (plausible.elsewhere or plausible.scanned, not plausible.elsewhere))
    if not tried:
        raise UserError(
            f"no column of percentages with decimals among {', '.join(frame.columns)}; name one, as in --n COLUMN=416"
        )
    columns = [_column(title, list(frame[title]), *tried[title]) for title in frame.columns if title in tried]
    return Report(_labels(frame), tuple(columns))


def check_published(published: Published) -> Report:
    """Explain the paper's main table by the numbers of items in :data:`PLAUSIBLE`."""
    columns = [
        _column(title, [_text(row, key) for row in published.rows], PLAUSIBLE[key], scanned=False)
        for key, title in published.benchmarks.items()
    ]
    return Report(tuple(f"{row.method} {row.backbone}" for row in published.rows), tuple(columns))


def seed_lines(published: Published) -> Iterator[str]:
    """For each mean and deviation of the paper's seed table, the triples of runs that contain its main table's run."""
    for method, benchmarks in published.further["seed_variance"].items():
        # The seed table has the larger backbone, which is the last row of a method.
        row = [row for row in published.rows if row.method == method][-1]
        for key in (key for key in published.benchmarks if key in benchmarks):
            mean, sd = (f"{benchmarks[key][measure]:.2f}" for measure in ("mean", "sd"))
            yield f"{method} {key}: {mean} ± {sd}, {_runs(mean, sd, _text(row, key), PLAUSIBLE[key])}"


def to_text(report: Report) -> str:
    """The candidates of each column, then every cell with its count, as a page."""
    import pandas as pd

    parts = [_ranking(column) for column in report.columns]
    fits = [cell.fit for column in report.columns for cell in column.cells if cell is not None]
    parts.append(f"{len(fits)} cells: {', '.join(f'{fits.count(fit)} {fit}' for fit in Fit)}")
    cells = {column.title: [_cell(cell) for cell in column.cells] for column in report.columns}
    return "\n\n".join([*parts, pd.DataFrame(cells, index=list(report.rows)).to_string()])


def to_csv(report: Report) -> str:
    """One line a cell: row, column, percentage as printed, fit, every count, and the nearest one where none fits."""
    import pandas as pd

    lines = [
        (row, column.title, cell.text, cell.fit, " ".join(map(_count, cell.counts)), _count(cell.near))
        for column in report.columns
        for row, cell in zip(report.rows, column.cells, strict=True)
        if cell is not None
    ]
    return pd.DataFrame(lines, columns=["row", "column", "printed", "fit", "counts", "near"]).to_csv(index=False)


def _column(title: str, texts: Sequence[str], candidates: Sequence[int], scanned: bool) -> Column:
    present = [text for text in texts if text.strip() not in _NOTHING]
    if not present:
        raise UserError(f"column {title!r} is empty; expected percentages as printed")
    taken = scan(present, candidates) if scanned else list(candidates)
    cells = [explain(text, taken) if text.strip() not in _NOTHING else None for text in texts]
    return Column(title, tuple(best_n(present, candidates)), tuple(taken), tuple(cells))


def _check_percentages(title: str, texts: Sequence[str]) -> None:
    for line, text in enumerate(texts, start=1):
        if text.strip() not in _NOTHING:
            try:
                printed(text)
            except UserError as error:
                raise UserError(f"column {title!r}, row {line}: {error}") from None


def _looks_printed(texts: Sequence[str]) -> bool:
    """Whether a column that nobody named holds percentages; without decimals it may hold anything, such as seeds."""
    present = [text for text in texts if text.strip() not in _NOTHING]
    try:
        return any(printed(text).places for text in present) and all(printed(text) for text in present)
    except UserError:
        return False


def _labels(frame: pd.DataFrame) -> tuple[str, ...]:
    """The columns with words name a row; without any it has its number."""
    words = [title for title in frame.columns if any(letter.isalpha() for text in frame[title] for letter in text)]
    rows = [" ".join(parts) for parts in frame[words].itertuples(index=False)]
    return tuple(row.strip() or str(place) for place, row in enumerate(rows, start=1))


def _text(row: PublishedRow, benchmark: str) -> str:
    """As the paper prints it, always with two decimals."""
    return f"{row.accuracies[benchmark].percent:.2f}"


def _ranking(column: Column) -> str:
    """The best candidates of a column; what a scan found is all it is explained by."""
    shown = column.ranking[:_SHOWN]
    lines = [f"{one.n:6d}{one.rounded:9d}{one.truncated:11d}{one.expected:11.2f}" for one in shown]
    found = f"explained by n = {', '.join(map(str, column.taken))}" if column.taken else "no n does better than chance"
    head = f"{column.title}: {sum(cell is not None for cell in column.cells)} cells, {found}"
    return "\n".join([head, "     n  rounded  truncated  by chance", *lines])


def _cell(cell: Explanation | None) -> str:
    if cell is None:
        return ""
    if cell.fit is Fit.NONE:
        return f"{cell.text} none{f' (near {_count(cell.near)})' if cell.near else ''}"
    more = f" and {len(cell.counts) - _LONG} more" if len(cell.counts) > _LONG else ""
    sign = " truncated" if cell.fit is Fit.TRUNCATED else ""
    return f"{cell.text} {' '.join(map(_count, cell.counts[:_LONG]))}{more}{sign}"


def _count(count: Count | None) -> str:
    return f"{count.k}/{count.n}" if count else ""


def _runs(mean: str, sd: str, own: str, candidates: Sequence[int]) -> str:
    """The triples with a run of the main table, or else those without it."""
    tried = [count.n for count in explain(own, candidates).counts] or candidates
    with_it = [_triple(one, n) for n in tried for one in triples(mean, sd, n, containing=own)]
    if with_it:
        return f"with {own}: {'; '.join(with_it)}"
    others = [_triple(one, n) for n in tried for one in triples(mean, sd, n)]
    return f"none with {own}; without it: {'; '.join(others) or 'none'}"


def _triple(texts: Sequence[str], n: int) -> str:
    """Three runs as counts; one that is none stands as printed."""
    found = [explain(text, [n]) for text in texts]
    return f"{', '.join(str(one.counts[0].k) if one.fit is Fit.ROUNDED else one.text for one in found)} of {n}"
