"""A process with calls of a fixed length, and when each of them began and ended.

Arguments: the file of the slots, the limit of all, the number of calls, their seconds, how many at a time it wants.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from harness.llm.slots import Slots


def say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def say_why(error: Exception) -> None:
    say(str(error))


async def main(path: str, most: str, calls: str, seconds: str, wanted: str) -> None:
    free = asyncio.Event()
    slots = Slots(Path(path), int(most), free.set, say_why)
    left, waiting = int(calls), 0

    async def one() -> None:
        nonlocal waiting
        waiting += 1
        while not slots.has_room:
            free.clear()
            slots.want(waiting)
            await free.wait()
        waiting -= 1
        slots.begin()
        slots.want(waiting)
        began = time.monotonic()
        say("begun")
        await asyncio.sleep(float(seconds))
        say(f"{began} {time.monotonic()}")
        slots.end()
        if waiting:
            free.set()

    async def several() -> None:
        nonlocal left
        while left:
            left -= 1
            await one()

    say("ready")
    await asyncio.to_thread(sys.stdin.readline)
    await asyncio.gather(*(several() for _ in range(int(wanted))))
    slots.close()


asyncio.run(main(*sys.argv[1:]))
