"""What a run is made of, what it spent, and what identifies it: the facts of the index that stand in no artefact."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from analysis.provenance import served, short, table_run_id
from analysis.published import load
from analysis.site.source import Finished
from harness.files import ROOT
from harness.runner import config
from harness.runner.ledger import ledger
from harness.yaml_files import parse

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]
_EMBEDDED = "embedded"


def facts(finished: Finished) -> list[tuple[str, str]]:
    """The run in a few lines, from its questions to its cells."""
    preset, runs = finished.preset, [cell.run for cell in finished.cells]
    there, all_ = len(finished.cells), len(finished.cells) + len(finished.missing)
    questions = {run.benchmark: f"{run.benchmark_title} ({run.data.n_test})" for run in runs}
    return [
        ("preset", f"{preset.name}: {preset.description}"),
        ("test questions", ", ".join(questions.values())),
        ("data", _listed(f"{run.data.source}, splits {run.data.splits}" for run in runs)),
        ("methods", ", ".join(dict.fromkeys(run.method_title for run in runs))),
        ("backbones", _listed(key for run in runs for key in run.backbones)),
        ("training seeds", ", ".join(str(seed) for seed in sorted({run.seed for run in runs}))),
        ("conditions", "; ".join(dict.fromkeys(note for run in runs for note in run.notes)) or "none"),
        ("cells finished", f"{there} of {all_}"),
        ("run", short(table_run_id(finished.cells))),
    ]


def spent(finished: Finished) -> Table:
    """Calls, tokens and cost by method, over the finished cells."""
    frame = ledger([cell.folder for cell in finished.cells])
    titles = {key: entry.title for key, entry in config.methods().items()}
    rows = [
        (
            _title(str(key), titles),
            *(f"{int(row[name]):,}" for name in frame.columns.drop("cost")),
            f"{row['cost']:.4f}",
        )
        for key, row in frame.iterrows()
    ]
    return (("Method", *(str(name).replace("_", " ") for name in frame.columns)), rows)


def cells(finished: Finished) -> list[dict[str, str]]:
    """What identifies every finished cell."""
    titles = load().backbones
    return [
        {
            "cell": run.cell,
            "method": run.method_title,
            "benchmark": run.benchmark_title,
            "backbone": titles.get(run.backbone, run.backbone),
            "seed": str(run.seed),
            "n": str(run.data.n_test),
            "run_id": short(run.run_id),
            "config": short(run.config_hash),
            "code": short(run.code),
            "data": short(run.data.checksum),
            "rules": run.rule_version,
            "sandbox": run.sandbox,
        }
        for run in (cell.run for cell in finished.cells)
    ]


def backbones(finished: Finished) -> Table:
    """Who answered, under which licence the original weights are published, and who made them."""
    known = _licences()["backbones"]
    found = {(key, served(one)) for cell in finished.cells for key, one in cell.run.backbones.items()}
    rows: list[tuple[str, ...]] = [(key, who, *_terms(known.get(key))) for key, who in sorted(found)]
    return (("Backbone", "Model, revision, server", "Licence of the weights", "Attribution"), rows)


def questions(finished: Finished) -> Table:
    """The data, and under which licence they are published."""
    known = _licences()
    rows: list[tuple[str, ...]] = []
    for run in {cell.run.benchmark: cell.run for cell in finished.cells}.values():
        terms = known["suite"] if run.data.source == _EMBEDDED else known["questions"].get(run.benchmark)
        data = (run.data.source, run.data.splits, short(run.data.checksum), short(run.data.split_checksum))
        rows.append((run.benchmark_title, str(run.data.n_test), *data, *_terms(terms)))
    heads = ("Benchmark", "Test questions", "Source", "Splits", "SHA-256", "SHA-256 of the splits", "Licence")
    return ((*heads, "Attribution"), rows)


def _licences() -> dict[str, Any]:
    return dict(parse(ROOT / "config" / "licences.yaml"))


def _terms(entry: dict[str, str] | None) -> tuple[str, str]:
    return (entry["licence"], entry["attribution"]) if entry else ("", "")


def _title(key: str, titles: dict[str, str]) -> str:
    method, _, phase = key.partition(" ")
    return " ".join(filter(None, (titles.get(method, method), phase)))


def _listed(values: Iterable[str]) -> str:
    return ", ".join(sorted(set(values)))
