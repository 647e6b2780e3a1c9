"""The command ``gmr`` with backbones that answer so many calls and no more.

``python -m tests.cli.hanging NUMBER WORDS...``: further calls wait for ever, as behind a server that hangs. The
first of them leaves a file ``hangs`` in the working folder.
"""

import asyncio
import sys
from itertools import count
from pathlib import Path

from cli.main import main
from harness.llm.client import ChatClient
from harness.llm.request import Reply, Request

HANGS = Path("hangs")
answering = ChatClient._ask


def hang_after(number: int) -> None:
    asked = count()

    async def ask(self: ChatClient, backbone: str, request: Request) -> Reply:
        if next(asked) >= number:
            HANGS.touch()
            await asyncio.Event().wait()
        return await answering(self, backbone, request)

    ChatClient._ask = ask  # type: ignore[method-assign]


if __name__ == "__main__":
    hang_after(int(sys.argv.pop(1)))
    main()
