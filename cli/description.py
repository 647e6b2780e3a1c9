"""Description of a bundle: its manifest, and from that a Croissant file of the tables beside it.

The manifest is an RO-Crate (1.2). The description is in Croissant 1.1, with the fields for responsible AI.
"""

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq

from analysis.beyond import outcomes
from harness.errors import UserError
from harness.files import ROOT, read_yaml, sha256, write_atomically
from harness.llm import call_log
from harness.llm.archive import METADATA, Crate
from harness.llm.backbones import ABOUT
from harness.llm.recordings import Recording
from harness.runner.config import LICENCES
from harness.runner.layout import cell_of
from harness.runner.run import Run

# Files that affect results, as git pathspecs.
_CODE = ("harness", "baselines", "gmr", "analysis", ":(glob)config/*.yaml")
_NO_CODE = (":!config/config.yaml", ":!config/endpoints*", ":!config/licences.yaml")
_CRATE = "https://w3id.org/ro/crate/1.2"
CONTEXT = f"{_CRATE}/context"  # of an RO-Crate
_TABLES = {
    "outcomes": "One row for each graded answer to a question. Attempts of trainings are not included.",
    "nodes": "One row for each path of an enumeration: question, role, backbone, and whether the step is stored.",
}
_TYPES = {"string": "sc:Text", "bool": "sc:Boolean", "int64": "sc:Integer", "double": "sc:Float"}
# What all descriptions share: the context that readers of Croissant expect, and what holds for the replies of any run.
_SHARED = Path(__file__).with_name("croissant.json")


def manifest(run: Run, made: Mapping[Path, Mapping[str, Any]], further: Iterable[str], lacking: Sequence[str]) -> Crate:
    """Describe a run, its code and licences as entities of an RO-Crate, without files.

    Args:
        run: The run.
        made: ``run.json`` of its finished cells and enumerations, by folder.
        further: Files of its maker's own methods.
        lacking: Benchmarks whose questions are withheld.

    Raises:
        UserError: if a licence is not known.
    """
    attempts = [attempt for folder in made for attempt in call_log.read_attempts(folder / call_log.ATTEMPT_LOG)]
    end = datetime.fromtimestamp(max((each["started"] + each["latency_s"] for each in attempts), default=0), UTC)
    cells = sum(cell_of(folder) is not None for folder in made)
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
