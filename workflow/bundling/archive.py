"""The file of a bundle: a tar archive of which every byte follows from the manifest and the files in it.

First comes the manifest, then its SHA-256, then the files in the order in which the manifest lists them. Whoever reads
it knows what has to come next, so that nothing is believed that stands in the archive, and a changed byte is found
wherever it is.
"""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple

import orjson

from harness.errors import UserError
from harness.files import whole_file, writing
from harness.recording import MANIFEST

FORMAT = 1
_CHECKSUM = f"{MANIFEST}.sha256"
_BLOCK = 1 << 20
_SECTOR = tarfile.BLOCKSIZE
# A manifest of a million files is some 200 MB.
_LARGEST_MANIFEST = 1 << 30

Sink = Callable[[bytes], object]


class Member(NamedTuple):
    """A file on its way into an archive: its name there, and where it lies."""

    name: str
    path: Path


def entry(member: Member) -> dict[str, Any]:
    """What a manifest says of a file.

    Raises:
        UserError: The file cannot be read.
    """
    digest, size = hashlib.sha256(), 0
    try:
        with member.path.open("rb") as file:
            while part := file.read(_BLOCK):
                digest.update(part)
                size += len(part)
    except OSError as error:
        raise UserError(f"cannot read {member.path}: {error.strerror}") from error
    return {"name": member.name, "size": size, "sha256": digest.hexdigest()}


def write(path: Path, facts: Mapping[str, Any], members: Sequence[Member]) -> dict[str, Any]:
    """Write an archive, whole or not at all; equal files and facts make equal bytes.

    Args:
        path: The archive.
        facts: What its manifest says beside the list of files.
        members: The files, in any order.

    Returns:
        The manifest.

    Raises:
        UserError: A file cannot be read or changed meanwhile, or the disk is full.
    """
    ordered = sorted(members)
    manifest = {"format": FORMAT, **facts, "files": [entry(member) for member in ordered]}
    content = orjson.dumps(manifest, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"
    checksum = hashlib.sha256(content).hexdigest().encode() + b"\n"
    with whole_file(path) as file:
        for name, small in ((MANIFEST, content), (_CHECKSUM, checksum)):
            file.write(_header(name, len(small)) + small + _padding(len(small)))
        for member, known in zip(ordered, manifest["files"], strict=True):
            file.write(_header(known["name"], known["size"]))
            _copy(member, known, file)
            file.write(_padding(known["size"]))
        file.write(_end(file.tell()))
    return manifest


class Archive:
    """An archive, open for reading from its beginning to its end.

    Args:
        path: The archive.

    Attributes:
        manifest: What it says of itself, checked by its SHA-256.
        sha256: Of the manifest, which names every byte of the archive.

    Raises:
        UserError: It cannot be read, is no bundle, or its manifest was changed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            with path.open("rb") as file:
                content = self._manifest(file)
                self._files_at = file.tell()
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror}") from error
        self.sha256 = hashlib.sha256(content).hexdigest()
        self.manifest: dict[str, Any] = orjson.loads(content)
        if self.manifest.get("format") != FORMAT:
            raise UserError(f"{path} is a bundle of another version of the suite; use the version that made it")
        self._content = content

    def check(self) -> None:
        """Read everything and compare it with the manifest.

        Raises:
            UserError: Names the first file that is not what the manifest says.
        """
        self._read(lambda entry, take: take(lambda part: None))

    def unpack(self, folder: Path) -> None:
        """Write all files below a folder, and last the manifest.

        Raises:
            UserError: As :meth:`check`; the disk is full, or the folder cannot be written.
        """

        def one(entry: Mapping[str, Any], take: Callable[[Sink], None]) -> None:
            place = folder / entry["name"]
            with writing(place):
                place.parent.mkdir(parents=True, exist_ok=True)
                with place.open("wb") as out:
                    take(out.write)

        self._read(one)
        with writing(folder):
            (folder / MANIFEST).write_bytes(self._content)

    def _manifest(self, file: BinaryIO) -> bytes:
        head = file.read(_SECTOR)
        try:
            size = tarfile.TarInfo.frombuf(head, "ascii", "strict").size
        except (tarfile.HeaderError, UnicodeDecodeError, ValueError) as error:
            raise UserError(f"{self._path} is no bundle of this suite ({error})") from error
        if head != _header(MANIFEST, size) or size > _LARGEST_MANIFEST:
            raise UserError(f"{self._path} is no bundle of this suite (it does not begin with its {MANIFEST})")
        content = file.read(size)
        checksum = hashlib.sha256(content).hexdigest().encode() + b"\n"
        rest = _padding(size) + _header(_CHECKSUM, len(checksum)) + checksum + _padding(len(checksum))
        if file.read(len(rest)) != rest:
            raise self._altered(MANIFEST)
        return content

    def _read(self, one: Callable[[Mapping[str, Any], Callable[[Sink], None]], None]) -> None:
        with self._path.open("rb") as file:
            file.seek(self._files_at)
            for known in self.manifest["files"]:
                name, size = known["name"], known["size"]
                if not _is_inside(name):
                    raise UserError(f"{self._path}: {name!r} is no place for a file of a bundle")
                self._expect(file, _header(name, size), name)

                def take(sink: Sink, known: Mapping[str, Any] = known) -> None:
                    if _pass_on(file, known["size"], sink) != known["sha256"]:
                        raise self._altered(known["name"])

                one(known, take)
                self._expect(file, _padding(size), name)
            self._expect(file, _end(file.tell()), "its end")
            if file.read(1):
                raise self._altered("its end")

    def _expect(self, file: BinaryIO, expected: bytes, name: str) -> None:
        if file.read(len(expected)) != expected:
            raise self._altered(name)

    def _altered(self, name: str) -> UserError:
        return UserError(f"{self._path} was altered or cut off: {name} is not what its manifest says; fetch it again")


def _copy(member: Member, known: Mapping[str, Any], out: BinaryIO) -> None:
    with member.path.open("rb") as file:
        if _pass_on(file, known["size"], out.write) != known["sha256"] or file.read(1):
            raise UserError(f"{member.path} changed while it was bundled; wait until no job runs, then bundle again")


def _pass_on(file: BinaryIO, size: int, sink: Sink) -> str:
    """Hand on so many bytes, or as many as there are; returns their SHA-256."""
    digest = hashlib.sha256()
    while size and (part := file.read(min(size, _BLOCK))):
        digest.update(part)
        sink(part)
        size -= len(part)
    return digest.hexdigest()


def _header(name: str, size: int) -> bytes:
    """Of a file that belongs to nobody and was made at no time."""
    info = tarfile.TarInfo(name)
    info.size = size
    return info.tobuf(tarfile.GNU_FORMAT)


def _padding(size: int) -> bytes:
    return bytes(-size % _SECTOR)


def _end(written: int) -> bytes:
    return bytes(2 * _SECTOR + -(written + 2 * _SECTOR) % tarfile.RECORDSIZE)


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and path.as_posix() == name and name != MANIFEST
