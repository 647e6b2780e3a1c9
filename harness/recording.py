"""A recorded run that is replayed: the files of a bundle, below ``recorded/`` of the working folder.

In a folder with such files no job of the DAG asks a server. They take from there what is not made again, and check
against it what is.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from harness.errors import UserError
from harness.files import writing

FOLDER = Path("recorded")
MANIFEST = "manifest.json"
_BLOCK = 1 << 20


class Recording:
    """The files of a recorded run.

    Args:
        manifest: What the bundle says of itself.

    Attributes:
        manifest: The same.
    """

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        self.manifest = manifest
        self._files = {entry["name"]: entry for entry in manifest["files"]}

    @property
    def has_questions(self) -> bool:
        """Whether it holds the questions, or only their ids and hashes."""
        return bool(self.manifest["questions"])

    def __contains__(self, path: Path) -> bool:
        return path.as_posix() in self._files

    def below(self, folder: Path) -> list[Path]:
        """The files it has below a folder, each by its path in the working folder."""
        prefix = f"{folder.as_posix()}/"
        return [Path(name) for name in self._files if name.startswith(prefix)]

    def path(self, of: Path) -> Path:
        """Where a recorded file or folder lies.

        Args:
            of: Where it lay in the working folder of the recorded run.
        """
        return FOLDER / of

    def read(self, path: Path) -> bytes:
        """The content of a small recorded file.

        Raises:
            UserError: The bundle lacks it, or it has changed since.
        """
        self.check([path])
        return self.path(path).read_bytes()

    def check(self, paths: Iterable[Path]) -> None:
        """Refuse files that are not those of the bundle.

        Raises:
            UserError: Names the first one that is missing or has changed.
        """
        for path in paths:
            if path not in self:
                raise UserError(
                    f"{path} is not in the bundle, which holds what makes {', '.join(self.manifest['artefacts'])}; "
                    "replay one of these, or bundle the run with what you want"
                )
            if _sha256(self.path(path)) != self._files[path.as_posix()]["sha256"]:
                raise UserError(f"{self.path(path)} has changed; remove {FOLDER.absolute().parent} and replay again")

    def place(self, paths: Iterable[Path]) -> None:
        """Put recorded files where the recorded run had them.

        Raises:
            UserError: The bundle lacks one, it has changed since, or the folder cannot be written.
        """
        for path in paths:
            self.check([path])
            with writing(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                with TemporaryDirectory(prefix=".placed.", dir=path.parent) as folder:
                    copy = Path(folder) / path.name
                    _linked(self.path(path), copy)
                    copy.replace(path)


def here() -> Recording | None:
    """The recorded run that the working folder replays, ``None`` if it is no such folder."""
    path = FOLDER / MANIFEST
    return _read(path.absolute()) if path.exists() else None


@functools.cache
def _read(path: Path) -> Recording:
    return Recording(orjson.loads(path.read_bytes()))


def _linked(path: Path, copy: Path) -> None:
    """The same file by another name, where the file system knows that; nothing the suite writes is changed in place."""
    try:
        os.link(path, copy)
    except OSError:
        copyfile(path, copy)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with suppress(FileNotFoundError), path.open("rb") as file:
        while part := file.read(_BLOCK):
            digest.update(part)
    return digest.hexdigest()
