"""The file of a sealed log: frames of Zstandard one after the other, which ``zstdcat`` turns into lines.

Before each frame stands a frame that programs skip. It says how long the next one is, compressed and not, and the
SHA-256 of its lines. A last one says how many texts and calls there are, and what the log is known by. So the index can
be made again, and one that is of another log shows.
"""

from __future__ import annotations

import hashlib
import os
import struct
import weakref
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import orjson
import pyarrow as pa

from harness.errors import UserError
from harness.llm.log_index import FRAME, Frame, Index, Seal
from harness.places import Digests, as_digests

# Reading one call reads a frame or two: smaller ones are faster to read and compress worse.
_FRAME_SIZE = 1 << 16
_CODEC = pa.Codec("zstd", compression_level=3)
# Magic number of a frame to skip, its length; then what is in it.
_BEFORE = struct.Struct("<8sII32s")
_BEFORE_MAGIC = struct.pack("<II", 0x184D2A50, _BEFORE.size - 8)
_LAST = struct.Struct("<8sQQ32s")
_LAST_MAGIC = struct.pack("<II", 0x184D2A51, _LAST.size - 8)


class FrameWriter:
    """Writes the lines of a sealed log.

    Args:
        file: Where to.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._lines: list[bytes] = []
        self._size = 0
        self._count = 0
        self._frames: list[Frame] = []

    def add(self, line: bytes) -> None:
        """Add a line, its end included."""
        self._lines.append(line)
        self._size += len(line)
        if self._size >= _FRAME_SIZE:
            self._flush()

    def end(self, texts: int, keys: Digests) -> Index:
        """Write what comes last.

        Args:
            texts: How many of the lines were texts.
            keys: Those of the calls, in the order of their lines.
        """
        self._flush()
        index = Index(texts, np.array(self._frames, FRAME), keys)
        self._file.write(_LAST.pack(_LAST_MAGIC, texts, len(keys), bytes.fromhex(index.seal.sha256)))
        return index

    def _flush(self) -> None:
        if not self._lines:
            return
        content = b"".join(self._lines)
        packed = _CODEC.compress(content, asbytes=True)
        sha256 = hashlib.sha256(content).digest()
        self._file.write(_BEFORE.pack(_BEFORE_MAGIC, len(packed), len(content), sha256))
        self._frames.append(Frame(self._file.tell(), len(packed), len(content), self._count, sha256))
        self._file.write(packed)
        self._count += len(self._lines)
        self._lines, self._size = [], 0


class Known(NamedTuple):
    """What the end of a sealed log says of it."""

    texts: int
    seal: Seal


class FrameReader:
    """Reads the lines of a sealed log; closes its file when nobody holds it any longer.

    Args:
        path: The file.

    Raises:
        UserError: It cannot be read, or is no sealed log.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror}") from error
        self._close = weakref.finalize(self, os.close, self._file)
        self._size = os.fstat(self._file).st_size
        last = os.pread(self._file, _LAST.size, max(0, self._size - _LAST.size))
        if len(last) < _LAST.size or not last.startswith(_LAST_MAGIC):
            raise self.damaged()
        _, texts, calls, sha256 = _LAST.unpack(last)
        self.known = Known(texts, Seal(calls, sha256.hex()))

    def lines(self, frame: Frame) -> list[bytes]:
        """The lines of a frame, without their ends.

        Raises:
            UserError: They are not those that were sealed.
        """
        packed = os.pread(self._file, frame.packed, frame.offset)
        try:
            content = _CODEC.decompress(packed, frame.size, asbytes=True)
        except (OSError, pa.ArrowInvalid) as error:
            raise self.damaged() from error
        if hashlib.sha256(content).digest() != frame.sha256:
            raise self.damaged()
        return content.split(b"\n")[:-1]

    def index(self) -> Index:
        """The index, made by reading everything.

        Raises:
            UserError: The log is not what was sealed.
        """
        frames: list[Frame] = []
        keys = bytearray()
        offset = count = 0
        while offset < self._size - _LAST.size:
            before = os.pread(self._file, _BEFORE.size, offset)
            if len(before) < _BEFORE.size or not before.startswith(_BEFORE_MAGIC):
                raise self.damaged()
            _, packed, size, sha256 = _BEFORE.unpack(before)
            frames.append(Frame(offset + _BEFORE.size, packed, size, count, sha256))
            for line in self.lines(frames[-1]):
                if count >= self.known.texts:
                    keys += bytes.fromhex(orjson.loads(line)["key"])
                count += 1
            offset += _BEFORE.size + packed
        index = Index(self.known.texts, np.array(frames, FRAME), as_digests([bytes(keys)]))
        if index.seal != self.known.seal:
            raise self.damaged()
        return index

    def close(self) -> None:
        """Give the file up; closing twice is harmless."""
        self._close()

    def damaged(self) -> UserError:
        """What to say of a log that is not what was sealed."""
        return UserError(
            f"{self.path} is damaged; restore it, or remove it and run its cell again: its calls will be asked again"
        )
