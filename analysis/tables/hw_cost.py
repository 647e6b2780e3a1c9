"""FLOPs and seconds of a question (paper, Cost Calculation for Open-Weight Backbones; D-REPORT-3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from analysis import columns, notes
from analysis.columns import format_series, interval_of, side_by_side
from analysis.exhibit import NOT_RUN, Entry
from analysis.frames import IDENTITY, KEY, Results, mean_with_interval
from analysis.source import Source
from analysis.table import Table
from analysis.timings import Timing, pflops, read_timings

_TIMED = [
    *("seconds", "seconds_are", "seconds_total", "timed_seed", "timed_calls", "timed_calls_failed", "timed_tokens"),
    *("concurrency", "engine", "machine"),
]
_COLUMNS = [
    *(*KEY, "benchmark_title", "published_pflops", "published_seconds", "n", "pflops", "pflops_low", "pflops_high"),
    *("pflops_seed0", "pflops_ratio", *IDENTITY, *_TIMED[:2], "seconds_ratio", *_TIMED[2:]),
]


def build(source: Source) -> Table:
    """Return the published rows, then others among the cells; two groups of columns a benchmark."""
    results = source.results()
    timings = read_timings(source.timings, results.cells)
    # Without any timing, as they would be.
    is_modelled = results.simulated and all(timing.engine is not None for timing in timings.values())
    kind = "modelled" if is_modelled else "measured"
    printed = results.printed("hw_cost")
    known = dict.fromkeys([*printed.index.droplevel("benchmark"), *results.ran.index])
    rows = [row for row in known if row in results.rows_to_show.index]
    order = dict.fromkeys([*printed.index.unique("benchmark"), *results.benchmarks])
    titles = {key: results.benchmarks[key] for key in order if key in results.benchmarks}
    index = pd.MultiIndex.from_tuples([(*row, key) for row in rows for key in titles], names=KEY)
    timed = pd.DataFrame([_timed(timings[key], kind) if key in timings else {} for key in index], index, _TIMED)
    flops = results.per_row(lambda cells: mean_with_interval(cells, "pflops", pflops))
    frame = pd.DataFrame({"benchmark_title": [titles[key] for *_, key in index]}, index).join(
        [printed.add_prefix("published_"), results.measured[["n", *IDENTITY]], flops, timed.astype({"seconds": float})]
    )
    for name in ("pflops", "seconds"):
        frame[f"{name}_ratio"] = results.compared(frame[name] / frame[f"published_{name}"])
    groups: dict[tuple[str, str], dict[str, list[Entry]]] = {}
    for key, title in titles.items():
        places, n = frame.xs(key, level="benchmark"), results.questions(key)
        ratios = [format_series(places[name], "×{:.2f}") for name in ("pflops_ratio", "seconds_ratio")]
        below = interval_of(places, "pflops", "{:.3f}")
        seconds = side_by_side(places, "seconds", "{:.1f}", "{:.2f}", beside=ratios[1])
        groups[f"{title}, PFLOPs", n] = side_by_side(
            places, "pflops", "{:.3f}", "{:.3f}", beside=ratios[0], below=below
        )
        groups[f"{title}, seconds", f"{n}, {kind}"] = {"Publ.": seconds["Publ."], kind.capitalize(): seconds["Meas."]}
    return columns.table(
        results,
        label="hw-cost",
        caption=f"FLOPs and {kind} wall-clock time of a test question.",
        rows=[("rows", row.method_title, row.backbone_title) for row in results.rows.loc[rows].itertuples()],
        groups=groups,
        legend=_legend(results, frame, list(timings.values())),
        frame=frame.reset_index()[_COLUMNS],
    )


def _timed(timing: Timing, kind: str) -> dict[str, Any]:
    tokens, engine = timing.prompt_tokens + timing.completion_tokens, timing.engine or {}
    values = (timing.per_query, kind, timing.seconds, timing.seed, timing.calls, timing.failed_calls, tokens)
    speed = " ".join(f"{name}={engine[name]:g}" for name in sorted(engine))
    return dict(zip(_TIMED, (*values, timing.concurrency, speed, timing.machine), strict=True))


def _legend(results: Results, frame: pd.DataFrame, timings: Sequence[Timing]) -> Iterator[str]:
    several = results.measured["several"].any()
    ratio = "" if results.simulated else "Next to a number of this run stands its ratio to the published one. "
    yield (
        "Publ.: from the paper. PFLOPs of a question, in 1e15: two operations for every token, of prompts and "
        "replies, and every parameter of the backbone that served the call, over all calls, the last one included; "
        f"attention is left out. {ratio}Below the mean of PFLOPs its 95 % interval over questions"
        f"{' and seeds, and seed 0 alone' if several else ''}."
    )
    if timings:
        first, hosts = timings[0], "; ".join(sorted({timing.machine for timing in timings}))
        yield (
            "Seconds of a question: wall-clock time of the whole test set over n, from a job of its own with the "
            f"method as trained with seed {first.seed}: {first.concurrency} questions at a time, "
            "nothing cached, answers not graded. One pass has no interval."
        )
        if first.engine is None:
            yield (
                f"Measured one method at a time from {hosts}; the time of the servers is part of it, and depends on "
                "what they ran on."
            )
        else:
            yield (
                "Modelled: nothing was timed. By assumption a backbone of N billion parameters reads "
                f"{first.engine['prefill_tokens_per_s_1b']:g} / N tokens of a prompt a second and writes "
                f"{first.engine['decode_tokens_per_s_1b']:g} / N, and the calls of a question follow one another."
            )
        if failed := sum(timing.failed_calls for timing in timings):
            yield f"In the timed passes {failed} of {sum(timing.calls for timing in timings)} calls got no reply."
    if frame[["pflops", "seconds"]].isna().any(axis=None):
        yield f"{NOT_RUN}: not run."
    if frame["published_pflops"].isna().any():
        yield notes.BLANK
    yield from notes.protocol(results)
