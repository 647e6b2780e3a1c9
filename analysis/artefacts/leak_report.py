"""Training questions found again in the test: how many of each benchmark, and in the CSV which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from analysis.provenance import short
from analysis.source import Source
from analysis.tables import Entry, Group, Row, Table
from harness.benchmarks.leaks import NEAR, NGRAM_LENGTH, Leak, LeakReport, leak_report
from harness.benchmarks.prepare import Prepared, read
from harness.runner import layout
from harness.runner.config import Preset

_COUNTED = (
    "Counted are test questions that a training question repeats: word for word up to case and white space (exact), or "
    f"with a tf-idf cosine of at least {NEAR} over runs of {NGRAM_LENGTH} characters (near); either, in percent."
)
_NOTES = (
    _COUNTED,
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
    prepared = [_read(preset, key) for key in preset.benchmarks]
    reports = [leak_report(one) for one in prepared]
    kinds = ", ".join(sorted({one.data for one in prepared}))
    return Table(
        label="leak-report",
        caption=f"Training questions found again in the test ({kinds} data, splits {preset.splits}).",
        simulated=preset.simulated,
        heads=("Benchmark", "Data"),
        groups=(
            Group("Questions", "of the split", ("Training", "Test")),
            Group("Test questions repeated", "from the training", ("Exact", "Near", "Either, %")),
        ),
        rows=tuple(map(_row, reports)),
        notes=_NOTES,
        provenance=_provenance(preset, prepared),
        records=tuple(one for pair in zip(prepared, reports, strict=True) for one in _records(preset, *pair)),
    )


def _read(preset: Preset, benchmark: str) -> Prepared:
    return read(layout.manifest(preset.name, benchmark), layout.items(preset.name, benchmark))


def _row(report: LeakReport) -> Row:
    numbers = (report.n_train, report.n_test, report.affected("exact"), report.affected("near"))
    share = 100 * len({leak.test for leak in report.leaks}) / report.n_test
    return Row(
        "benchmarks", (report.title, report.data), (*(Entry(str(one)) for one in numbers), Entry(f"{share:.1f}"))
    )


def _provenance(preset: Preset, prepared: list[Prepared]) -> tuple[tuple[str, str], ...]:
    return (
        ("preset", preset.name),
        ("data", "; ".join(f"{one.benchmark} {short(one.checksum)}" for one in prepared)),
        ("split", "; ".join(f"{one.benchmark} {short(one.split_checksum)}" for one in prepared)),
        ("source", "; ".join(sorted({f"{one.source}, splits {one.splits}" for one in prepared}))),
    )


def _records(preset: Preset, prepared: Prepared, report: LeakReport) -> Iterator[Mapping[str, str]]:
    """One a pair; of a benchmark without any, one that says so."""
    for leak in report.leaks or (Leak("", "", "", 0.0),):
        yield {
            "benchmark": prepared.benchmark,
            "benchmark_title": report.title,
            "train": leak.train,
            "test": leak.test,
            "kind": leak.kind or "none",
            "similarity": f"{leak.similarity:.4f}" if leak.kind else "",
            "n_train": str(report.n_train),
            "n_test": str(report.n_test),
            "exact": str(report.affected("exact")),
            "near": str(report.affected("near")),
            "preset": preset.name,
            "source": f"{prepared.source}, splits {prepared.splits}",
            "data_checksum": prepared.checksum,
            "split_checksum": prepared.split_checksum,
        }
