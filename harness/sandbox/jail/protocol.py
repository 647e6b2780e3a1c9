"""Messages between the three processes of a worker, and bounds that are the same for every program."""

import os
import struct

# Maximum bytes of a message with values of a program, and of a job, whose sources may hold data.
LONGEST, LONGEST_JOB = 16 << 20, 64 << 20
# Maximum depth of a value, and maximum number of values read from an iterator.
DEEPEST, MOST_READ = 200, 1_000_000
LONGEST_SHOWN = 4096
# Maximum number of files in a work directory, and of their bytes in total.
MOST_ENTRIES, MOST_BYTES = 1000, 16 << 20
# Memory of the checks, which hold values of the program.
CHECKS_MIB = 2 << 10
_HEAD, _PIECE = 4, 1 << 16

# Grader to fork server, about the process it was given: start its clock, end it, its connection is closed.
START, END, HUNG_UP = b"s", b"e", b"h"
# Fork server to grader, with the connection to a new process; any other text is an error message.
READY = b"r"
# How a process ended: wait status, processor time in seconds, the limit it passed (below, or 0), whether it lived on
# after it had closed its connection, whether its work directory is dirty.
REPORT = struct.Struct("<idB??")
WALL, DISK = 1, 2

# First message of a program's process, before it runs foreign code: confined, or the error that prevented it.
CONFINED, UNCONFINED = b"+", b"-"
# First word of a reply: a value, an exception of the program, an error of its compilation, a value above a bound.
VALUE, RAISED, UNREADABLE, TOO_LONG = "value", "raised", "unreadable", "too_long"
# Keys of values that are not plain: an object of the program, a class of exceptions, an instance of a class that
# extends a plain type.
REFERENCE, EXCEPTION_CLASS, SUBCLASS = "object", "exception", "subclass"

MODULE = "solution"
# The sources of a job, by the name that tracebacks show.
SETUP, PROGRAM, CHECKS = "setup", "program", "checks"

# Outcome of checks that lost the connection; how the process ended says more.
ENDED = "ended"


class UnreadableError(Exception):
    """The other side sent a message that no valid value produces."""


class TooLongError(Exception):
    """A value is longer than allowed. The message says how long."""


class NotPlainError(BaseException):
    """The checks use an object that is not plain as a value. Their ``except Exception`` does not catch this."""


class Channel:
    """One end of a connected stream socket. A message is four bytes of length, then its content."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._pending = bytearray()
        # Bound now, as foreign code may replace them in ``os``.
        self._read, self._write = os.read, os.write

    def send(self, message: bytes) -> None:
        """Write a message. Raises OSError if the other side is gone."""
        rest = memoryview(len(message).to_bytes(_HEAD, "little") + message)
        while rest:
            rest = rest[self._write(self._descriptor, rest) :]

    def receive(self, longest: int = LONGEST) -> bytes:
        """Wait for a message. Raises EOFError if the other side is gone, TooLongError above ``longest`` bytes."""
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
