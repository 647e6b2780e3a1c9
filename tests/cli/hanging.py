"""Run ``gmr`` with backbones that answer a given number of calls and then hang.

``python -m tests.cli.hanging NUMBER WORDS...``: calls after the first NUMBER hang for ever. The first hanging call
writes a file ``hangs`` to the working folder.
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
