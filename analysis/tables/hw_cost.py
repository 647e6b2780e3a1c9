"""Compute and time of a question: FLOPs from the tokens of its calls, seconds from timing jobs.

Paper, Cost Calculation for Open-Weight Backbones; D-REPORT-3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from analysis import flops, notes
from analysis.frames import IDENTITY, KEY, Key, Results
from analysis.source import Source
from analysis.table import NOT_RUN, Entry, Table, shown
from analysis.timings import Timing, read_timings

_TABLE = "hw_cost"
# The rows the paper prints, in its order.
_ROWS = (("gmr", "pool"), ("masrouter", "pool"), ("puppeteer", "qwen-2.5-32B"))
_COLUMNS = [
    *(*KEY, "benchmark_title", "published_pflops", "published_seconds", "n", "pflops", "pflops_low", "pflops_high"),
    *("pflops_seed0", "pflops_ratio", *IDENTITY, "seconds", "seconds_are", "seconds_ratio", "seconds_total"),
    *("timed_seed", "timed_calls", "timed_calls_failed", "timed_tokens", "concurrency", "engine", "machine"),
]


def build(source: Source) -> Table:
    """Build the table: the published rows, then others among the cells; two groups of columns a benchmark.

    Raises:
        UserError: A cell or timing cannot be read, or they do not belong in one table.
    """
    results = source.results()
    timings = read_timings(source.timings, results.cells)
    kind = "modelled" if results.simulated else "measured"
    known = [*_ROWS, *(row for row in results.ran.index if row not in _ROWS)]
    printed = results.published.further[_TABLE][_ROWS[0][0]]
    keys = [key for key in dict.fromkeys([*printed, *results.benchmarks]) if key in results.benchmarks]
    index = pd.MultiIndex.from_tuples([(*row, key) for row in known for key in keys], names=KEY)
    frame = pd.DataFrame(
        [_record(results, key, timings.get(key), kind) for key in index], index=index, columns=_COLUMNS[3:]
    )
    groups: dict[tuple[str, str], dict[str, list[Entry]]] = {}
    for key in keys:
        own = list(frame.xs(key, level="benchmark").itertuples())
        title, n = results.benchmarks[key], results.questions(key)
        groups[f"{title}, PFLOPs", n] = {
            "Publ.": [_number(row.published_pflops, 3) for row in own],
            "Meas.": [_pflops(row) for row in own],
        }
        groups[f"{title}, seconds", f"{n}, {kind}"] = {
            "Publ.": [_number(row.published_seconds, 1) for row in own],
            kind.capitalize(): [_seconds(row) for row in own],
        }
    titles = results.rows.loc[known]
    return Table(
        label="hw-cost",
        caption=f"FLOPs and {kind} wall-clock time of a test question.{notes.conditions(results)}",
        simulated=results.simulated,
        shown=shown(
            [("rows", row.method_title, row.backbone_title) for row in titles.itertuples()], ("Method", "LLM"), groups
        ),
        notes=tuple(_notes(results, frame, list(timings.values()))),
        provenance=results.provenance,
        frame=frame.reset_index()[_COLUMNS],
    )


def _record(results: Results, key: Key, timing: Timing | None, kind: str) -> dict[str, Any]:
    method, backbone, benchmark = key
    pflops, seconds = (
        results.published.at(_TABLE, method, benchmark, measure) if (method, backbone) in _ROWS else None
        for measure in ("pflops", "seconds")
    )
    record: dict[str, Any] = {
        "benchmark_title": results.benchmarks[benchmark],
        "published_pflops": pflops,
        "published_seconds": seconds,
    }
    if key in results.trainings:
        cells, measured = results.trainings[key], results.measured.loc[key]
        found = flops.per_query(cells)
        first = [cell for cell in cells if cell.run.seed == 0] if len(cells) > 1 else []
        record |= {
            "n": measured["n"],
            "pflops": found.mean,
            "pflops_low": found.low,
            "pflops_high": found.high,
            "pflops_seed0": flops.pflops(first[0]).mean() if first else None,
            "pflops_ratio": found.mean / pflops if pflops else None,
            **measured[IDENTITY],
        }
    if timing:
        engine = timing.engine or {}
        record |= {
            "seconds": timing.per_query,
            "seconds_are": kind,
            "seconds_ratio": timing.per_query / seconds if seconds else None,
            "seconds_total": timing.seconds,
            "timed_seed": timing.seed,
            "timed_calls": timing.calls,
            "timed_calls_failed": timing.failed_calls,
            "timed_tokens": timing.prompt_tokens + timing.completion_tokens,
            "concurrency": timing.concurrency,
            "engine": " ".join(f"{name}={engine[name]:g}" for name in sorted(engine)),
            "machine": timing.machine,
        }
    return record


def _number(value: float, digits: int) -> Entry:
    return Entry("" if pd.isna(value) else f"{value:.{digits}f}")


def _pflops(row: Any) -> Entry:
    if pd.isna(row.pflops):
        return Entry(NOT_RUN)
    alone = "" if pd.isna(row.pflops_seed0) else f"; seed 0: {row.pflops_seed0:.3f}"
    below = f"{row.pflops_low:.3f}–{row.pflops_high:.3f}{alone}"
    return Entry(f"{row.pflops:.3f}", beside=_times(row.pflops_ratio), below=below)


def _seconds(row: Any) -> Entry:
    return Entry(NOT_RUN) if pd.isna(row.seconds) else Entry(f"{row.seconds:.2f}", beside=_times(row.seconds_ratio))


def _times(ratio: float) -> str:
    return "" if pd.isna(ratio) else f"×{ratio:.2f}"


def _notes(results: Results, frame: pd.DataFrame, timings: Sequence[Timing]) -> Iterator[str]:
    several = results.measured["several"].any()
    yield (
        "Publ.: printed in the paper. PFLOPs of a question, in 1e15: two operations for every token, of prompts and "
        "replies, and every parameter of the backbone that served the call, over all calls, the last one included; "
        "attention is left out. Beside a number of this run stands its ratio to the published one, below the mean of "
        f"PFLOPs its 95 % bootstrap interval over questions{' and seeds, and seed 0 alone' if several else ''}."
    )
    if timings:
        yield from _timing_notes(timings)
    if frame[["pflops", "seconds"]].isna().any(axis=None):
        yield f"{NOT_RUN}: not run."
    if frame["published_pflops"].isna().any():
        yield "A blank published column: the paper prints no such value."
    yield from notes.protocol(results)


def _timing_notes(timings: Sequence[Timing]) -> Iterator[str]:
    first = timings[0]
    yield (
        "Seconds of a question: wall-clock time of the whole test set over n, from a job of its own with the method as "
        f"trained with seed {first.seed}: {first.concurrency} questions at a time, one method at a time, nothing "
        "cached, answers not graded. One pass has no interval."
    )
    hosts = "; ".join(sorted({one.machine for one in timings}))
    if first.engine is None:
        yield f"Measured from {hosts}; the time of the servers is part of it, and depends on what they ran on."
    else:
        yield f"{_modelled(first.engine)} Only what happens around the servers took its own time, on {hosts}."
    failed = sum(one.failed_calls for one in timings)
    if failed:
        yield f"In the timed passes {failed} of {sum(one.calls for one in timings)} calls got no reply."


def _modelled(engine: Mapping[str, float]) -> str:
    return (
        "Modelled: no server was timed. By assumption each backbone has a server for "
        f"{engine['concurrent_sequences']:g} sequences at once, and of N billion parameters reads "
        f"{engine['prefill_tokens_per_s_1b']:g} / N tokens of a prompt a second and writes "
        f"{engine['decode_tokens_per_s_1b']:g} / N."
    )
