"""A child process that replies to messages, one after the other."""

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
_CLOSING_S = 5.0


class Child:
    """A process with a socket of framed messages as standard input. Raises OSError if it cannot start."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        self._connection, childs_end = socket.socketpair()
        streams: Any = {"stdin": childs_end.fileno(), "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        try:
            with childs_end:
                self.process = subprocess.Popen(  # noqa: S603  our own launchers
                    command, env=environment, cwd=folder, start_new_session=True, **streams
                )
        except BaseException:
            self._connection.close()
            raise
        self._errors: Any = self.process.stderr
        self._connection.setblocking(False)

    async def ask(self, message: bytes, limit_s: float) -> bytes:
        """Send a message and return the reply (empty if the process has ended). Kill it at the limit (TimeoutError)."""
        async with asyncio.timeout(limit_s):
            try:
                # A process that has failed may have sent the reason before it ended.
                with contextlib.suppress(BrokenPipeError):
                    framed = len(message).to_bytes(_HEAD, "little") + message
                    await asyncio.get_running_loop().sock_sendall(self._connection, framed)
                return await self._receive()
            except BaseException:
                # The process would notice the end of the connection only after its current task.
                self.process.kill()
                raise

    def last_error_line(self) -> str:
        os.set_blocking(self._errors.fileno(), False)
        lines = (self._errors.read() or b"").decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else "no message; it may have been killed (out of memory?)"

    def close(self) -> None:
        """Wait until the process and all that it started have ended."""
        self._connection.close()
        self.process.wait()
        # If it was killed, processes that it started may still hold the other end of the pipe.
        errors = select.poll()  # not select.select, which supports only descriptors below 1,024
        errors.register(self._errors, 0)  # POLLHUP alone: an error message may arrive first
        errors.poll(1000 * _CLOSING_S)
        self._errors.close()

    async def _receive(self) -> bytes:
        content, end = b"", _HEAD
        # A process that ended before it read everything resets the connection; its last error line says more.
        with contextlib.suppress(ConnectionResetError):
            while len(content) < end:
                piece = await asyncio.get_running_loop().sock_recv(self._connection, _PIECE)
                if not piece:
                    return b""
                content += piece
                end = _HEAD + int.from_bytes(content[:_HEAD], "little")
        return content[_HEAD:]
