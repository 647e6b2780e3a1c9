"""A process of our own that is asked one question after another."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_HEAD, _PIECE = 4, 1 << 16
_FAREWELL_S = 5.0


class Child:
    """A process whose standard input is a socket: four bytes of length, then the content, either way.

    It ends with the connection, so with this process at the latest; raises OSError where it cannot be started.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        self._connection, theirs = socket.socketpair()
        silent: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        try:
            with theirs:
                self.process = subprocess.Popen(  # noqa: S603  our own launchers
                    command, stdin=theirs.fileno(), env=environment, cwd=folder, start_new_session=True, **silent
                )
        except BaseException:
            self._connection.close()
            raise
        self._errors: Any = self.process.stderr
        self._connection.setblocking(False)

    async def ask(self, message: bytes, limit_s: float) -> bytes:
        """Return the reply, empty where the process has ended.

        It is killed where the caller gives up or, with TimeoutError, the limit passes.
        """
        async with asyncio.timeout(limit_s):
            try:
                # One that has failed says why before it ends.
                with contextlib.suppress(BrokenPipeError):
                    framed = len(message).to_bytes(_HEAD, "little") + message
                    await asyncio.get_running_loop().sock_sendall(self._connection, framed)
                return await self._received()
            except BaseException:
                # It would end no sooner than what it does.
                self.process.kill()
                raise

    def last_words(self) -> str:
        """Return the last line that the process, which has ended, wrote to its standard error."""
        os.set_blocking(self._errors.fileno(), False)
        words = (self._errors.read() or b"").decode("utf-8", "replace").strip().splitlines()
        return words[-1] if words else "it said nothing"

    def close(self) -> None:
        """Wait until the process has ended, and with it all that it started."""
        self._connection.close()
        self.process.wait()
        # Where it was killed, only what it started still holds the other end.
        select.select([self._errors], [], [], _FAREWELL_S)
        self._errors.close()

    async def _received(self) -> bytes:
        content, end = b"", _HEAD
        # One that ended with something unread resets the connection: then its last words say more.
        with contextlib.suppress(ConnectionResetError):
            while len(content) < end:
                piece = await asyncio.get_running_loop().sock_recv(self._connection, _PIECE)
                if not piece:
                    return b""
                content += piece
                end = _HEAD + int.from_bytes(content[:_HEAD], "little")
        return content[_HEAD:]
