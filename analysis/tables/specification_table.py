"""Estimates of each headline conclusion under every reading, and what they support."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from analysis import columns, notes
from analysis.exhibit import NOT_RUN, Entry, signed
from analysis.source import Source
from analysis.specification import CONCLUSIONS, OUTCOMES, TAKEN, Specification, read_specification
from analysis.table import Table

_TITLES = {
    ("Estimate", ""): ("Paper", TAKEN, "Lowest", "Highest"),
    ("Readings, the one taken included, that", ""): ("support", "leave open", "contradict"),
    ("Which of them", ""): ("contradict", "differ from the one taken"),
}
_MEANING = (
    "Supports: the whole 95 % interval is where the conclusion holds: above 0, of 13 roles above −2, of depth below 1. "
    "Contradicts: it is elsewhere. Leaves open: it touches the border. Of a row ahead of all others, of both "
    "benchmarks and of six ablations the interval is for all of them jointly."
)
_LIMITS = (
    "One choice is made otherwise at a time; combinations are not here. All readings answer the same questions and "
    "share most cells, so the counts are no votes and no p value follows from them. A reading of training concerns a "
    "conclusion about a module only where the side without the module was trained under it, too. Other splits of the "
    "questions (D-DATA-4) are no reading here: they are a run of their own, with `splits` set otherwise."
)


def build(source: Source) -> Table:
    """Return a row a conclusion: estimates, counts by outcome, and the readings that contradict or differ."""
    specification = read_specification(source)
    titles = dict(list(_TITLES.items())[:1]) if specification.results.simulated else _TITLES
    entries = [_entries(specification, key) for key in CONCLUSIONS]
    by_column = iter(zip(*entries, strict=True))
    return columns.table(
        specification.results,
        label="specification-table",
        caption="Every headline conclusion under every reading that concerns it: estimates, and what they support.",
        rows=[("", conclusion.says.removesuffix("."), conclusion.unit) for conclusion in CONCLUSIONS.values()],
        heads=("Conclusion", "Unit"),
        groups={group: {title: list(next(by_column)) for title in parts} for group, parts in titles.items()},
        legend=_legend(specification),
        frame=specification.points,
    )


def _entries(specification: Specification, key: str) -> list[Entry]:
    """Return the entries of a conclusion in the order of the columns."""
    published = specification.points.loc[specification.points["conclusion"] == key, "published"].dropna()
    paper = Entry(signed(published.iloc[0]) if len(published) else "")
    points = specification.shown.get(key, pd.DataFrame())
    if points.empty:
        return [paper, *[Entry(NOT_RUN)] * (sum(map(len, _TITLES.values())) - 1)]
    [taken] = points[points["reading"] == TAKEN].itertuples()
    lowest, highest = points.iloc[0], points.iloc[-1]
    others = points[points["outcome"] != taken.outcome]
    against = points[points["outcome"] == "contradicts"]
    return [
        paper,
        Entry(signed(taken.measured), below=f"{signed(taken.low)} to {signed(taken.high)}"),
        *(Entry(signed(point["measured"]), below=point["reading"]) for point in (lowest, highest)),
        *(Entry(str(points["outcome"].eq(outcome).sum())) for outcome in OUTCOMES.values()),
        Entry("all" if len(against) == len(points) else ", ".join(against["reading"])),
        Entry("; ".join(f"{outcome}: {', '.join(rows['reading'])}" for outcome, rows in others.groupby("outcome"))),
    ]


def _legend(specification: Specification) -> Iterator[str]:
    yield from (_LIMITS,) if specification.results.simulated else (_MEANING, _LIMITS)
    yield from specification.left_out()
    yield from notes.seeds(specification.results)
