"""Training questions found again in the test: how many of each benchmark, and in the CSV which."""

from __future__ import annotations

import math

import pandas as pd

from analysis.columns import entries, labels
from analysis.finished_cells import short
from analysis.source import Source
from analysis.table import Table, lay_out
from harness.benchmarks.leaks import Leak, leaks
from harness.benchmarks.prepare import Prepared, read
from harness.runner import layout


def build(source: Source) -> Table:
    """Return a row a benchmark of a preset; raises UserError where prepared questions are missing or damaged."""
    preset = source.run
    prepared = [read(layout.manifest(preset.name, key), layout.items(preset.name, key)) for key in preset.benchmarks]
    frame = pd.concat([_pairs(split, preset.name) for split in prepared])
    rows = frame.groupby("benchmark", sort=False).first()
    repeated = frame[frame["test"] != ""].groupby("benchmark")["test"].nunique().reindex(rows.index, fill_value=0)
    groups = {
        ("Questions", "of the split"): {
            title: entries(rows[name], str) for title, name in (("Training", "n_train"), ("Test", "n_test"))
        },
        ("Test questions repeated", "from the training"): {
            **{title: entries(rows[title.lower()], str) for title in ("Exact", "Near")},
            "Either, %": entries(100 * repeated / rows["n_test"], "{:.1f}"),
        },
    }
    names = rows.assign(section="benchmarks", data=[split.data for split in prepared])
    return Table(
        label="leak-report",
        caption=source.caption,
        simulated=preset.simulated,
        shown=lay_out(labels(names, "section", "benchmark_title", "data"), ("Benchmark", "Data"), groups),
        notes=source.legend,
        provenance={
            "preset": preset.name,
            "data": "; ".join(f"{split.benchmark} {short(split.checksum)}" for split in prepared),
            "split": "; ".join(f"{split.benchmark} {short(split.split_checksum)}" for split in prepared),
            "source": "; ".join(sorted(frame["source"].unique())),
        },
        frame=frame,
    )


def _pairs(prepared: Prepared, preset: str) -> pd.DataFrame:
    leaked = leaks(prepared)
    pairs = pd.DataFrame(leaked or [Leak("", "", "none", math.nan)])
    pairs.insert(0, "benchmark", prepared.benchmark)
    pairs.insert(1, "benchmark_title", prepared.title)
    return pairs.assign(
        n_train=len(prepared.train),
        n_test=len(prepared.test),
        exact=len({leak.test for leak in leaked if leak.kind == "exact"}),
        near=len({leak.test for leak in leaked if leak.kind == "near"}),
        preset=preset,
        source=f"{prepared.source}, splits {prepared.splits}",
        data_checksum=prepared.checksum,
        split_checksum=prepared.split_checksum,
    )
