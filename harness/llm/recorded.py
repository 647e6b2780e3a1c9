"""Backbones that answer from the call log of a cell alone; no server is asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

import orjson

from harness.errors import UserError
from harness.files import write_atomically
from harness.llm.request import Request
from harness.llm.served import Served

FILE = "servers.json"


def note(folder: Path, served: Iterable[Served], encoder: str) -> None:
    """Keep in the folder of a cell what its calls depend on besides their prompts.

    Args:
        folder: Of the cell.
        served: What the servers say they serve; not where weights lie on their host.
        encoder: Identity of the sentence encoder, which names the type of the processor too.

    Raises:
        UserError: The disk is full, or the folder cannot be written.
    """
    said = {one.model: {name: value for name, value in asdict(one).items() if name != "root"} for one in served}
    write_atomically(folder / FILE, orjson.dumps({"encoder": encoder, "served": said}, option=orjson.OPT_INDENT_2))


class Recorded:
    """What answers the calls that the log of a cell lacks: nobody.

    Args:
        folder: Of the cell, with what :func:`note` wrote.
        encoder: Identity of the sentence encoder here.

    Raises:
        UserError: No run of the cell is recorded in the folder.
    """

    def __init__(self, folder: Path, encoder: str) -> None:
        if not (folder / FILE).exists():
            raise UserError(f"{folder} holds no recorded run, and no server is asked here (recorded: true)")
        self._folder, self._encoder = folder, encoder
        self._known = orjson.loads((folder / FILE).read_bytes())

    def served(self, model: str) -> Served:
        """Return what the servers of a model said when the run was recorded."""
        return Served(**self._known["served"][model])

    def complete(self, request: Request) -> NoReturn:
        """Refuse a call that is not in the log.

        Raises:
            UserError: Always; says why it may be missing.
        """
        why = "the log is incomplete, or settings, code or questions are others"
        if (then := self._known["encoder"]) != self._encoder:
            why = f"recorded on another processor type or with other libraries ({then}; here {self._encoder})"
        raise UserError(f"call {request.key} of {request.model} is not in the call log of {self._folder}: {why}")
