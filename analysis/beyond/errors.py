"""Answers without a verdict, which count as wrong, by status; the CSV also has the outcomes of programs."""

from collections.abc import Sequence

import pandas as pd

from analysis.exhibit import NOT_RUN, Entry
from analysis.finished_cells import FinishedCell
from analysis.frames import Results
from analysis.notes import WITHOUT_VERDICT as NAMES
from analysis.table import Table, by_benchmark, entries, format_series, results_table, row_labels
from harness.benchmarks.items import Status
from harness.sandbox import Outcome

# A failure of the sandbox itself is a status, not an outcome of the program.
_ENDS = [outcome.value for outcome in Outcome if outcome is not Outcome.SANDBOX_ERROR]
_STOPPED = ["cpu_limit", "wall_limit", "memory_limit", "output_limit", "killed"]


def build(results: Results) -> Table:
    frame = results.frame[results.frame["was_run"]].join(results.per_row(_ends))
    groups = {(title, n): _group(rows) for _, title, n, rows in by_benchmark(results, frame)}
    rows = row_labels(results.ran)
    return results_table(results, rows, groups, frame[frame["ran"]])


def _ends(cells: Sequence[FinishedCell]) -> dict[str, float]:
    items = pd.concat([cell.items for cell in cells])
    graded = items[items["status"] == Status.GRADED]
    # The outcome is the first word of the grading detail.
    words = graded.loc[graded["detail"] != "", "detail"].str.split(":").str[0]
    shares = (100 * words.value_counts() / len(items)).round(2)
    ends = shares.reindex(_ENDS, fill_value=0.0 if len(words) else float("nan"))
    cut_off = round(100 * items["cut_off"].mean(), 2)
    return {"measured_of_graded": round(100 * graded["correct"].mean(), 2), "cut_off": cut_off, **ends}


def _group(rows: pd.DataFrame) -> dict[str, list[Entry]]:
    kinds = [
        format_series(rows[name].where(rows[name] > 0), f"{title[0].upper()} {{:.1f}}") for name, title in NAMES.items()
    ]
    below = pd.concat(kinds, axis=1).apply(lambda row: ", ".join(filter(None, row)), axis=1)
    has_programs = rows[_ENDS].notna().any(axis=None)
    parts = {"No verdict": [*NAMES], "At limit": ["cut_off"], **({"Stopped": _STOPPED} if has_programs else {})}
    shares = {title: rows[names].sum(axis=1).where(rows["ran"]) for title, names in parts.items()}
    text = {"No verdict": below}
    return {title: entries(share, "{:.1f}", NOT_RUN, below=text.get(title, "")) for title, share in shares.items()}
