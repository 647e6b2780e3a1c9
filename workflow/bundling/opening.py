"""A bundle opened for a replay: checked, unpacked, and a folder to work in."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from harness.errors import UserError
from harness.files import writing
from harness.recording import FOLDER
from harness.runner import layout
from workflow.bundling.archive import Archive
from workflow.bundling.source import code

PRESET = "replay"
_KEY = "bundle"
_PLACE = Path("replay")

logger = logging.getLogger(__name__)


class Opened(NamedTuple):
    """A replay: the folder it works in, the recorded preset, and the settings it had."""

    folder: Path
    preset: str
    settings: dict[str, Any]


def opened(given: Mapping[str, Any]) -> Opened:
    """Open the bundle that the configuration names; what is unpacked already stays.

    Args:
        given: The configuration, with the preset ``replay``.

    Raises:
        UserError: No bundle is named, or something besides it; it was altered; other code recorded it; or the disk is
            full.
    """
    if _KEY not in given:
        raise UserError("a replay needs a bundle; add bundle=FILE behind --config preset=replay")
    if others := sorted(given.keys() - {"preset", _KEY}):
        raise UserError(f"a replay has the settings of the recorded run; leave out {', '.join(others)}")
    path = Path(given[_KEY]).absolute()
    archive = Archive(path)
    manifest = archive.manifest
    if manifest["code"]["sha256"] != code():
        raise UserError(
            f"{path} was recorded by other code (commit {manifest['code']['commit'] or 'unknown'}); check that out, "
            "then give the same command"
        )
    folder = (_PLACE / archive.sha256[:12]).absolute()
    if not (folder / FOLDER).exists():
        _unpack(archive, path, folder)
    return Opened(folder, manifest["preset"], manifest["settings"])


def _unpack(archive: Archive, path: Path, folder: Path) -> None:
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        archive.unpack(part)
        with writing(folder):
            (folder / layout.RESULTS).mkdir(parents=True, exist_ok=True)
            part.replace(folder / FOLDER)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    logger.warning("%s is whole; it is replayed in %s, and its reports will be in %s/reports", path, folder, folder)
