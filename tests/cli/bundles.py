"""Change a bundle, as a stranger may: its members and, so that it is complete, its manifest."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import orjson

from harness.llm.archive import METADATA, checksum
from harness.llm.recordings import opened

Members = dict[str, bytes]
Change = Callable[[Members], object]


def members(path: Path) -> Members:
    with ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def entities(files: Members) -> dict[str, Any]:
    return {entity["@id"]: entity for entity in orjson.loads(files[METADATA])["@graph"]}


def write(path: Path, files: Members) -> Path:
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path.absolute()


def made(of: Path, change: Change, cells: str = "single/", description: str = "") -> Path:
    """Write a bundle to the working folder: some cells of another one, changed, with an adapted manifest."""
    files = {name: content for name, content in members(of).items() if not re.search(f"/cells/(?!{cells})", name)}
    crate = {name: entity for name, entity in entities(files).items() if entity["@type"] != "File"}
    del files[METADATA]
    change(files)
    crate |= {name: {"@id": name, "@type": "File", **checksum(content)} for name, content in files.items()}
    crate["./"]["description"] = description or crate["./"]["description"]
    opened.cache_clear()  # Another bundle may have had this name.
    return write(Path("strange.zip"), {**files, METADATA: orjson.dumps({"@graph": [*crate.values()]})})
