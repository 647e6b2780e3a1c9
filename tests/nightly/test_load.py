"""How full a server is kept, and what a call costs us, beside a loop that does nothing but send."""

import asyncio
import shutil
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import gmr
from baselines.single import SingleLLM
from gmr.config import Config
from harness.llm.encoder import SentenceEncoder
from harness.runner.config import methods
from harness.training.loop import Training
from tests.fake_encoder import FakeEncoder
from tests.nightly.driving import bare, ours, questions, runtime, setting
from tests.nightly.schedule import Step, greedy
from tests.nightly.server import Model, report, seconds_of, served

pytestmark = pytest.mark.nightly

ROUNDS = 5
BACKBONE = "llama-3.1-8B"


class Pass(NamedTuple):
    """Utilisation of the server, and own processor milliseconds a call."""

    utilisation: float
    cpu_ms: float


def measured(model: Model, calls: int, folder: Path, *, by_us: bool) -> Pass:
    """One pass over the questions, one call each, before a fresh server in a process of its own."""
    items = questions(calls)

    async def through_us(url: str) -> Any:
        folder.mkdir()
        async with runtime(url, model.places, folder, FakeEncoder()) as place:
            return await ours(SingleLLM(BACKBONE), items, place, 2 * model.places, folder)

    with served(model) as url:
        driven = asyncio.run(through_us(url) if by_us else bare(url, BACKBONE, items, model.places))
        found = report(url)
    assert found["requests"] == driven.calls == calls
    return Pass(found["utilisation"], 1000 * driven.cpu_s / calls)


@pytest.mark.parametrize(("places", "seconds", "calls"), [(64, 0.2, 1_344), (256, 2.0, 10_240)])
def test_evaluation_keeps_a_server_as_full_as_a_bare_loop(
    places: int, seconds: float, calls: int, tmp_path: Path
) -> None:
    model = Model(places, seconds)
    pairs = [
        [measured(model, calls, tmp_path / str(number), by_us=by_us) for by_us in (True, False)]
        for number in range(ROUNDS)
    ]
    mine, others = (Pass(*map(statistics.median, zip(*side, strict=True))) for side in zip(*pairs, strict=True))
    print(f"{model}: ours {mine}, bare {others}, ratio {mine.cpu_ms / others.cpu_ms:.2f}")
    assert mine.utilisation > others.utilisation - 0.02
    assert mine.cpu_ms < 1.5 * others.cpu_ms


class Watched(Training):
    """A training that remembers the calls of each update."""

    def note(self, place: Any, measures: Mapping[str, float], attempts: Sequence[Any]) -> None:
        self.updates = [*getattr(self, "updates", []), list(attempts)]
        super().note(place, measures, attempts)


async def trained(url: str, model: Model, folder: Path, encoder: SentenceEncoder) -> float:
    """Seconds of the rollouts of three updates over those of the greedy schedule of their calls."""
    config = Config(**methods()["gmr"].config)
    method = gmr.build(setting("pool"), config)
    async with runtime(url, model.places, folder, encoder) as place:
        items, most = questions(3 * config.batch), config.batch * config.group
        training = Watched(items, place, folder, {"identity": "measured"}, "measured", lambda key: True, most)
        await method.fit(training)
    possible, known = 0.0, set[str]()
    for attempts in training.updates:
        chains = [
            [Step(call.key, seconds_of(call.completion_tokens, model)) for call in one.answered.trajectory.calls]
            for one in attempts
        ]
        possible += greedy([[step for step in chain if step.key not in known] for chain in chains], model.places)
        known.update(step.key for chain in chains for step in chain)
    return training.seconds["rollouts"] / possible


@pytest.mark.parametrize("places", [16, 64, 256])
def test_rollouts_of_training_take_little_longer_than_the_greedy_schedule(places: int, tmp_path: Path) -> None:
    """An update waits for the last of its trajectories, so a server is never full all the time."""
    model, encoder, cold, cached = Model(places, 1.0, 0.8), SentenceEncoder(), tmp_path / "cold", tmp_path / "cached"
    encoder.encode("The first text loads the model.")
    cold.mkdir()
    with served(model) as url:
        first = asyncio.run(trained(url, model, cold, encoder))
    cached.mkdir()
    shutil.copy(cold / "cache.sqlite", cached)
    with served(model) as url:
        second = asyncio.run(trained(url, model, cached, encoder))
    print(f"{model}: rollouts over greedy schedule: {first:.3f} with embeddings to be made, {second:.3f} without")
    assert second < 1.2
