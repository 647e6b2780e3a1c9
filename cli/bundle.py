"""Bundle: one zip file with the results of a preset, to replay them or to use their replies as recordings.

Its manifest ``ro-crate-metadata.json`` (RO-Crate 1.2) describes it and lists every file with size and SHA-256. Packing
is deterministic. Beside it lie its tables, with a description in Croissant 1.1 and the fields for responsible AI.
"""

import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import orjson
import pyarrow.parquet as pq
import yaml

from analysis.beyond import outcomes
from cli.app import last_run
from gmr.enumeration import call_keys
from harness.benchmarks import catalogue, outcome_table
from harness.errors import UserError
from harness.files import ROOT, read_yaml, sha256, temporary_prefix, whole_file, write_atomically, writing
from harness.fingerprint import sources
from harness.llm import call_log
from harness.llm.archive import METADATA, Crate, checksum, is_member
from harness.llm.backbones import ABOUT
from harness.llm.encoder import merge_vectors
from harness.llm.recordings import SETTINGS, Recording, Recordings
from harness.runner import layout
from harness.runner.config import LICENCES, withheld_benchmarks
from harness.runner.preset import making_with
from harness.runner.results import check_tables, read_finished, read_rows
from harness.runner.run import Run

# Settings that do not affect results.
_NO_SETTINGS = {"in_flight", "budget", "endpoints", "recordings", "servers"}
_ITEMS = ".items.jsonl"
# Files that quote questions. tools.parquet stores each program with the tests of its question.
_WITH_QUESTIONS = (_ITEMS, "tools.parquet")
# Files that affect results, as git pathspecs.
_CODE = ("harness", "baselines", "gmr", "analysis", ":(glob)config/*.yaml")
_NO_CODE = (":!config/config.yaml", ":!config/endpoints*", ":!config/licences.yaml")
_CRATE = "https://w3id.org/ro/crate/1.2"
_TABLES = {
    "outcomes": "One row for each graded answer to a question. Attempts of trainings are not included.",
    "nodes": "One row for each path of an enumeration: question, role, backbone, and whether the step is stored.",
}
_TYPES = {"string": "sc:Text", "bool": "sc:Boolean", "int64": "sc:Integer", "double": "sc:Float"}
# What all descriptions share: the context that readers of Croissant expect, and what holds for the replies of any run.
_SHARED = Path(__file__).with_name("croissant.json")


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
    crate = _manifest(run, made, further, lacking)
    with writing(out), TemporaryDirectory(prefix=temporary_prefix("bundle")) as folder:
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
        if not run.served:  # Else the files of the cells have what they used of their recordings.
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
            document = {"@context": f"{_CRATE}/context", "@graph": [*crate.values()]}
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


def _manifest(run: Run, made: Mapping[Path, dict[str, Any]], further: Iterable[str], lacking: list[str]) -> Crate:
    """Describe finished cells, the code with its maker's files, and licences. ``lacking`` are withheld benchmarks."""
    attempts = [attempt for folder in made for attempt in call_log.read_attempts(folder / call_log.ATTEMPT_LOG)]
    end = datetime.fromtimestamp(max((each["started"] + each["latency_s"] for each in attempts), default=0), UTC)
    cells = sum(layout.cell_of(folder) is not None for folder in made)
    description = (
        f"{'SIMULATED BACKBONES. ' if any(each['simulated'] for each in made.values()) else ''}"
        f"Preset {run.name}, {cells} finished cells{', without questions of ' if lacking else ''}{', '.join(lacking)}, "
        f"by {code_version()}{'; programs of its maker: ' if further else ''}{', '.join(further)}. {run.description}"
    )
    whole = {"name": f"Recorded run of preset {run.name}", "description": description, "license": {"@id": "#suite"}}
    entities: Crate = {
        METADATA: {"@type": "CreativeWork", "conformsTo": {"@id": _CRATE}, "about": {"@id": "./"}},
        "./": {"@type": "Dataset", **whole, "datePublished": f"{end:%F}"},
        **{f"#{name}": {"@type": "CreativeWork", **terms} for name, terms in licences(run).items()},
    }
    return {id_: {"@id": id_, **entity} for id_, entity in entities.items()}


def code_version() -> str:
    """Describe the commit of the code that determines results."""
    command = ["git", "-C", str(ROOT), "status", "--porcelain=v2", "--branch", "--", *_CODE, *_NO_CODE]
    try:
        commit, *others = subprocess.check_output(command, stderr=subprocess.DEVNULL, text=True).splitlines()  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return "code of no known commit"
    changes = [line for line in others if not line.startswith("#")]
    return f"commit {commit.split()[-1]}{' with changes that are in no commit' if changes else ''}"


def licences(run: Run) -> dict[str, dict[str, str]]:
    """Licence and attribution of everything in a bundle, by name."""
    known = read_yaml(LICENCES)
    abouts = {key: run.declared[key].model_dump(include=set(ABOUT)) for key in run.pool}
    known["backbones"] |= {key: about for key, about in abouts.items() if all(about.values())}
    used = [("questions", key) for key in run.benchmarks if run.data == "real"]
    if run.weights in known["weights"]:
        used.append(("weights", str(run.weights)))
    elif not run.simulated:
        used += [("backbones", key) for key in run.backbones]
    terms = {"suite": known["suite"], "encoder": known["encoder"]}
    for kind, key in used:
        if key not in known[kind]:
            where = f"`pool` of preset {run.name}" if key in run.pool else "config/licences.yaml"
            raise UserError(f"{where} has no licence and attribution of {key}; add both")
        terms[f"{kind}/{key}"] = known[kind][key]
    return {name: {"name": entry["attribution"], "license": entry["licence"]} for name, entry in terms.items()}


def describe(bundle: Path) -> list[Path]:
    """Write the tables of a bundle and their description beside it. Return their paths."""
    recording, folder = Recording(bundle), bundle.parent
    trees = [path.parent for path in sorted(recording.results.glob("tree/*/run.json"))]
    writers = {"outcomes": (outcomes.write, recording.cells), "nodes": (outcomes.write_nodes, trees)}
    used = {folder / f"{name}.parquet": writer for name, writer in writers.items() if writer[1]}
    foreign = [path for path in used if path.exists() and not (folder / "croissant.json").exists()]
    if foreign:
        raise UserError(f"{foreign[0]} is not from a bundle and is kept; pack into a folder of its own")
    for path, (write, folders) in used.items():
        write(path, folders)
    whole, tables = recording.crate["./"], [*used]
    works = [each for each in recording.crate.values() if "license" in each and each["@type"] == "CreativeWork"]
    terms = "; ".join(f"{work['name']} ({work['license']})" for work in works)
    citation = read_yaml(ROOT / "CITATION.cff")
    document = {
        **orjson.loads(_SHARED.read_bytes()),
        **{key: whole[key] for key in ("name", "datePublished")},
        "description": f"{whole['description']} Terms: {terms}.",
        "license": sorted({work["license"] for work in works}),
        "creator": {"@type": "sc:Organization", "name": citation["authors"][0]["name"]},
        "citeAs": f"{citation['authors'][0]['name']}. {citation['title']}. Version {citation['version']}.",
        "version": citation["version"],
        "prov:wasDerivedFrom": [{"@type": "prov:Entity", "prov:label": work["name"]} for work in works],
        "prov:wasGeneratedBy": {
            "@type": "prov:Activity",
            "prov:label": f"{whole['name']}: models answered the questions, and each reply was graded",
            "prov:endedAtTime": whole["datePublished"],
        },
        "distribution": [_file(path) for path in (bundle, *tables)],
        "recordSet": [_record_set(path) for path in tables],
    }
    write_atomically(path := folder / "croissant.json", orjson.dumps(document, option=orjson.OPT_INDENT_2))
    return [*tables, path]


def _file(path: Path) -> dict[str, str]:
    format_ = "application/zip" if path.suffix == ".zip" else "application/x-parquet"
    facts = {"contentUrl": path.name, "encodingFormat": format_, "contentSize": f"{path.stat().st_size} B"}
    return {"@type": "cr:FileObject", "@id": path.name, "name": path.name, **facts, "sha256": sha256(path)}


def _record_set(path: Path) -> dict[str, Any]:
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"{path.stem}/{column.name}",
            "name": column.name,
            "description": outcomes.DESCRIPTIONS.get(column.name, column.name.replace("_", " ")),
            "dataType": _TYPES[str(column.type)],
            "source": {"fileObject": {"@id": path.name}, "extract": {"column": column.name}},
        }
        for column in pq.read_schema(path)
    ]
    head = {"@type": "cr:RecordSet", "@id": path.stem, "name": path.stem}
    return {**head, "description": _TABLES[path.stem], "field": fields}
