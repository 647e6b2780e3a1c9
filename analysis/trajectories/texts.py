"""Prompts and replies of a cell, looked up in its call log one by one."""

from __future__ import annotations

from pathlib import Path

from analysis.trajectories.records import Said
from harness.agents.trajectory import Call
from harness.llm.call_log import CallLogReader


class CallTexts:
    """The texts of a call log, open for reading; another process may be writing it.

    Args:
        path: The log; it need not be there.

    Raises:
        UserError: It is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._log = CallLogReader(path) if path.exists() else None

    def said(self, call: Call) -> Said:
        """A call with its texts, which are ``None`` where no log has it.

        Raises:
            UserError: The log is damaged.
        """
        found = self._log.texts(call.key) if self._log else None
        return Said(call, None, None) if found is None else Said(call, found.messages, found.reply)

    def close(self) -> None:
        """Give the file up; closing twice is harmless."""
        if self._log is not None:
            self._log.close()
