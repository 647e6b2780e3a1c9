"""How full a server is kept by an evaluation, and what a call costs us, beside a loop that does nothing but send.

    python -m tests.evidence.utilisation [--rounds 5] [--quick]

Each round measures both in turn, every time before a fresh server in a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from baselines.single import SingleLLM
from harness.benchmarks.items import Item
from tests.evidence.driving import Driven, Wordless, bare, ours, questions, runtime
from tests.evidence.server import Model, report, served

BACKBONE = "llama-3.1-8B"


class Load(NamedTuple):
    """Calls for a server."""

    model: Model
    calls: int


LOADS = [Load(Model(64, 0.2), 1_344), Load(Model(256, 2.0), 10_240)]
QUICK = [Load(Model(16, 0.2), 320), Load(Model(64, 0.2), 1_344), Load(Model(256, 0.2), 5_120)]


class Found(NamedTuple):
    """One pass: utilisation of the server and own processor milliseconds a call."""

    utilisation: float
    cpu_ms: float


def measure(load: Load, *, by_us: bool) -> Found:
    """One pass over the questions, one call each, before a fresh server."""
    items = questions(load.calls)
    with served(load.model) as url, tempfile.TemporaryDirectory(prefix="evidence-") as folder:
        driven = asyncio.run(_ours(url, load, items, Path(folder)) if by_us else _bare(url, load, items))
        found = report(url)
    assert found["requests"] == driven.calls == load.calls
    return Found(found["utilisation"], 1000 * driven.cpu_s / driven.calls)


async def _ours(url: str, load: Load, items: Sequence[Item], folder: Path) -> Driven:
    async with runtime(url, load.model.places, folder, Wordless()) as place:  # type: ignore[arg-type]
        return await ours(SingleLLM(BACKBONE), items, place, 2 * load.model.places, folder)


async def _bare(url: str, load: Load, items: Sequence[Item]) -> Driven:
    return await bare(url, BACKBONE, items, load.model.places)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="short calls only, K = 16, 64 and 256")
    asked = parser.parse_args()
    print("| K | Call | Calls | Utilisation, ours | bare | CPU ms a call, ours | bare | Ratio |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    for load in QUICK if asked.quick else LOADS:
        passes = [(measure(load, by_us=True), measure(load, by_us=False)) for _ in range(asked.rounds)]
        mine, others = (Found(*map(statistics.median, zip(*side, strict=True))) for side in zip(*passes, strict=True))
        print(
            f"| {load.model.places} | {load.model.seconds:g} s | {load.calls} | {mine.utilisation:.3f} | "
            f"{others.utilisation:.3f} | {mine.cpu_ms:.2f} | {others.cpu_ms:.2f} | {mine.cpu_ms / others.cpu_ms:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    _main()
