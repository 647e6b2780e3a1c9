"""What a question costs: calls, tokens and cost of every method, beside the cost the paper prints where it does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from analysis import columns, notes
from analysis.frames import COST, IDENTITY, KEY, Results, with_costs
from analysis.results import read_table
from analysis.source import Source
from analysis.table import DAGGER, FAR, NOT_RUN, Entry, Table, shown

_PER_QUESTION = ["calls", "prompt_tokens", "completion_tokens"]
_COLUMNS = [
    *(*KEY, "n", "copies", *_PER_QUESTION, "cost_per_query", "cost_per_query_all_calls", *COST, "calibrated"),
    *IDENTITY,
]


def build(source: Source) -> Table:
    """Build the table.

    The rows are those that were run. Everything is a mean over the test questions, and over the seeds.

    Raises:
        UserError: When a cell cannot be read or the cells do not belong in one table.
    """
    results = source.results()
    frame = _frame(results)
    groups = {
        (title, n): _group(own, key in results.published.costs)
        for key, title, n, own in columns.by_benchmark(results, frame)
    }
    rows = [(row.family, row.method_title, row.backbone_title) for row in results.ran.itertuples()]
    return Table(
        label="costs",
        caption=f"Calls, tokens and cost of a test question.{notes.conditions(results)}",
        simulated=results.simulated,
        shown=shown(rows, ("Method", "LLM"), groups),
        notes=tuple(_notes(results, frame)),
        provenance=results.provenance,
        frame=frame.reset_index()[_COLUMNS],
    )


def _frame(results: Results) -> pd.DataFrame:
    """The rows that were run on any benchmark, with costs; ``copies`` in percent, calls and tokens of one question."""
    ran = set(results.ran.index)
    frame = with_costs(results.frame[[key[:2] in ran for key in results.frame.index]], results)
    frame[_PER_QUESTION] = frame[_PER_QUESTION].div(frame["n"], axis=0)
    copies = {key: _copies(results, key) for key in results.trainings}
    return frame.assign(copies=pd.Series(copies, dtype=float).reindex(frame.index))


def _copies(results: Results, key: tuple[str, str, str]) -> float | None:
    """The share of the calls for the test questions that repeat an earlier call of the same question, in percent.

    The same messages with the same sampling and the same draw to the same backbone have one key, and get one reply:
    such a call is asked once and charged at each use, so it costs what another view of the question would, and brings
    none.
    """
    calls = [read_table(cell.folder / "calls.parquet", ("item_id", "key")) for cell in results.trainings[key]]
    if any(one.empty for one in calls):
        return None
    return round(100 * sum(float(one.duplicated().mean()) for one in calls) / len(calls), 2)


def _group(own: pd.DataFrame, printed: bool) -> dict[str, list[Entry]]:
    found = columns.costs(own)
    signs = [DAGGER if _is_fitted(row) else FAR if row.is_far else "" for row in own.itertuples()]
    measured = [entry._replace(sign=sign) for entry, sign in zip(found["Meas."], signs, strict=True)]
    return {
        "Calls": [_calls(row) for row in own.itertuples()],
        "Tokens": [_tokens(row) for row in own.itertuples()],
        **({"Publ.": found["Publ."]} if printed else {}),
        "Meas.": measured,
        **columns.all_calls(own),
    }


def _calls(row: Any) -> Entry:
    if not row.ran:
        return Entry(NOT_RUN)
    return Entry(f"{row.calls:.1f}", below=f"{row.copies:.0f}% copies" if row.copies > 0 else "")


def _tokens(row: Any) -> Entry:
    return Entry(f"{row.prompt_tokens:.0f} + {row.completion_tokens:.0f}" if row.ran else NOT_RUN)


def _is_fitted(row: Any) -> bool:
    """Where the paper prints no cost, none was fitted to it."""
    return row.calibrated is True and not pd.isna(row.published_cost_per_query)


def _notes(results: Results, frame: pd.DataFrame) -> Iterator[str]:
    several = results.measured["several"].any()
    yield (
        "Calls: of models, the final one included. Tokens: prompt + completion of all calls, as the servers report. "
        "Meas. and Publ.: cost of a question in 1e-4 of the paper's unit; the paper's is its total over the number of "
        "questions that its accuracy implies. Beside the measured cost it over the published one, below it the 95 % "
        f"bootstrap interval over questions{' and seeds, then seed 0 alone' if several else ''}. {notes.COUNTED}"
    )
    if frame["is_far"].any():
        yield f"{FAR}: apart by more than half an order of magnitude; docs/baselines.md says why."
    yield "Training and search are not in here: the paper charges the test questions alone."
    yield (
        "Copies: the share of the calls that repeat an earlier one of their question, with the same prompt, backbone "
        "and draw, and so get its reply; each is charged. None where nothing is said."
    )
    if any(map(_is_fitted, frame.itertuples())):
        yield (
            f"{DAGGER}: the lengths of simulated replies were fitted to these published costs, before any "
            "length_scale; agreement is no finding, so no ratio is shown."
        )
    if not frame["ran"].all():
        yield f"{NOT_RUN}: not run."
