"""Channels between the processes of a worker, and the words they exchange."""

from __future__ import annotations

import os
import struct

# A value longer than this answers no question; an order also holds sources with their data.
LONGEST, LONGEST_ORDER = 16 << 20, 64 << 20
_HEAD, _PIECE = 4, 1 << 16

# Grader to fork server, about the process it received: program started, end the process, its connection has ended.
START, END, HUNG_UP = b"s", b"e", b"h"
# Fork server to grader, with the descriptors of a process; any other text says why there is none.
READY = b"r"
# How a process ended: status as from ``wait``, processor time in seconds, the limit that cut it short (below, or 0),
# whether it lived on after its connection had ended, whether it left files.
REPORT = struct.Struct("<idB??")
WALL, CROWDED = 1, 2
# What a work directory may hold.
BOX_ENTRIES, BOX_BYTES = 1000, 16 << 20

# First message of a program's process: confined, or why not. No foreign code has run by then.
CONFINED, UNCONFINED = b"+", b"-"
# First word of a reply: a value, an exception of the program, of its compilation, a value that is too long to be sent.
VALUE, RAISED, UNREADABLE, TOO_LONG = "value", "raised", "unreadable", "too_long"
# What stands in messages for an object of the program that is no plain value, for a class of exceptions, and for an
# instance of a class that extends a plain type.
REFERENCE, EXCEPTION_CLASS, SUBCLASS = "object", "exception", "subclass"
LONGEST_SHOWN = 4096

MODULE = "solution"
# Parts of an order; each is also the name of its source in tracebacks.
SETUP, PROGRAM, CHECKS = "setup", "program", "checks"

# Further outcomes in the grader's report: the process ended early, and its status says how; the sandbox failed.
GONE, FAILURE = "gone", "failure"


class UnreadableError(Exception):
    """The other side sent what no honest value can look like."""


class TooLongError(Exception):
    """A value is longer than allowed; the text says how long."""


class NotPlainError(BaseException):
    """An object is used as a value, but is no plain one; ``except Exception`` of a check does not catch it."""


class Channel:
    """One end of a connected stream socket; a message is four bytes of length, then its content."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._pending = bytearray()
        # Bound now, as foreign code may replace them in ``os``.
        self._read, self._write = os.read, os.write

    def send(self, message: bytes) -> None:
        """Write a message; raise OSError if the other side is gone."""
        rest = memoryview(len(message).to_bytes(_HEAD, "little") + message)
        while rest:
            rest = rest[self._write(self._descriptor, rest) :]

    def receive(self, longest: int = LONGEST) -> bytes:
        """Wait for a message; raise EOFError if the other side is gone, TooLongError for one of more bytes."""
        length = int.from_bytes(self._take(_HEAD), "little")
        if length > longest:
            raise TooLongError(f"{length} bytes")
        return self._take(length)

    def _take(self, length: int) -> bytes:
        while len(self._pending) < length:
            try:
                piece = self._read(self._descriptor, _PIECE)
            except ConnectionResetError:
                piece = b""
            if not piece:
                raise EOFError
            self._pending += piece
        taken = bytes(self._pending[:length])
        del self._pending[:length]
        return taken
