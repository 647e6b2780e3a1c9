"""Compute and time of a question: FLOPs from the tokens of its calls, seconds from timing jobs.

Paper, Cost Calculation for Open-Weight Backbones; D-REPORT-3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from analysis import columns, notes
from analysis.columns import entries, interval, say
from analysis.flops import pflops
from analysis.frames import IDENTITY, KEY, Results
from analysis.ratios import mean
from analysis.results import Cell
from analysis.source import Source
from analysis.table import NOT_RUN, Entry, Table
from analysis.timings import Timing, read_timings

_TABLE = "hw_cost"
# The rows the paper prints, in its order.
_ROWS = (("gmr", "pool"), ("masrouter", "pool"), ("puppeteer", "qwen-2.5-32B"))
_TIMED = [
    *("seconds", "seconds_are", "seconds_total", "timed_seed", "timed_calls", "timed_calls_failed", "timed_tokens"),
    *("concurrency", "engine", "machine"),
]
_COLUMNS = [
    *(*KEY, "benchmark_title", "published_pflops", "published_seconds", "n", "pflops", "pflops_low", "pflops_high"),
    *("pflops_seed0", "pflops_ratio", *IDENTITY, *_TIMED[:2], "seconds_ratio", *_TIMED[2:]),
]


def build(source: Source) -> Table:
    """The published rows, then others among the cells; two groups of columns a benchmark."""
    results = source.results()
    timings = read_timings(source.timings, results.cells)
    kind = "modelled" if results.simulated else "measured"
    known = [*_ROWS, *(row for row in results.ran.index if row not in _ROWS)]
    printed = results.published.further[_TABLE][_ROWS[0][0]]
    keys = [key for key in dict.fromkeys([*printed, *results.benchmarks]) if key in results.benchmarks]
    frame = _frame(results, [(*row, key) for row in known for key in keys])
    found = {key: _timed(one, kind) for key, one in timings.items()}
    frame = frame.join(pd.DataFrame([found.get(key, {}) for key in frame.index], frame.index, _TIMED))
    frame["pflops_ratio"] = frame["pflops"] / frame["published_pflops"]
    frame["seconds_ratio"] = frame["seconds"].astype(float) / frame["published_seconds"]
    groups: dict[tuple[str, str], dict[str, list[Entry]]] = {}
    for key in keys:
        own, title, n = frame.xs(key, level="benchmark"), results.benchmarks[key], results.questions(key)
        groups |= {(f"{title}, PFLOPs", n): _pflops(own), (f"{title}, seconds", f"{n}, {kind}"): _seconds(own, kind)}
    return columns.table(
        results,
        label="hw-cost",
        caption=f"FLOPs and {kind} wall-clock time of a test question.",
        rows=[("rows", row.method_title, row.backbone_title) for row in results.rows.loc[known].itertuples()],
        heads=("Method", "LLM"),
        groups=groups,
        legend=_legend(results, frame, list(timings.values())),
        frame=frame.reset_index()[_COLUMNS],
    )


def _frame(results: Results, keys: Sequence[tuple[str, str, str]]) -> pd.DataFrame:
    """Every place, run or not, with the published numbers and PFLOPs."""
    frame = pd.DataFrame(index=pd.MultiIndex.from_tuples(keys, names=KEY))
    frame["benchmark_title"] = [results.benchmarks[key] for *_, key in keys]
    for name in ("pflops", "seconds"):
        values = [
            results.published.at(_TABLE, method, key, name) if (method, backbone) in _ROWS else None
            for method, backbone, key in keys
        ]
        frame[f"published_{name}"] = pd.Series(values, frame.index, dtype=float)
    return frame.join(results.measured[["n", *IDENTITY]]).join(results.each(_flops))


def _flops(cells: Sequence[Cell]) -> dict[str, float]:
    seeds = {cell.run.seed: pflops(cell) for cell in cells}
    found = mean(list(seeds.values()))
    alone = seeds[0].mean() if len(seeds) > 1 and 0 in seeds else float("nan")
    return {"pflops": found.mean, "pflops_low": found.low, "pflops_high": found.high, "pflops_seed0": alone}


def _timed(timing: Timing, kind: str) -> dict[str, Any]:
    engine = timing.engine or {}
    return {
        "seconds": timing.per_query,
        "seconds_are": kind,
        "seconds_total": timing.seconds,
        "timed_seed": timing.seed,
        "timed_calls": timing.calls,
        "timed_calls_failed": timing.failed_calls,
        "timed_tokens": timing.prompt_tokens + timing.completion_tokens,
        "concurrency": timing.concurrency,
        "engine": " ".join(f"{name}={engine[name]:g}" for name in sorted(engine)),
        "machine": timing.machine,
    }


def _pflops(own: pd.DataFrame) -> dict[str, list[Entry]]:
    below = interval(own["pflops_low"], own["pflops_high"], ".3f") + say(own["pflops_seed0"], "; seed 0: {:.3f}")
    beside = say(own["pflops_ratio"], "×{:.2f}")
    return {
        "Publ.": entries(say(own["published_pflops"], "{:.3f}")),
        "Meas.": entries(say(own["pflops"], "{:.3f}"), NOT_RUN, beside=beside, below=below),
    }


def _seconds(own: pd.DataFrame, kind: str) -> dict[str, list[Entry]]:
    beside = say(own["seconds_ratio"], "×{:.2f}")
    return {
        "Publ.": entries(say(own["published_seconds"], "{:.1f}")),
        kind.capitalize(): entries(say(own["seconds"], "{:.2f}"), NOT_RUN, beside=beside),
    }


def _legend(results: Results, frame: pd.DataFrame, timings: Sequence[Timing]) -> Iterator[str]:
    several = results.measured["several"].any()
    yield (
        "Publ.: from the paper. PFLOPs of a question, in 1e15: two operations for every token, of prompts and "
        "replies, and every parameter of the backbone that served the call, over all calls, the last one included; "
        "attention is left out. Next to a number of this run stands its ratio to the published one, below the mean of "
        f"PFLOPs its 95 % bootstrap interval over questions{' and seeds, and seed 0 alone' if several else ''}."
    )
    if timings:
        yield from _timing_legend(timings)
    if frame[["pflops", "seconds"]].isna().any(axis=None):
        yield f"{NOT_RUN}: not run."
    if frame["published_pflops"].isna().any():
        yield notes.BLANK
    yield from notes.protocol(results)


def _timing_legend(timings: Sequence[Timing]) -> Iterator[str]:
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
