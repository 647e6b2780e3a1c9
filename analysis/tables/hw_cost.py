"""FLOPs and seconds of a question (paper, Cost Calculation for Open-Weight Backbones; D-REPORT-3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from analysis import columns, notes
from analysis.columns import format_series, interval_of, side_by_side
from analysis.exhibit import Entry
from analysis.frames import IDENTITY, KEY, mean_with_interval
from analysis.source import Source
from analysis.table import Table
from analysis.timings import Timing, pflops, read_timings

_TIMED = [
    "seconds",
    "seconds_total",
    "timed_seed",
    "timed_calls",
    "timed_calls_failed",
    "timed_tokens",
    "concurrency",
    "machine",
]


def build(source: Source) -> Table:
    """Return the published rows, then others among the cells; two groups of columns a benchmark."""
    results = source.results()
    timings = read_timings(source.timings, results.cells)
    printed = results.printed("hw_cost")
    known = dict.fromkeys([*printed.index.droplevel("benchmark"), *results.ran.index])
    rows = [row for row in known if row in results.rows_to_show.index]
    order = dict.fromkeys([*printed.index.unique("benchmark"), *results.benchmarks])
    titles = {key: results.benchmarks[key] for key in order if key in results.benchmarks}
    index = pd.MultiIndex.from_tuples([(*row, key) for row in rows for key in titles], names=KEY)
    timed = pd.DataFrame([_timed(timings[key]) if key in timings else {} for key in index], index, _TIMED)
    flops = results.per_row(lambda cells: mean_with_interval(cells, "pflops", pflops))
    frame = pd.DataFrame({"benchmark_title": [titles[key] for *_, key in index]}, index).join(
        [printed.add_prefix("published_"), results.measured[["n", *IDENTITY]], flops, timed.astype({"seconds": float})]
    )
    for name in ("pflops", "seconds"):
        frame[f"{name}_ratio"] = results.compared(frame[name] / frame[f"published_{name}"])
    groups: dict[tuple[str, str], dict[str, list[Entry]]] = {}
    for key, title in titles.items():
        part, n = frame.xs(key, level="benchmark"), results.questions(key)
        flops_ratio, time_ratio = (format_series(part[f"{name}_ratio"], "×{:.2f}") for name in ("pflops", "seconds"))
        below = interval_of(part, "pflops", "{:.3f}")
        groups[f"{title}, PFLOPs", n] = side_by_side(
            part, "pflops", "{:.3f}", "{:.3f}", beside=flops_ratio, below=below
        )
        seconds = side_by_side(part, "seconds", "{:.1f}", "{:.2f}", beside=time_ratio)
        # Without a timing, the questions of this run have no part in the column.
        groups[f"{title}, seconds", n if timings else ""] = seconds if timings else {"Publ.": seconds["Publ."]}
    return columns.table(
        results,
        label="hw-cost",
        caption=source.caption,
        rows=columns.labels(results.rows.loc[rows].assign(section="rows"), "section", "method_title", "backbone_title"),
        groups=groups,
        legend=[*source.legend, *_legend(list(timings.values())), *notes.protocol(results)],
        frame=frame.reset_index(),
    )


def _timed(timing: Timing) -> dict[str, Any]:
    tokens = timing.prompt_tokens + timing.completion_tokens
    values = (timing.per_query, timing.seconds, timing.seed, timing.calls, timing.failed_calls, tokens)
    return dict(zip(_TIMED, (*values, timing.concurrency, timing.machine), strict=True))


def _legend(timings: Sequence[Timing]) -> Iterator[str]:
    """Yield how seconds were measured."""
    if not timings:
        yield "Nothing was timed: seconds are measured in runs on real models alone."
        return
    first, hosts = timings[0], "; ".join(sorted({timing.machine for timing in timings}))
    yield (
        "Seconds of a question: wall-clock time of the whole test set over n, from a job of its own with the "
        f"method as trained with seed {first.seed}: {first.concurrency} questions at a time, "
        "nothing cached, answers not graded. One pass has no interval. "
        f"Measured one method at a time from {hosts}; time depends on what the servers ran on."
    )
    if failed := sum(timing.failed_calls for timing in timings):
        yield f"In the timed passes {failed} of {sum(timing.calls for timing in timings)} calls got no reply."
