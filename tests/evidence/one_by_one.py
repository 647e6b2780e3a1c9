"""What it is worth to have many questions in flight: an evaluation of MASRouter, ours and one question at a time.

    python -m tests.evidence.one_by_one [--rounds 5] [--questions 128]

Both answer the same questions with the same untrained router before the same kind of server; only the number of
questions in flight differs. One at a time takes minutes and hardly varies, so it is measured once.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
from pathlib import Path
from typing import NamedTuple

from baselines import masrouter
from baselines.masrouter.config import Config
from harness.llm.encoder import SentenceEncoder
from harness.runner.config import methods
from harness.training.loop import Training
from tests.evidence.driving import Driven, ours, questions, runtime, setting
from tests.evidence.server import Model, report, served

MODEL = Model(64, 0.2, 0.8)


class Found(NamedTuple):
    """One evaluation: seconds, calls and utilisation of the server."""

    wall_s: float
    calls: int
    utilisation: float


async def _evaluate(url: str, folder: Path, encoder: SentenceEncoder, count: int, in_flight: int) -> Driven:
    method = masrouter.build(setting("pool", epochs=0), Config(**methods()["masrouter"].config))
    async with runtime(url, MODEL.places, folder, encoder) as place:
        await method.fit(Training([], place, folder, {"identity": "evidence"}, "measured", lambda key: True, in_flight))
        return await ours(method, questions(count), place, in_flight, folder)


def measure(count: int, in_flight: int) -> Found:
    """One evaluation with everything still to be done."""
    encoder = SentenceEncoder()
    encoder.encode("The first text loads the model.")
    with served(MODEL) as url, tempfile.TemporaryDirectory(prefix="evidence-") as folder:
        driven = asyncio.run(_evaluate(url, Path(folder), encoder, count, in_flight))
        return Found(driven.wall_s, driven.calls, report(url)["utilisation"])


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--questions", type=int, default=128)
    asked = parser.parse_args()
    passes = [measure(asked.questions, 2 * MODEL.places) for _ in range(asked.rounds)]
    many = Found(*(statistics.median(values) for values in zip(*passes, strict=True)))  # type: ignore[arg-type]
    single = measure(asked.questions, 1)
    print("| Questions in flight | Seconds | Calls | Utilisation |\n|---:|---:|---:|---:|")
    for in_flight, found in ((2 * MODEL.places, many), (1, single)):
        print(f"| {in_flight} | {found.wall_s:.1f} | {found.calls} | {found.utilisation:.3f} |")
    print(f"\nSpeed-up at K = {MODEL.places}: {single.wall_s / many.wall_s:.1f}")


if __name__ == "__main__":
    _main()
