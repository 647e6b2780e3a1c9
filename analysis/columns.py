"""Columns that tables of accuracy and cost share: published and measured numbers, and their headings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pandas as pd

from analysis import notes
from analysis.frames import UNIT, Results
from analysis.table import ALL_CALLS, DAGGER, NOT_RUN, Entry, Table, entries, marks, say, shown, signed

_SMALL = 0.01


def accuracies(frame: pd.DataFrame) -> dict[str, list[Entry]]:
    """Accuracies, published and measured, each side with its own best and second best.

    A calibrated value carries its sign instead of a difference: agreeing with the paper is how it was made. Below a
    measured value stands its interval, and where it is of several seeds, seed 0 alone.
    """
    alone = frame["seed0"].where(frame["several"].eq(True))
    measured = frame["measured"].where(frame["ran"])
    return {
        "Publ.": entries(say(frame["published"], "{:.2f}"), mark=marks(frame["published"])),
        "Meas.": entries(
            say(measured, "{:.2f}"),
            NOT_RUN,
            mark=marks(measured),
            sign=daggers(frame),
            beside=say(frame["difference"], signed),
            below=interval(frame["low"], frame["high"], ".1f") + say(alone, "; seed 0: {:.2f}"),
        ),
    }


def costs(frame: pd.DataFrame, far: str = "") -> dict[str, list[Entry]]:
    """Costs of one question in 1e-4, published and measured; a calibrated one carries its sign instead of a ratio.

    The frame is with costs (:func:`analysis.frames.with_costs`); ``far`` is the sign on ratios that ask for an
    explanation.
    """
    ends = interval(UNIT * frame["cost_low"], UNIT * frame["cost_high"], ".2f")
    return {
        "Publ.": entries(say(UNIT * frame["published_cost_per_query"], "{:.2f}")),
        "Meas.": entries(
            say(UNIT * frame["cost_per_query"], "{:.2f}"),
            NOT_RUN,
            sign=daggers(frame).mask(frame["is_far"] & (far > ""), far),
            beside=say(frame["cost_ratio"], "×{:.2f}"),
            below=ends + say(UNIT * frame["cost_seed0"], "; seed 0: {:.2f}"),
        ),
    }


def all_calls(frame: pd.DataFrame) -> dict[str, list[Entry]]:
    """Measured costs of one question, of all its calls."""
    return {ALL_CALLS: entries(say(UNIT * frame["cost_per_query_all_calls"], "{:.2f}"), NOT_RUN)}


def totals(frame: pd.DataFrame) -> dict[str, list[Entry]]:
    """Costs of the paper's test set: as printed, and the measured mean times its number of questions."""
    return {
        # With three decimals like the paper, or as many more as it once prints; measured ones with one more where three
        # would say little.
        "Publ.": entries(say(frame["published_total"], lambda of: f"{of:.3f}" if round(of, 3) == of else f"{of:g}")),
        "Meas.": entries(
            say(frame["total_scaled"], lambda of: f"{of:.3f}" if of >= _SMALL else f"{of:.4f}").mask(
                ~frame["ran"], NOT_RUN
            )
        ),
    }


def interval(low: pd.Series, high: pd.Series, form: str) -> pd.Series:
    """The ends of an interval as text."""
    return say(low, f"{{:{form}}}–") + say(high, f"{{:{form}}}")


def daggers(frame: pd.DataFrame) -> pd.Series:
    """The sign of calibrated rows."""
    return frame["calibrated"].eq(True).map({True: DAGGER, False: ""}).astype(object)


def by_benchmark(results: Results, frame: pd.DataFrame) -> Iterator[tuple[str, str, str, pd.DataFrame]]:
    """Key, title, number of questions as ``n = 128``, and the rows of each benchmark."""
    for key, title in results.benchmarks.items():
        yield key, title, results.questions(key), frame.xs(key, level="benchmark", drop_level=False)


def below_one_another(parts: Sequence[Mapping[str, Sequence[Entry]]]) -> dict[str, list[Entry]]:
    """The columns of several benchmarks, each with best values of its own, as columns of one table."""
    return {title: [entry for part in parts for entry in part[title]] for title in parts[0]}


def labels(rows: pd.DataFrame, *names: str) -> Iterable[tuple[str, ...]]:
    """Section and labels of the rows of a table; of the main table unless named."""
    return rows[list(names or ("family", "method_title", "backbone_title"))].itertuples(index=False, name=None)


def table(
    results: Results,
    label: str,
    caption: str,
    rows: Iterable[tuple[str, ...]],
    heads: Sequence[str],
    groups: Mapping[tuple[str, str], Mapping[str, Sequence[Entry]]],
    legend: Iterable[str],
    frame: pd.DataFrame,
) -> Table:
    """A table of results: the caption with the settings of the run, and what identifies it."""
    return Table(
        label=label,
        caption=caption + notes.settings(results),
        simulated=results.simulated,
        shown=shown(rows, heads, groups),
        notes=tuple(legend),
        provenance=results.provenance,
        frame=frame,
    )
