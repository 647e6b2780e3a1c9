"""AFlow as a method of the suite: a search on the training questions, whose best workflow answers the test."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt, ValidationError

from baselines.aflow import search
from baselines.aflow.operators import run_workflow
from baselines.aflow.optimizer import Optimizer, Situation, clipped
from baselines.aflow.search import Failure, Round
from baselines.aflow.workflow import check, start
from harness.agents import rng
from harness.agents.trajectory import Answered, Context, Episode, sample
from harness.benchmarks.items import Item
from harness.concurrency import gather
from harness.errors import UserError
from harness.files import Declaration, Share, first_error
from harness.runner.method import Setting
from harness.training.checkpoint import Checkpoint
from harness.training.loop import Attempt, Training, TrainingStep


class Config(Declaration):
    """Settings of AFlow, with the values of its authors' code."""

    optimizer: str | None = None  # backbone that proposes edits; None: the executor (D-AF-1)
    max_rounds: NonNegativeInt = 20  # after the first, which scores the start workflow
    sample: PositiveInt = 4  # number of rounds a parent is drawn from
    uniform_share: Share = 0.3  # weight λ of a uniform draw
    sharpness: NonNegativeFloat = 0.2  # factor α of score differences, in points, in the other part of the draw
    patience: PositiveInt = 5  # rounds without a change of the best ones that end the search


logger = logging.getLogger(__name__)

SHOWN_FAILURES = 3
# More than are shown, so that rounds from the same parent see different ones.
KEPT_FAILURES = 8
_OUTPUT_LENGTH = 2000


class AFlow:
    """Search over workflows by edits of a model, and the best workflow."""

    def __init__(self, setting: Setting, config: Config) -> None:
        self._executor = setting.one_backbone
        optimizer = config.optimizer or self._executor
        if optimizer not in setting.pool:
            raise UserError(
                f"optimizer is {optimizer!r}; expected one of {', '.join(setting.pool)}; name further backbones under "
                "`also_asks` of the entry in config/methods.yaml"
            )
        self.workflow = start(setting.domain)
        self._setting = setting
        self._config = config
        self._optimizer = Optimizer(setting.pool[optimizer], setting.domain)
        # A round is a pass over the training questions, the first one too.
        self._rounds = setting.epochs({"default": 1 + config.max_rounds})

    async def solve(self, item: Item, context: Context) -> str:
        """Return the answer of the workflow to a question."""
        return await run_workflow(self.workflow, self._executor, context)

    def utility(self, answered: Answered) -> float:
        """Return 1 for a right answer and 0 for a wrong one, whatever it costs."""
        return float(answered.verdict.correct)

    def load(self, checkpoint: Checkpoint) -> None:
        """Load the best workflow of a search, or the start workflow; UserError if it is for another domain."""
        try:
            best = search.best(_rounds(checkpoint))
            workflow = start(self._setting.domain) if best is None else best.tried
            check(workflow, self._setting.domain)
        except (KeyError, ValueError) as error:
            reason = first_error(error) if isinstance(error, ValidationError) else error
            raise UserError(
                f"the checkpoint holds no workflow for {self._setting.benchmark} ({reason}); train the method again"
            ) from error
        self.workflow = workflow

    async def fit(self, training: Training) -> None:
        """Search until the best rounds no longer change or the limit of rounds is reached (D-AF-6)."""
        checkpoint = training.resume()
        rounds = [] if checkpoint is None else _rounds(checkpoint)
        if checkpoint is None:
            self._save(training, rounds)
        if self._rounds < 2:
            why = f"{self._rounds} of 2 rounds that a search takes at least, the first being of the start workflow"
            logger.warning("%s: nothing is searched: %s (limit.epochs, max_rounds)", self._setting.benchmark, why)
        while len(rounds) < self._rounds and not self._converged(rounds):
            rounds.append(await self._round(rounds, training))
            self._save(training, rounds)
        best = search.best(rounds)
        if best is not None:
            self.workflow = best.tried

    def _converged(self, rounds: Sequence[Round]) -> bool:
        return search.converged([score for score, _ in search.scored(rounds)], self._config.patience)

    def _save(self, training: Training, rounds: Sequence[Round]) -> None:
        best = search.best(rounds)
        facts = {
            "search": [entry.model_dump(mode="json", by_alias=True) for entry in rounds],
            "best": None if best is None else best.round,
            "optimizer": self._optimizer.backbone.key,
            "questions": len(training.items),
            "converged": self._converged(rounds),
        }
        training.save(len(rounds), {}, {}, facts)

    async def _round(self, rounds: Sequence[Round], training: Training) -> Round:
        if not rounds:
            first = Round(round=1, parent=None, status="scored", workflow=start(self._setting.domain))
            return await self._score(first, rounds, training)
        entry = await self._propose(rounds, training)
        if entry.workflow is None:
            logger.warning("%s, round %d: nothing to try: %s", self._setting.benchmark, entry.round, entry.reason)
            return entry
        return await self._score(entry, rounds, training)

    async def _propose(self, rounds: Sequence[Round], training: Training) -> Round:
        number = len(rounds) + 1
        items = {item.id: item for item in training.items}

        def situation(attempt: int) -> Situation:
            place = (str(training.seed), str(number), str(attempt))
            parent = self._parent(rounds, place)
            failures = _shuffled(parent.failures, "shown", *place)[:SHOWN_FAILURES]
            questions = [(items[failure.item], failure) for failure in failures]
            return Situation(parent, search.children(rounds, parent), questions)

        with training.timed("proposals"):
            return await self._optimizer.propose(number, situation, training)

    def _parent(self, rounds: Sequence[Round], place: tuple[str, ...]) -> Round:
        """Draw the parent of one attempt of a round; every attempt has its own draw, as upstream (D-AF-3)."""
        candidates = search.candidates(rounds, self._config.sample)
        scores = [score for score, _ in search.scored(candidates)]
        probabilities = search.probabilities(scores, self._config.uniform_share, self._config.sharpness)
        return candidates[sample(probabilities, rng.uniform("parent", *place))]

    async def _score(self, entry: Round, rounds: Sequence[Round], training: Training) -> Round:
        """Run a workflow once on every training question (D-AF-6)."""

        async def solve(item: Item, context: Context) -> str:
            return await run_workflow(entry.tried, self._executor, context)

        episode = Episode(entry.round, 0)
        training.plan(len(training.items))
        with training.timed("validation"):
            attempts = await gather(training.attempt(solve, item, episode) for item in training.items)
        entry = _graded(entry, rounds, attempts, training.seed)
        best = max(score for score, _ in search.scored([*rounds, entry]))
        measures = {"score": entry.score or 0.0, "parent": entry.parent or 0, "best": best}
        training.note(TrainingStep(entry.round, entry.round, self._rounds), measures, attempts)
        return entry


def _graded(entry: Round, rounds: Sequence[Round], attempts: Sequence[Attempt], seed: int) -> Round:
    """Return a round with its score in percent, what its attempts cost, and a sample of its failures."""
    score = 100 * sum(answered.verdict.correct for _, answered in attempts) / len(attempts)
    failures = [
        Failure(
            item=trajectory.item.id,
            output=clipped(trajectory.answer, _OUTPUT_LENGTH),
            extracted=None if verdict.answer is None else clipped(verdict.answer, _OUTPUT_LENGTH),
        )
        for _, (trajectory, verdict) in attempts
        if not verdict.correct
    ]
    before = None if entry.parent is None else rounds[entry.parent - 1].score
    return entry.model_copy(
        update={
            "score": score,
            "success": None if before is None else score > before,
            "calls": sum(len(answered.trajectory.calls) for _, answered in attempts),
            "cost": sum(answered.trajectory.cost_total for _, answered in attempts),
            "failures": tuple(_shuffled(failures, "kept", str(seed), str(entry.round))[:KEPT_FAILURES]),
        }
    )


def _rounds(checkpoint: Checkpoint) -> list[Round]:
    return [Round.model_validate(entry) for entry in checkpoint.facts["search"]]


def _shuffled(failures: Sequence[Failure], what: str, *place: str) -> list[Failure]:
    return sorted(failures, key=lambda failure: rng.uniform(f"failures {what}", *place, failure.item))


build = AFlow
