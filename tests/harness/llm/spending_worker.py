"""A process that asks, within a budget, a server that answers at once.

Arguments: the folder of the run, the name of its cell, the bound on calls, the calls it wants, and how many are
answered before all further ones stay in flight for ever. Says how often it asked, what its log holds and what it was
told.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from aiohttp import web

from harness.errors import UserError
from harness.llm.attempts import AttemptLog
from harness.llm.backbones import Backbone
from harness.llm.budget import Prices
from harness.llm.call_log import CallLog, logs_below
from harness.llm.client import ChatClient
from harness.llm.endpoints import Endpoint
from harness.llm.spending import Spending
from harness.llm.spending_table import SpendingTable
from harness.runner.config import Budget
from tests.harness.llm.serving import MODEL, completion, request, served_at

IN_FLIGHT = 7


def say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


async def main(folder: str, name: str, calls: str, wanted: str, hang: str = "") -> None:
    os.chdir(folder)
    asked = 0

    async def chat(http: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        if hang and asked > int(hang):
            say("hanging")
            await asyncio.sleep(600)
        await asyncio.sleep(0.002)
        return web.json_response(completion())

    path = Path("cells") / name / "calls.sqlite"
    budget = Budget(calls=int(calls))
    prices = Prices([Backbone("m", MODEL, None, 8, 4096, "a model")])
    said = "all"
    async with served_at(chat=chat) as url:
        with CallLog(path) as log:
            attempts = AttemptLog(path.with_name("attempts.jsonl"))
            others = [other for other in logs_below(Path("cells")) if other != path]
            table = SpendingTable(Path("spending"))
            spending = Spending("p", budget, table, path, others, prices)
            endpoint = Endpoint((url,), max_in_flight=IN_FLIGHT)
            async with ChatClient({"m": endpoint}, log, attempts, spending=spending) as client:  # type: ignore[arg-type]
                say("ready")
                await asyncio.to_thread(sys.stdin.readline)
                turns = asyncio.Semaphore(2 * IN_FLIGHT)

                async def one(number: int) -> None:
                    async with turns:
                        await client.complete("m", request(f"{name} {number}"))

                try:
                    await asyncio.gather(*(one(number) for number in range(int(wanted))))
                except UserError as error:
                    said = str(error)
            attempts.close()
            say(f"{asked} {len(log)} {said}")


asyncio.run(main(*sys.argv[1:]))
