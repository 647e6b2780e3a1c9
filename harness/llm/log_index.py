"""The index of a sealed log: where its frames begin, and the keys of its calls in ascending order.

A sealed log is a row of frames, each some 64 KiB of lines compressed by themselves: first the lines of the texts, in
the order of their SHA-256, then those of the calls, in the order of their keys. So the number of a key in the index
tells the number of the line, and that the frame. What identifies a log is the SHA-256 over the SHA-256 of the lines of
each frame: it names every byte of what is in it, and can be checked without reading any.

The index is made from its log whenever it is missing or damaged, and lies beside it only to save the time.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import struct
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from harness.files import whole_file
from harness.places import DIGEST, Digests

FRAME = np.dtype([("offset", "<u8"), ("packed", "<u4"), ("size", "<u4"), ("first", "<u8"), ("sha256", "V32")])
# What it is, then the number of texts, frames and calls.
_HEAD = struct.Struct("<8sQQQ")
_MAGIC = b"GMRIDX01"
_BLOCK = 1 << 20


class Seal(NamedTuple):
    """What a sealed log is known by: number of calls, SHA-256 over the SHA-256 of the lines of each frame."""

    calls: int
    sha256: str


class Frame(NamedTuple):
    """Where a frame begins in the file, its bytes compressed and not, the number of its first line, what it holds."""

    offset: int
    packed: int
    size: int
    first: int
    sha256: bytes


class Index(NamedTuple):
    """How many texts a sealed log has, its frames in their order, the keys of its calls."""

    texts: int
    frames: npt.NDArray[np.void]
    keys: Digests

    @property
    def seal(self) -> Seal:
        """What the log is known by."""
        return Seal(len(self.keys), hashlib.sha256(self.frames["sha256"].tobytes()).hexdigest())


def load(path: Path) -> Index | None:
    """An index as it lies on the disk, read only where it is looked at; ``None`` if it is missing or damaged."""
    try:
        with path.open("rb") as file:
            if not _is_whole(file):
                return None
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return None
    _, texts, frames, calls = _HEAD.unpack_from(content)
    keys = _HEAD.size + frames * FRAME.itemsize
    return Index(texts, np.frombuffer(content, FRAME, frames, _HEAD.size), np.frombuffer(content, DIGEST, calls, keys))


def store(path: Path, index: Index) -> None:
    """Write an index.

    Raises:
        UserError: The disk is full, or the folder cannot be written.
    """
    head = _HEAD.pack(_MAGIC, index.texts, len(index.frames), len(index.keys))
    digest = hashlib.sha256()
    with whole_file(path) as file:
        for part in (head, index.frames.view(np.uint8).data, index.keys.view(np.uint8).data):
            digest.update(part)
            file.write(part)
        file.write(digest.digest())


def _is_whole(file: BinaryIO) -> bool:
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return False
    magic, _, frames, calls = _HEAD.unpack(head)
    left = frames * FRAME.itemsize + calls * DIGEST.itemsize
    digest = hashlib.sha256(head)
    if magic != _MAGIC or os.fstat(file.fileno()).st_size != _HEAD.size + left + digest.digest_size:
        return False
    while left:
        part = file.read(min(left, _BLOCK))
        digest.update(part)
        left -= len(part)
    return file.read() == digest.digest()
