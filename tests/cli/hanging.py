"""The command ``gmr`` with backbones that answer so many calls and no more.

``python -m tests.cli.hanging NUMBER WORDS...``: further calls wait for ever, as behind a server that hangs. The
first of them leaves a file ``hangs`` in the working folder.
"""

import asyncio
import sys
from itertools import count
from pathlib import Path

from cli.main import main
from harness.llm.client import _InProcessBackbone
from harness.llm.request import Reply, Request

HANGS = Path("hangs")
answering = _InProcessBackbone.ask


def hang_after(number: int) -> None:
    asked = count()

    async def ask(self: _InProcessBackbone, request: Request) -> Reply:
        if next(asked) >= number:
            HANGS.touch()
            await asyncio.Event().wait()
        return await answering(self, request)

    _InProcessBackbone.ask = ask  # type: ignore[method-assign]


if __name__ == "__main__":
    hang_after(int(sys.argv.pop(1)))
    main()
