"""Cost of a question: calls, tokens and cost of every method, with the published cost where there is one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

import pandas as pd

from analysis import columns, notes
from analysis.columns import by_benchmark, entries, format_series
from analysis.exhibit import FAR, NOT_RUN, Entry
from analysis.finished_cells import FinishedCell, read_table
from analysis.frames import Results, with_costs
from analysis.source import Source
from analysis.table import Table

_PER_QUESTION = ["calls", "prompt_tokens", "completion_tokens"]


def build(source: Source) -> Table:
    """Return the rows that were run; all values are means over the test questions and the seeds."""
    results = source.results()
    frame = with_costs(results.frame[results.frame["was_run"]], results).join(results.per_row(_duplicate_calls))
    frame[_PER_QUESTION] = frame[_PER_QUESTION].div(frame["n"], axis=0)
    return columns.table(
        results,
        label="costs",
        caption="Calls, tokens and cost of a test question.",
        rows=columns.labels(results.ran),
        groups={
            (title, n): _group(rows, key in results.published.costs)
            for key, title, n, rows in by_benchmark(results, frame)
        },
        legend=_legend(results, frame),
        frame=frame.reset_index(),
    )


def _duplicate_calls(cells: Sequence[FinishedCell]) -> dict[str, float]:
    """Return the percentage of calls that repeat an earlier one of the same question; not a number without a call."""
    calls = [read_table(cell.folder / "calls.parquet", ("item_id", "key")) for cell in cells]
    return {"copies": round(100 * fmean(table.duplicated().mean() for table in calls), 2)}


def _group(rows: pd.DataFrame, printed: bool) -> dict[str, list[Entry]]:
    costs = columns.costs(rows, FAR)
    tokens = format_series(rows["prompt_tokens"], "{:.0f} + ") + format_series(rows["completion_tokens"], "{:.0f}")
    return {
        "Calls": entries(rows["calls"], "{:.1f}", NOT_RUN, below=format_series(rows["copies"], "{:.0f}% copies")),
        "Tokens": entries(tokens, missing=NOT_RUN),
        **({"Publ.": costs["Publ."]} if printed else {}),
        "Meas.": costs["Meas."],
        **columns.all_calls(rows),
    }


def _legend(results: Results, frame: pd.DataFrame) -> Iterator[str]:
    several = results.measured["several"].any()
    ratio = "" if results.simulated else "Next to the measured cost stands its ratio to the published one. "
    yield (
        "Calls: of models, the final one included. Tokens: prompt + completion of all calls, as the servers report. "
        "Meas. and Publ.: cost of a question in 1e-4 of the paper's unit; the paper's is its total over the number of "
        f"questions that its accuracy implies. {ratio}Below it the 95 % interval over questions"
        f"{' and seeds, then seed 0 alone' if several else ''}. "
        f"{notes.COUNTED}"
    )
    yield from notes.far(frame)
    yield notes.TEST_ALONE
    yield (
        "Copies: the share of the calls that repeat an earlier one of their question, with the same prompt, backbone "
        "and draw, and so get its reply; each is charged (D-GEN-2)."
    )
    yield from notes.not_run(frame)
