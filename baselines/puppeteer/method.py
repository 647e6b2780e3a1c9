"""Puppeteer as a method of the suite: its policy learns from the training questions, then answers (D-PUP-8)."""

from __future__ import annotations

from collections.abc import Sequence

from baselines.puppeteer.actions import to_facts
from baselines.puppeteer.config import Config
from baselines.puppeteer.policy import Policy, Snapshot
from baselines.puppeteer.rewards import utility
from baselines.puppeteer.rollout import Rollout
from baselines.puppeteer.trace import Trace
from baselines.puppeteer.update import learn
from harness.agents.trajectory import Context, Episode
from harness.benchmarks.items import Item
from harness.concurrency import gather
from harness.results import Answered
from harness.runner.method import Setting
from harness.training.checkpoint import Checkpoint
from harness.training.learning import Learning, refuse_other_choices, seeded, updates
from harness.training.loop import Attempt, Place, Training


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
        self._policy = self._restored(checkpoint).network.snapshot()

    async def fit(self, training: Training) -> None:
        """Train for the epochs of the benchmark, a checkpoint after each."""
        found = training.resume()
        learning = self._begin(training) if found is None else self._restored(found)
        done = int(found.facts["epoch"]) if found else 0
        size = self.config.batch if self.config.update == "batched" else 1
        for place, questions, ends_epoch in updates(training, done, self._setting.epochs(self.config.epochs), size):
            await self._update(learning, training, questions, place)
            if ends_epoch:
                _save(training, place.epoch, learning)
        self._policy = learning.network.snapshot()

    def _begin(self, training: Training) -> Learning[Policy]:
        learning = Learning(seeded(Policy, "puppeteer", "initial weights", training.seed), self.config.lr)
        _save(training, 0, learning)
        return learning

    def _restored(self, checkpoint: Checkpoint) -> Learning[Policy]:
        refuse_other_choices(checkpoint.facts, to_facts())
        learning = Learning(Policy(), self.config.lr)
        learning.restore(checkpoint.tensors)
        return learning

    async def _update(
        self, learning: Learning[Policy], training: Training, questions: Sequence[Item], place: Place
    ) -> None:
        policy = learning.network.snapshot()

        async def rollout(item: Item) -> tuple[Attempt, Trace]:
            its = Rollout(policy, self._setting.backbone, self.config)
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
                self._parameters_b,
                self.config,
            )
        training.note(place, measures, attempts)


def _save(training: Training, epoch: int, learning: Learning[Policy]) -> None:
    training.save(epoch, learning.learned(), learning.moments(), to_facts())


def build(setting: Setting, config: Config) -> Puppeteer:
    """The method for one row."""
    return Puppeteer(setting, config)
