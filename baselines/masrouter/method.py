"""MASRouter as a method of the suite: it learns from the training questions, then answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from baselines.masrouter.config import Config
from baselines.masrouter.learning import new_router, restored
from baselines.masrouter.objective import utility
from baselines.masrouter.pool import Pool, pool_of
from baselines.masrouter.rollout import Rollout
from baselines.masrouter.router import Embeddings, Router, Texts
from baselines.masrouter.trace import Trace
from baselines.masrouter.update import learn
from harness.agents.trajectory import Context
from harness.benchmarks.items import Item
from harness.results import Answered
from harness.runner.method import Setting
from harness.training.checkpoint import Checkpoint
from harness.training.learning import Learning, train
from harness.training.loop import Training, TrainingStep


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
        self._trained = self.restored(checkpoint).network

    async def fit(self, training: Training) -> None:
        """Train for the epochs of the benchmark, one rollout a question, a checkpoint after each epoch."""
        epochs = self._setting.epochs(self.config.epochs)
        self._trained = await train(self, training, epochs=epochs, batch=self.config.batch)

    async def begin(self, training: Training) -> Learning[Router]:
        """A router as initialised by the training seed."""

        async def embedded(profiles: Iterable[list[str]]) -> Embeddings:
            return np.stack([await training.embed(profile) for _, profile in profiles])

        facts = self.pool.to_facts()
        texts = Texts(*[await embedded(facts[kind]) for kind in Texts._fields])
        return Learning(new_router(self.config, texts, training.seed), self.config.lr)

    def restored(self, checkpoint: Checkpoint) -> Learning[Router]:
        """A router as a checkpoint left it; see :func:`~baselines.masrouter.learning.restored`."""
        return restored(checkpoint, self.config, self.pool)

    def facts(self) -> Mapping[str, Any]:
        """The choices and the largest team that a trained router is bound to."""
        return {**self.pool.to_facts(), "max_agents": self.config.max_agents}

    def rollouts(self, network: Router) -> Callable[[], Rollout]:
        """Trajectories of the router."""
        return lambda: Rollout(network, self.pool, self.config)

    def learn(
        self, learning: Learning[Router], answered: Sequence[Answered], traces: Sequence[Trace], step: TrainingStep
    ) -> dict[str, float]:
        """One step of the optimiser."""
        weight = self.config.vae_weight
        return learn(learning, answered, traces, self.pool, utility=self.utility, vae_weight=weight)


def build(setting: Setting, config: Config) -> MASRouter:
    """The method for one setting."""
    return MASRouter(setting, config)
