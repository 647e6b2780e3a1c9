"""Bundle: one zip file with the results of a preset, to replay them or to use their replies as recordings.

``ro-crate-metadata.json`` describes it (:mod:`cli.description`) and lists every file with size and SHA-256. Packing is
deterministic.
"""

from collections.abc import Collection, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import orjson
import yaml

from cli.app import last_run
from cli.description import CONTEXT, manifest
from gmr.enumeration import call_keys
from harness.benchmarks import catalogue, outcome_table
from harness.errors import UserError
from harness.files import ROOT, whole_file, writing
from harness.fingerprint import sources
from harness.llm import call_log
from harness.llm.archive import METADATA, Crate, checksum, is_member
from harness.llm.embeddings import merge_vectors
from harness.llm.recordings import SETTINGS, Recordings
from harness.runner import layout
from harness.runner.config import withheld_benchmarks
from harness.runner.preset import making_with
from harness.runner.results import check_tables, read_finished, read_rows
from harness.runner.run import Run

# Settings that do not affect results.
_NO_SETTINGS = {"in_flight", "budget", "endpoints", "recordings", "servers"}
_ITEMS = ".items.jsonl"
# Files that quote questions. tools.parquet stores each program with the tests of its question.
_WITH_QUESTIONS = (_ITEMS, "tools.parquet")


def pack(name: str, out: Path) -> tuple[Crate, list[str]]:
    """Pack every file that reports and replays of a preset read. Trained routers are left out: replays train again.

    Questions that are not redistributable are left out, and their calls have only key and reply. Returns the entities
    of the manifest by id, and the reasons why cells were left out. Raises UserError if no cell is finished.
    """
    run = last_run(name)
    if run.splits == "resampled":
        raise UserError(f"preset {name} is made from recordings alone", "share these, and the preset's file")
    settings = {key: value for key, value in run.settings.items() if key not in _NO_SETTINGS}
    withheld, results = withheld_benchmarks(), layout.RESULTS / name
    further, (made, unfinished) = further_files(run, withheld), _finished(run)
    folders = {*made, results, results / "data"}
    files = [path for path in sorted(results.rglob("*")) if path.parent in folders and is_member(str(path))]
    lacking = sorted(withheld & {*map(_benchmark, files)})
    crate = manifest(run, made, further, lacking)
    with writing(out), TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as folder:
        defaults, vectors = Path(folder) / "config.yaml", Path(folder) / layout.VECTORS
        defaults.write_bytes(yaml.safe_dump({"preset": name, **settings}, encoding="utf-8"))
        members = {str(SETTINGS): defaults, **further}
        for number, path in enumerate(files):
            is_withheld = _benchmark(path) in withheld
            if path.name == layout.CALL_LOG:
                members[str(path)] = Path(folder) / str(number)
                call_log.copy(path, members[str(path)], prompts=not is_withheld, more=_recorded_calls(run, path))
            elif path.name != layout.VECTORS and not (is_withheld and path.name.endswith(_WITH_QUESTIONS)):
                members[str(path)] = path
        embedded = sorted(results.glob(f"[ct]*/**/{layout.VECTORS}"))
        embedded += [path for recording in run.recorded for path in sorted(recording.results.rglob(layout.VECTORS))]
        if merge_vectors(embedded, vectors):
            members[str(results / layout.VECTORS)] = vectors
        with whole_file(out) as file, ZipFile(file, "w") as archive:
            for member, path in members.items():
                content = path.read_bytes()
                crate[member] = {"@id": member, "@type": "File", **checksum(content)}
                if member.endswith(_ITEMS) and (terms := f"#questions/{_benchmark(path)}") in crate:
                    crate[member]["license"] = {"@id": terms}
                archive.writestr(ZipInfo(member), content, ZIP_DEFLATED, 9)
            crate["./"]["hasPart"] = [{"@id": member} for member in members]
            document = {"@context": CONTEXT, "@graph": [*crate.values()]}
            archive.writestr(ZipInfo(METADATA), orjson.dumps(document, option=orjson.OPT_INDENT_2), ZIP_DEFLATED, 9)
    return crate, unfinished


def _finished(run: Run) -> tuple[dict[Path, dict[str, Any]], list[str]]:
    """``run.json`` of finished cells and enumerations by folder, and why other cells are left out."""
    finished, unfinished = dict[Path, dict[str, Any]](), list[str]()
    for cell in layout.cells(run.name):
        folder = layout.cell(run.name, cell)
        try:
            stated = read_finished(run.cell(cell))
            check_tables(folder, stated["tables"])
        except UserError as error:
            unfinished.append(str(error))
        else:
            finished[folder] = stated
    for path in sorted((layout.RESULTS / run.name).glob("tree/*/run.json")):  # An unfinished enumeration has none.
        finished[path.parent] = orjson.loads(path.read_bytes())
    if not finished:
        cure = [*unfinished, making_with(run, layout.report(run.name, "index.html"))][0]
        raise UserError(f"preset {run.name} has no finished cell here", cure)
    return finished, unfinished


def _recorded_calls(run: Run, log: Path) -> Iterator[tuple[Any, ...]]:
    """Iterate over the calls of a cell or an enumeration that recordings answered. Its own log does not have them."""
    if not run.recordings:
        return
    stated = orjson.loads(log.with_name("run.json").read_bytes())
    cell = layout.Cell(**{name: stated[name] for name in layout.Cell.__slots__})
    paths = [
        path for name in ("calls", "training_calls", "nodes") if (path := log.with_name(f"{name}.parquet")).exists()
    ]
    tables = {path: call_keys(path) if path.stem == "nodes" else ["key"] for path in paths}
    with call_log.CallLogReader(log) as own, Recordings(run.recorded, cell) as recordings:
        keys = {key for table, columns in tables.items() for row in read_rows(table, columns) for key in row.values()}
        keys.discard(None)
        yield from (recordings.row(key) for key in sorted(keys) if key in recordings and own.get(key) is None)


def _benchmark(path: Path) -> str:
    """Benchmark to which a file of a cell, of an enumeration or of questions belongs."""
    match path.parts[2:]:
        case ("cells", _, benchmark, *_) | ("tree", benchmark, *_):
            return benchmark
    return path.name.removesuffix(_ITEMS)


def further_files(run: Run, withheld: Collection[str]) -> dict[str, Path]:
    """Files of user-supplied methods and benchmarks (preset key ``extra``), without questions of ``withheld`` keys.

    Raises UserError if a file is not below the current folder.
    """
    if run.extra is None:
        return {}
    here = Path.cwd()
    if Path(run.extra).resolve().parent in (here, ROOT):
        cure = "move your methods to a folder of their own, and run again"
        raise UserError(f"{run.extra} is in {here} itself, whose whole content would be packed", cure)
    entries = map(catalogue.entry, filter(catalogue.is_further, catalogue.keys()))
    # A table of outcomes is a recording.
    own = {
        Path(each.questions).resolve(): each.key
        for each in entries
        if each.questions and each.module != outcome_table.__name__
    }
    files = [
        file for file in sorted({*sources(Path(run.extra).resolve().parent), *own}) if own.get(file) not in withheld
    ]
    if outside := [file for file in files if here not in file.parents]:
        raise UserError(f"{outside[0]} is outside of {here} and cannot be packed; move it, and run again")
    return {str(file.relative_to(here)): file for file in files}
