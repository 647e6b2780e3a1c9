"""MASRouter as a method of the suite: it learns from the training questions, then answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from baselines.masrouter.config import Config
from baselines.masrouter.learning import new_router, restored
from baselines.masrouter.objective import utility
from baselines.masrouter.pool import Pool, pool_of
from baselines.masrouter.rollout import Rollout
from baselines.masrouter.router import Embeddings, Router, Texts
from baselines.masrouter.trace import Trace
from baselines.masrouter.update import learn
from harness.agents.trajectory import Context, Episode
from harness.benchmarks.items import Item
from harness.concurrency import gather
from harness.results import Answered
from harness.runner.method import Setting
from harness.training.checkpoint import Checkpoint
from harness.training.learning import Learning, updates
from harness.training.loop import Attempt, Place, Training


class MASRouter:
    """A router that plans a team for each question, trained by REINFORCE without a baseline.

    Args:
        setting: Where it works.
        config: How it is trained, and what its tools may see.
    """

    def __init__(self, setting: Setting, config: Config) -> None:
        self.config = config
        self.pool: Pool = pool_of(setting)
        self._setting = setting
        self._trained: Router | None = None

    @property
    def router(self) -> Router:
        """The router as it decides now.

        Raises:
            RuntimeError: It was neither trained nor loaded.
        """
        if self._trained is None:
            raise RuntimeError("the router has no weights yet: call fit or load first")
        return self._trained

    async def solve(self, item: Item, context: Context) -> str:
        """One trajectory."""
        return await Rollout(self.router, self.pool, self.config).solve(item, context)

    def utility(self, answered: Answered) -> float:
        """What training maximises of one trajectory: its reward less its cost."""
        return utility(answered, self._setting.of_benchmark(self.config.kappa))

    def load(self, checkpoint: Checkpoint) -> None:
        """Take over a trained router.

        Raises:
            UserError: It was trained with other tasks, modes, roles or backbones.
        """
        self._trained = restored(checkpoint, self.config, self.pool).network

    async def fit(self, training: Training) -> None:
        """Train for the epochs of the benchmark, one rollout a question, a checkpoint after each epoch."""
        found = training.resume()
        learning = await self._begin(training) if found is None else restored(found, self.config, self.pool)
        done = int(found.facts["epoch"]) if found else 0
        epochs = self._setting.epochs(self.config.epochs)
        for place, questions, ends_epoch in updates(training, done, epochs, self.config.batch):
            await self._update(learning, training, questions, place)
            if ends_epoch:
                self._save(training, place.epoch, learning)
        self._trained = learning.network

    async def _begin(self, training: Training) -> Learning[Router]:
        async def embedded(profiles: Iterable[list[str]]) -> Embeddings:
            return np.stack([await training.embed(profile) for _, profile in profiles])

        facts = self.pool.to_facts()
        texts = Texts(*[await embedded(facts[kind]) for kind in Texts._fields])
        learning = Learning(new_router(self.config, texts, training.seed), self.config.lr)
        self._save(training, 0, learning)
        return learning

    def _save(self, training: Training, epoch: int, learning: Learning[Router]) -> None:
        facts = {**self.pool.to_facts(), "max_agents": self.config.max_agents}
        training.save(epoch, learning.learned(), learning.moments(), facts)

    async def _update(
        self, learning: Learning[Router], training: Training, questions: Sequence[Item], place: Place
    ) -> None:
        async def rollout(item: Item) -> tuple[Attempt, Trace]:
            its = Rollout(learning.network, self.pool, self.config)
            attempt = await training.attempt(its.solve, item, Episode(place.epoch, 0))
            return attempt, its.trace

        with training.timed("rollouts"):
            made = await gather(rollout(item) for item in questions)
        attempts = [attempt for attempt, _ in made]
        with training.timed("update"):
            measures = learn(
                learning,
                [attempt.answered for attempt in attempts],
                [trace for _, trace in made],
                self.pool,
                utility=self.utility,
                vae_weight=self.config.vae_weight,
            )
        training.note(place, measures, attempts)


def build(setting: Setting, config: Config) -> MASRouter:
    """The method for one setting."""
    return MASRouter(setting, config)
