"""Puppeteer as a method of the suite: its policy learns from the training questions, then answers (D-PUP-8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from baselines.puppeteer.actions import to_facts
from baselines.puppeteer.config import Config
from baselines.puppeteer.policy import Policy, Snapshot
from baselines.puppeteer.rewards import utility
from baselines.puppeteer.rollout import Rollout
from baselines.puppeteer.trace import Trace
from baselines.puppeteer.update import learn
from harness.agents.trajectory import Context
from harness.benchmarks.items import Item
from harness.results import Answered
from harness.runner.method import Setting
from harness.training.checkpoint import Checkpoint
from harness.training.learning import Learning, refuse_other_choices, seeded, train
from harness.training.loop import Training, TrainingStep


class Puppeteer:
    """Ten agents on one backbone, and a policy that says which of them is next.

    Args:
        setting: Where it works; the row is a backbone.
        config: How the policy is trained and how it decides.

    Raises:
        UserError: The row is no backbone.
    """

    def __init__(self, setting: Setting, config: Config) -> None:
        self.config = config
        self._setting = setting
        self._parameters_b = setting.pool[setting.one_backbone].parameters_b
        self._policy: Snapshot | None = None

    @property
    def policy(self) -> Snapshot:
        """The policy as it decides now.

        Raises:
            RuntimeError: It was neither trained nor loaded.
        """
        if self._policy is None:
            raise RuntimeError("the policy has no weights yet: call fit or load first")
        return self._policy

    async def solve(self, item: Item, context: Context) -> str:
        """One question, with actions chosen as ``selection`` says; the policy is frozen (D-PUP-8)."""
        greedy = self.config.selection == "greedy"
        return await Rollout(self.policy, self._setting.backbone, self.config, greedy=greedy).solve(item, context)

    def utility(self, answered: Answered) -> float:
        """The discounted rewards of a question: its verdict, less what its steps cost (D-PUP-6)."""
        return utility(answered, self._parameters_b, self.config)

    def load(self, checkpoint: Checkpoint) -> None:
        """Take over a trained policy.

        Raises:
            UserError: It was trained with other actions.
        """
        self._policy = self.restored(checkpoint).network.snapshot()

    async def fit(self, training: Training) -> None:
        """Train for the epochs of the benchmark, a checkpoint after each."""
        batch = self.config.batch if self.config.update == "batched" else 1
        network = await train(self, training, epochs=self._setting.epochs(self.config.epochs), batch=batch)
        self._policy = network.snapshot()

    async def begin(self, training: Training) -> Learning[Policy]:
        """A policy as initialised by the training seed."""
        return Learning(seeded(Policy, "puppeteer", "initial weights", training.seed), self.config.lr)

    def restored(self, checkpoint: Checkpoint) -> Learning[Policy]:
        """A policy as a checkpoint left it.

        Raises:
            UserError: It was trained with other actions.
        """
        refuse_other_choices(checkpoint.facts, self.facts())
        learning = Learning(Policy(), self.config.lr)
        learning.restore(checkpoint.tensors)
        return learning

    def facts(self) -> dict[str, list[list[str]]]:
        """The actions that a trained policy is bound to."""
        return to_facts()

    def rollouts(self, network: Policy) -> Callable[[], Rollout]:
        """Walks of the policy as it is now, with actions sampled."""
        policy = network.snapshot()
        return lambda: Rollout(policy, self._setting.backbone, self.config)

    def learn(
        self, learning: Learning[Policy], answered: Sequence[Answered], traces: Sequence[Trace], step: TrainingStep
    ) -> dict[str, float]:
        """One step of the optimiser."""
        return learn(learning, answered, traces, self._parameters_b, self.config)


def build(setting: Setting, config: Config) -> Puppeteer:
    """The method for one row."""
    return Puppeteer(setting, config)
