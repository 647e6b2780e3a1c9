"""Messages over a socket: four bytes of length, then the message."""

from __future__ import annotations

import os

# A value longer than this is no answer to any question; an order also holds sources with their data.
LONGEST, LONGEST_ORDER = 16 << 20, 64 << 20
_HEAD = 4
_PIECE = 1 << 16


class TooLongError(Exception):
    """The other side announced a message that is longer than allowed."""


class Dismissed(BaseException):
    """Whoever wanted the verdict is gone; no check may catch this."""


class Channel:
    """One end of a connection.

    Args:
        descriptor: A connected stream socket.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._pending = bytearray()
        # Bound now: where foreign code runs, the names may lead elsewhere afterwards.
        self._read, self._write = os.read, os.write

    def send(self, message: bytes) -> None:
        """Writes a message.

        Raises:
            OSError: The other side is gone.
        """
        rest = memoryview(len(message).to_bytes(_HEAD, "little") + message)
        while rest:
            rest = rest[self._write(self._descriptor, rest) :]

    def receive(self, longest: int = LONGEST) -> bytes:
        """Waits for a message of at most that many bytes.

        Raises:
            EOFError: The other side is gone.
            TooLongError: The message is longer than allowed.
        """
        length = int.from_bytes(self._take(_HEAD), "little")
        if length > longest:
            raise TooLongError(length)
        return self._take(length)

    def _take(self, length: int) -> bytes:
        while len(self._pending) < length:
            self._fill()
        taken = bytes(self._pending[:length])
        del self._pending[:length]
        return taken

    def _fill(self) -> None:
        try:
            piece = self._read(self._descriptor, _PIECE)
        except ConnectionResetError:
            piece = b""
        if not piece:
            raise EOFError
        self._pending += piece
