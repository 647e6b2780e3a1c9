"""Training questions found again in the test: how many of each benchmark, and in the CSV which."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from analysis.results import short
from analysis.source import Source
from analysis.table import Entry, Table, shown
from harness.benchmarks.leaks import NEAR, NGRAM_LENGTH, Leak, LeakReport, leak_report
from harness.benchmarks.prepare import Prepared, read
from harness.runner import layout
from harness.runner.config import Preset

_NOTES = (
    (
        "Counted are test questions that a training question repeats: word for word up to case and white space "
        f"(exact), or with a tf-idf cosine of at least {NEAR} over runs of {NGRAM_LENGTH} characters (near); either, "
        "in percent."
    ),
    "The CSV has every pair with its similarity. Compared are all questions of a split, whatever limit a run has.",
    "All questions are counted and none is sampled, so there is no interval; the paper prints nothing of the kind.",
    "No backbone takes part: simulated or not, the numbers are the same.",
)


def build(source: Source) -> Table:
    """Build the table from the prepared questions of a preset, one row a benchmark.

    Raises:
        UserError: There is no preset, or questions are missing or damaged.
    """
    preset = source.run
    prepared = [read(layout.manifest(preset.name, key), layout.items(preset.name, key)) for key in preset.benchmarks]
    reports = [leak_report(one) for one in prepared]
    kinds = ", ".join(sorted({one.data for one in prepared}))
    either = [100 * len({leak.test for leak in one.leaks}) / one.n_test for one in reports]
    groups = {
        ("Questions", "of the split"): {
            "Training": [Entry(str(one.n_train)) for one in reports],
            "Test": [Entry(str(one.n_test)) for one in reports],
        },
        ("Test questions repeated", "from the training"): {
            "Exact": [Entry(str(one.affected("exact"))) for one in reports],
            "Near": [Entry(str(one.affected("near"))) for one in reports],
            "Either, %": [Entry(f"{share:.1f}") for share in either],
        },
    }
    return Table(
        label="leak-report",
        caption=f"Training questions found again in the test ({kinds} data, splits {preset.splits}).",
        simulated=preset.simulated,
        shown=shown([("benchmarks", one.title, one.data) for one in reports], ("Benchmark", "Data"), groups),
        notes=_NOTES,
        provenance={
            "preset": preset.name,
            "data": "; ".join(f"{one.benchmark} {short(one.checksum)}" for one in prepared),
            "split": "; ".join(f"{one.benchmark} {short(one.split_checksum)}" for one in prepared),
            "source": "; ".join(sorted({f"{one.source}, splits {one.splits}" for one in prepared})),
        },
        frame=pd.DataFrame(
            [one for pair in zip(prepared, reports, strict=True) for one in _records(preset, *pair)], dtype=object
        ),
    )


def _records(preset: Preset, prepared: Prepared, report: LeakReport) -> Iterator[dict[str, Any]]:
    """One a pair; of a benchmark without any, one that says so."""
    for leak in report.leaks or (Leak("", "", "", 0.0),):
        yield {
            "benchmark": prepared.benchmark,
            "benchmark_title": report.title,
            "train": leak.train,
            "test": leak.test,
            "kind": leak.kind or "none",
            "similarity": round(leak.similarity, 4) if leak.kind else None,
            "n_train": report.n_train,
            "n_test": report.n_test,
            "exact": report.affected("exact"),
            "near": report.affected("near"),
            "preset": preset.name,
            "source": f"{prepared.source}, splits {prepared.splits}",
            "data_checksum": prepared.checksum,
            "split_checksum": prepared.split_checksum,
        }
