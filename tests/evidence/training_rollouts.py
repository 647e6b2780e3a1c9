"""How close the rollouts of GMR's training come to the greedy schedule of the same calls.

    python -m tests.evidence.training_rollouts [--rounds 5] [--seconds 1]

An update waits for the last of its 16 x 6 trajectories, so a server is never full all the time; the greedy schedule is
what is possible. Every round trains anew before a fresh server, first with embeddings still to be made, then with all
of them in the cache; the calls are the same.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import gmr
from gmr.config import Config
from harness.llm.encoder import SentenceEncoder
from harness.runner.config import methods
from harness.training.loop import Attempt, Place, Training
from tests.evidence.driving import questions, runtime, setting
from tests.evidence.schedule import Step, greedy
from tests.evidence.server import Model, seconds_of, served

PLACES = (16, 64, 256)
UPDATES = 3
SPREAD = 0.8


class Found(NamedTuple):
    """One training: seconds of its rollouts, of their greedy schedule, of everything; own processor seconds."""

    rollouts_s: float
    greedy_s: float
    whole_s: float
    cpu_s: float


class _Watched(Training):
    """A training that remembers the calls of each update."""

    def note(self, place: Place, measures: Mapping[str, float], attempts: Sequence[Attempt]) -> None:
        self.updates = [*getattr(self, "updates", []), list(attempts)]
        super().note(place, measures, attempts)


async def _train(url: str, model: Model, folder: Path, encoder: SentenceEncoder) -> Found:
    config = Config(**methods()["gmr"].config)
    method = gmr.build(setting("pool"), config)
    async with runtime(url, model.places, folder, encoder) as place:
        items = questions(UPDATES * config.batch)
        facts = {"identity": "evidence"}
        training = _Watched(items, place, folder, facts, "measured", lambda key: True, config.batch * config.group)
        wall, cpu = time.perf_counter(), time.process_time()
        await method.fit(training)
        whole, cpu = time.perf_counter() - wall, time.process_time() - cpu
    possible, known = 0.0, set[str]()
    for attempts in training.updates:
        chains = [
            [Step(call.key, seconds_of(call.completion_tokens, model)) for call in attempt.answered.trajectory.calls]
            for attempt in attempts
        ]
        possible += greedy([[step for step in chain if step.key not in known] for chain in chains], model.places)
        known.update(step.key for chain in chains for step in chain)
    return Found(training.seconds["rollouts"], possible, whole, cpu)


def measure(model: Model) -> tuple[Found, Found]:
    """One training with cold embeddings, and the same with all of them cached."""
    encoder = SentenceEncoder()
    encoder.encode("The first text loads the model.")
    with tempfile.TemporaryDirectory(prefix="evidence-") as name:
        cold, cached = Path(name, "cold"), Path(name, "cached")
        with served(model) as url:
            first = asyncio.run(_train(url, model, cold, encoder))
        cached.mkdir()
        shutil.copy(cold / "cache.sqlite", cached)
        with served(model) as url:
            second = asyncio.run(_train(url, model, cached, encoder))
    return first, second


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="mean time of a call")
    asked = parser.parse_args()
    print("| K | Call | Embeddings | Rollouts, s | Greedy schedule, s | Ratio | Waits for updates | CPU, s |")
    print("|---:|---:|---|---:|---:|---:|---:|---:|")
    for places in PLACES:
        passes = [measure(Model(places, asked.seconds, SPREAD)) for _ in range(asked.rounds)]
        for name, side in zip(("cold", "cached"), zip(*passes, strict=True), strict=True):
            ratio = statistics.median(one.rollouts_s / one.greedy_s for one in side)
            waits = statistics.median(1 - one.rollouts_s / one.whole_s for one in side)
            rollouts, possible, _, cpu = (statistics.median(values) for values in zip(*side, strict=True))
            print(
                f"| {places} | {asked.seconds:g} s | {name} | {rollouts:.2f} | {possible:.2f} | {ratio:.3f} | "
                f"{waits:.1%} | {cpu:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    _main()
