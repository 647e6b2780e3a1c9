"""Tables of results: their columns, published and measured, and their files: LaTeX, CSV, Markdown and HTML.

All files are deterministic.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import pandas as pd

from analysis import exhibit, notes
from analysis.exhibit import ALL_CALLS, NOT_RUN, TIED, Entry, Exhibit, Form, entries, format_cost, format_series, signed
from analysis.exhibit import md_escape as escape
from analysis.frames import UNIT, Results
from analysis.latex import latex

# HTML and Markdown split a table of more columns.
_MOST_COLUMNS = 12


@dataclass(frozen=True, eq=False, kw_only=True)
class Table(Exhibit):
    """A table as printed: ``shown`` has one :class:`Entry` per cell; ``notes`` are printed below the table."""

    summary: tuple[str, ...] = ()  # sentences above the table, which the page then folds
    has_latex: bool = True
    shown: pd.DataFrame  # index: section (a rule between two), labels; columns: heading, smaller line below it, title

    def contents(self) -> Mapping[str, str]:
        files = {"csv": exhibit.csv(self.frame, self.warning), "md": markdown(self), "html": html(self)}
        return {"tex": latex(self, self.shown), **files} if self.has_latex else files


def labels_of(rows: Iterable[tuple[str, ...]], heads: Sequence[str]) -> pd.MultiIndex:
    """Return the labels of a table from section and labels of each row, and the titles of the labels."""
    return pd.MultiIndex.from_tuples(rows, names=["section", *heads])


def lay_out(labels: pd.MultiIndex, groups: Mapping[tuple[str, str], Mapping[str, Sequence[Entry]]]) -> pd.DataFrame:
    """Return the printed form of a table."""
    columns = {(*group, title): list(entries) for group, titles in groups.items() for title, entries in titles.items()}
    frame = pd.DataFrame(list(zip(*columns.values(), strict=True)), dtype=object)
    frame.index = labels
    return frame.set_axis(pd.MultiIndex.from_tuples(columns), axis=1)


def html(table: Table) -> str:
    names = list(table.shown.index.names[1:])
    return exhibit.render(
        "table.html.j2",
        table=table,
        heads=exhibit.two_lines(names, names),
        labels=[(section, exhibit.two_lines(names, labels)) for section, *labels in table.shown.index],
        parts=[
            (part, [(*head, len(list(group))) for head, group in groupby(part, lambda column: column[:2])])
            for part in exhibit.parts(table.shown, _MOST_COLUMNS)
        ],
        line_count=exhibit.line_count,
        anchor=exhibit.anchor,
    )


def markdown(table: Table) -> str:
    _, *names = table.shown.index.names
    details = dict.fromkeys(f"{group} {detail}" for group, detail, _ in table.shown.columns if detail)
    notes = [*table.notes, *([f"{'; '.join(details)}."] if details else []), *table.run_notes]
    lines = [*([f"> **{escape(table.warning)}**", ""] if table.warning else []), escape(table.caption), ""]
    lines += [line for sentence in table.summary for line in (escape(sentence), "")]
    for part in exhibit.parts(table.shown, _MOST_COLUMNS):
        heads = [*names, *(f"{group} {title}" for group, _, title in part)]
        rows = [
            [*map(escape, labels), *map(_markdown_entry, row)]
            for (_, *labels), row in zip(part.index, part.to_numpy(), strict=True)
        ]
        lines += exhibit.grid(heads, rows, left=len(names))
    lines += [*(f"- {escape(note)}" for note in notes), ""]
    lines.append(
        f"Provenance: {escape(exhibit.provenance_text(table))}; the rest is in [index.html](index.html) and the CSV."
    )
    return "\n".join([*lines, ""])


def _markdown_entry(entry: Entry) -> str:
    form = {exhibit.BEST: "**{}**", exhibit.SECOND: "<u>{}</u>", "": "{}"}[entry.mark]
    text = form.format(escape(entry.text)) if entry.text else ""
    beside = f" ({entry.beside})" if entry.beside else ""
    below = escape(f" [{entry.below}]") if entry.below else ""
    return f"{text}{entry.sign}{beside}{below}"


#: Columns by title; a key is the heading with its smaller second line.
Groups = Mapping[tuple[str, str], Mapping[str, Sequence[Entry]]]


def accuracies(frame: pd.DataFrame, tied: Sequence[tuple[str, str]] = ()) -> dict[str, list[Entry]]:
    """Return published and measured accuracy, each with its marks. Rows in ``tied`` get a sign."""
    alone = frame["seed0"].where(frame["several"].eq(True))
    measured = frame["measured"].where(frame["ran"])
    return {
        "Publ.": entries(frame["published"], "{:.2f}", mark=exhibit.marks(frame["published"])),
        "Meas.": entries(
            measured,
            "{:.2f}",
            NOT_RUN,
            mark=exhibit.marks(measured),
            sign=pd.Series([TIED if key[:2] in tied else "" for key in frame.index]),
            beside=format_series(frame["difference"], signed),
            below=interval(frame["low"], frame["high"], "{:.1f}") + format_series(alone, "; seed 0: {:.2f}"),
        ),
    }


def costs(frame: pd.DataFrame, far: str = "") -> dict[str, list[Entry]]:
    """Return published and measured cost of a question in 1e-4. ``far`` is the sign on ratios far from 1."""
    return side_by_side(
        frame,
        "cost_per_query",
        format_cost,
        UNIT,
        sign=frame["is_far"].map({True: far, False: ""}),
        beside=format_series(frame["cost_ratio"], "×{:.2f}"),
        below=interval_of(frame, "cost", format_cost, unit=UNIT),
    )


def all_calls(frame: pd.DataFrame) -> dict[str, list[Entry]]:
    return {ALL_CALLS: entries(UNIT * frame["cost_per_query_all_calls"], format_cost, NOT_RUN)}


def totals(frame: pd.DataFrame) -> dict[str, list[Entry]]:
    """Return costs of the paper's test set: as printed, and the measured mean times its number of questions."""
    return {
        # Three decimals like the paper, or more if the paper prints more.
        "Publ.": entries(
            frame["published_total"], lambda cost: f"{cost:.3f}" if round(cost, 3) == cost else f"{cost:g}"
        ),
        "Meas.": entries(
            format_series(frame["total_scaled"], lambda cost: format_cost(cost, 3)).mask(~frame["ran"], NOT_RUN)
        ),
    }


def interval(low: pd.Series, high: pd.Series, form: Form, between: str = "–") -> pd.Series:
    """Format an interval; empty if an end is missing."""
    first, last = format_series(low, form), format_series(high, form)
    return (first + between + last).where((first != "") & (last != ""), "")


def interval_of(frame: pd.DataFrame, name: str, form: Form, between: str = "–", unit: float = 1.0) -> pd.Series:
    """Format the interval ``NAME_low`` to ``NAME_high``, then ``NAME_seed0`` if there is one."""
    text = interval(unit * frame[f"{name}_low"], unit * frame[f"{name}_high"], form, between)
    if f"{name}_seed0" not in frame:
        return text
    alone = format_series(unit * frame[f"{name}_seed0"], form)
    return (text + ("; seed 0: " + alone).where(alone != "", "")).str.removeprefix("; ")


def points(frame: pd.DataFrame, name: str, missing: str = "", **parts: pd.Series) -> list[Entry]:
    """Return a column of differences in points, with their intervals."""
    below = interval_of(frame, name, partial(signed, digits=1), ", ")
    return entries(frame[name], signed, missing, below=below, **parts)


def factors(frame: pd.DataFrame, name: str, form: Form, is_lacking: pd.Series, between: str = "–") -> list[Entry]:
    """Format ratios: blank if a side costs nothing, without interval if the interval is unbounded."""
    known = frame.filter(regex=f"^{name}(_low|_high)?$").astype(float)
    known = known.where((known > 0) & (known < math.inf))
    text = format_series(known[name], form).mask(is_lacking, NOT_RUN)
    return entries(text, below=interval_of(known, name, form, between))


def side_by_side(
    frame: pd.DataFrame, name: str, form: Form, unit: float = 1.0, **parts: pd.Series | str
) -> dict[str, list[Entry]]:
    """Return the columns ``published_NAME`` and ``NAME``. ``parts`` belong to the measured one."""
    return {
        "Publ.": entries(unit * frame[f"published_{name}"], form),
        "Meas.": entries(unit * frame[name], form, NOT_RUN, **parts),
    }


def by_benchmark(results: Results, frame: pd.DataFrame) -> Iterator[tuple[str, str, str, pd.DataFrame]]:
    """Iterate over key, title, number of questions (``n = 128``) and rows of each benchmark."""
    for key, title in results.benchmarks.items():
        yield key, title, results.questions(key), frame.xs(key, level="benchmark", drop_level=False)


def stack_benchmarks(parts: Sequence[Groups]) -> dict[tuple[str, str], dict[str, list[Entry]]]:
    """Concatenate the groups of columns of all benchmarks."""
    return {
        group: {title: [entry for part in parts for entry in part[group][title]] for title in columns}
        for group, columns in parts[0].items()
    }


def join_values(values: pd.Series) -> str:
    """Join the values of all seeds in one CSV field."""
    return " ".join(f"{value:.10g}" for value in values)


def scaled_to(frame: pd.DataFrame) -> str:
    """Return the smaller heading of total costs: the number of questions they are scaled to."""
    sizes = [f"{size:.0f}" for size in frame["published_questions"].dropna().unique()]
    return f"scaled to n = {' or '.join(sizes)}" if sizes else ""


def row_labels(rows: pd.DataFrame, *names: str, heads: Sequence[str] = ("Method", "LLM")) -> pd.MultiIndex:
    """Return section and labels of each row; by default those of the main table."""
    names = names or ("family", "method_title", "backbone_title")
    return labels_of(rows[list(names)].itertuples(index=False, name=None), heads)


def results_table(
    results: Results,
    rows: pd.MultiIndex,
    groups: Groups,
    frame: pd.DataFrame,
    also: Iterable[str] = (),
    caption: str = "",
) -> Table:
    """Build a table of results. In one of a simulated run, the measured columns are called "Sim." and nothing is bold.

    Args:
        results: The cells that the table shows.
        rows: Section and labels of each row.
        groups: Columns of entries. Columns of published values that the paper lacks are dropped.
        frame: The tidy form; its index, if it has names, becomes columns.
        also: Notes below the legend. A note on bold numbers begins with "Bold".
        caption: Takes the place of the artefact's.
    """
    shown = lay_out(rows, groups)
    tidy = frame.reset_index() if frame.index.names[0] else frame
    described = notes.describe_run(results, tidy, also, caption)
    if results.simulated:
        # No number of a simulated run is the best of anything.
        shown = shown.map(lambda entry: entry._replace(mark="")).rename(columns={"Meas.": "Sim."}, level=2)
        lines = (line.replace("Meas.", "Sim.") for line in described["notes"] if not line.startswith("Bold"))
        described["notes"] = tuple(lines)
    is_shown = ["publ." not in name[2].lower() or any(entry.text for entry in shown[name]) for name in shown]
    return Table(shown=shown.loc[:, is_shown], **described)
