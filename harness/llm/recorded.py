"""Backbones that answer from the call log of a cell alone; no server is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import orjson

from harness.errors import UserError
from harness.files import write_atomically
from harness.llm.attempts import AttemptLog
from harness.llm.call_log import CallLog
from harness.llm.client import ChatClient
from harness.llm.request import Reply, Request
from harness.llm.served import Served

FILE = "servers.json"


def note(folder: Path, served: Mapping[str, Served], encoder: str) -> None:
    """Keep in the folder of a cell what its calls depend on besides their prompts.

    Args:
        folder: Of the cell.
        served: What the servers of each backbone say they serve; not where weights lie on their host.
        encoder: Identity of the sentence encoder, which names the type of the processor too.

    Raises:
        UserError: The disk is full, or the folder cannot be written.
    """
    said = {key: {name: value for name, value in asdict(one).items() if name != "root"} for key, one in served.items()}
    write_atomically(folder / FILE, orjson.dumps({"encoder": encoder, "served": said}, option=orjson.OPT_INDENT_2))


class RecordedClient(ChatClient):
    """A client that knows the calls of its log, and no server.

    Args:
        folder: Of the cell, with what :func:`note` wrote.
        log: Its call log.
        attempts: Its attempt log.
        encoder: Identity of the sentence encoder here.

    Raises:
        UserError: No run of the cell is recorded in the folder.
    """

    def __init__(self, folder: Path, log: CallLog, attempts: AttemptLog, encoder: str) -> None:
        super().__init__({}, log, attempts)
        if not (folder / FILE).exists():
            raise UserError(f"{folder} holds no recorded run, and no server is asked here (recorded: true)")
        self._folder, self._encoder = folder, encoder
        self._known = orjson.loads((folder / FILE).read_bytes())

    async def served(self, backbone: str, model: str) -> Served:
        """What the servers of a backbone said when the run was recorded."""
        return Served(**self._known["served"][backbone])

    async def _ask(self, backbone: str, request: Request) -> Reply:
        why = "the log is incomplete, or settings, code or questions are others"
        if (then := self._known["encoder"]) != self._encoder:
            why = f"recorded on another processor type or version of torch ({then}; here {self._encoder})"
        raise UserError(f"call {request.key} of {backbone} is not in the call log of {self._folder}: {why}")
