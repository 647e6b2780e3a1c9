"""AFlow as a method of the suite: it searches on the training questions, then the best workflow answers."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt, ValidationError

from baselines.aflow import search
from baselines.aflow.operators import Interpreter
from baselines.aflow.optimizer import Optimizer, Proposal, Situation, clipped
from baselines.aflow.search import Failure, Round
from baselines.aflow.workflow import check, start
from harness.agents import rng
from harness.agents.trajectory import Answered, Context, Episode, sample
from harness.benchmarks.items import Item
from harness.concurrency import gather
from harness.errors import UserError
from harness.files import Declaration, Share, told
from harness.runner.method import Setting
from harness.training.checkpoint import Checkpoint
from harness.training.loop import Attempt, Training, TrainingStep


class Config(Declaration):
    """The settings of AFlow, with the values of its authors' code."""

    optimizer: str | None = None  # backbone that proposes edits; ``None``: the one that runs the workflow (D-AF-1)
    max_rounds: NonNegativeInt = 20  # after the first, which scores the start workflow
    sample: PositiveInt = 4  # how many rounds a parent is drawn from
    uniform_share: Share = 0.3  # weight λ of the uniform part of that draw
    sharpness: NonNegativeFloat = 0.2  # factor α of a difference in score, in points, in the other part
    patience: PositiveInt = 5  # the search ends when the best rounds have stayed the same for this many in a row


logger = logging.getLogger(__name__)

SHOWN_FAILURES = 3
# More than are shown, so that rounds from the same parent see different ones.
KEPT_FAILURES = 8
_OUTPUT_LENGTH = 2000


class AFlow:
    """A search over workflows by edits of a model, and the workflow it chose."""

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
        self._optimizer = Optimizer(optimizer, setting.domain)
        # A round is a pass over the training questions, the first one too.
        self._rounds = setting.epochs({"default": 1 + config.max_rounds})

    async def solve(self, item: Item, context: Context) -> str:
        """Run the workflow on a question."""
        return await Interpreter(self.workflow, self._executor).solve(item, context)

    def utility(self, answered: Answered) -> float:
        """What the search maximises of one question: whether it is right, whatever it costs."""
        return float(answered.verdict.correct)

    def load(self, checkpoint: Checkpoint) -> None:
        """Take over the best workflow of a search, or the start; raises UserError for one of other questions."""
        try:
            best = search.best(_rounds(checkpoint))
            workflow = start(self._setting.domain) if best is None else best.tried
            check(workflow, self._setting.domain)
        except (KeyError, ValueError) as error:
            reason = told(error) if isinstance(error, ValidationError) else error
            raise UserError(
                f"the checkpoint holds no workflow for {self._setting.benchmark} ({reason}); train the method again"
            ) from error
        self.workflow = workflow

    async def fit(self, training: Training) -> None:
        """Search until the best rounds no longer change or the rounds are used up (D-AF-6)."""
        found = training.resume()
        rounds = [] if found is None else _rounds(found)
        if found is None:
            self._save(training, rounds)
        if self._rounds < 2:
            why = f"{self._rounds} of 2 rounds that a search takes at least, the first being of the start workflow"
            logger.warning("%s: nothing is searched: %s (limit.epochs, max_rounds)", self._setting.benchmark, why)
        while len(rounds) < self._rounds and not self._converged(rounds):
            rounds.append(await self._round(rounds, training))
            self._save(training, rounds)
        chosen = search.best(rounds)
        if chosen is not None:
            self.workflow = chosen.tried

    def _converged(self, rounds: Sequence[Round]) -> bool:
        return search.converged([score for score, _ in search.scored(rounds)], self._config.patience)

    def _save(self, training: Training, rounds: Sequence[Round]) -> None:
        chosen = search.best(rounds)
        facts = {
            "search": [one.model_dump(mode="json", by_alias=True) for one in rounds],
            "best": None if chosen is None else chosen.round,
            "optimizer": self._optimizer.backbone,
            "questions": len(training.items),
            "converged": self._converged(rounds),
        }
        training.save(len(rounds), {}, {}, facts)

    async def _round(self, rounds: Sequence[Round], training: Training) -> Round:
        if not rounds:
            first = Round(round=1, parent=None, status="scored", workflow=start(self._setting.domain))
            return await self._scored(first, rounds, training)
        begun = await self._begun(rounds, training)
        if begun.workflow is None:
            logger.warning("%s, round %d: nothing to try: %s", self._setting.benchmark, begun.round, begun.reason)
            return begun
        return await self._scored(begun, rounds, training)

    async def _begun(self, rounds: Sequence[Round], training: Training) -> Round:
        number = len(rounds) + 1
        items = {item.id: item for item in training.items}

        def situation(attempt: int) -> Situation:
            place = (str(training.seed), str(number), str(attempt))
            parent = self._parent(rounds, place)
            failures = _shuffled(parent.failures, "shown", *place)[:SHOWN_FAILURES]
            shown = [(items[failure.item], failure) for failure in failures]
            return Situation(parent, search.children(rounds, parent), shown)

        with training.timed("proposals"):
            proposal = await self._optimizer.propose(number, situation, training)
        return Round(
            round=number,
            parent=proposal.parent.round,
            status="scored" if proposal.workflow else "no_proposal",
            edit=proposal.edit,
            modification=proposal.modification,
            workflow=proposal.workflow,
            proposals=len(proposal.replies),
            proposal_cost=self._cost(proposal),
            reason=proposal.reason,
        )

    def _parent(self, rounds: Sequence[Round], place: tuple[str, ...]) -> Round:
        """The parent of one attempt of a round: every attempt draws its own, as upstream (D-AF-3)."""
        drawn_from = search.candidates(rounds, self._config.sample)
        scores = [score for score, _ in search.scored(drawn_from)]
        shares = search.probabilities(scores, self._config.uniform_share, self._config.sharpness)
        return drawn_from[sample(shares, rng.uniform("parent", *place))]

    def _cost(self, proposal: Proposal) -> float:
        backbone = self._setting.pool[self._optimizer.backbone]
        return sum(backbone.cost(reply.prompt_tokens, reply.completion_tokens) for reply in proposal.replies)

    async def _scored(self, begun: Round, rounds: Sequence[Round], training: Training) -> Round:
        """Run a workflow once on every training question (D-AF-6)."""
        solve = Interpreter(begun.tried, self._executor).solve
        episode = Episode(begun.round, 0)
        training.plan(len(training.items))
        with training.timed("validation"):
            attempts = await gather(training.attempt(solve, item, episode) for item in training.items)
        done = _graded(begun, rounds, attempts, training.seed)
        self._note(done, rounds, attempts, training)
        return done

    def _note(self, done: Round, rounds: Sequence[Round], attempts: Sequence[Attempt], training: Training) -> None:
        measures = {
            "score": done.score or 0.0,
            "parent": done.parent or 0,
            "best": max(score for score, _ in search.scored([*rounds, done])),
        }
        training.note(TrainingStep(done.round, done.round, self._rounds), measures, attempts)


def _graded(begun: Round, rounds: Sequence[Round], attempts: Sequence[Attempt], seed: int) -> Round:
    answered = [attempt.answered for attempt in attempts]
    score = 100 * sum(one.verdict.correct for one in answered) / len(answered)
    wrong = [
        Failure(
            item=one.trajectory.item.id,
            output=clipped(one.trajectory.answer, _OUTPUT_LENGTH),
            extracted=None if one.verdict.answer is None else clipped(one.verdict.answer, _OUTPUT_LENGTH),
        )
        for one in answered
        if not one.verdict.correct
    ]
    before = None if begun.parent is None else rounds[begun.parent - 1].score
    return begun.model_copy(
        update={
            "score": score,
            "success": None if before is None else score > before,
            "calls": sum(len(one.trajectory.calls) for one in answered),
            "cost": sum(one.trajectory.cost_total for one in answered),
            "failures": tuple(_shuffled(wrong, "kept", str(seed), str(begun.round))[:KEPT_FAILURES]),
        }
    )


def _rounds(checkpoint: Checkpoint) -> list[Round]:
    return [Round.model_validate(one) for one in checkpoint.facts["search"]]


def _shuffled(failures: Sequence[Failure], what: str, *place: str) -> list[Failure]:
    return sorted(failures, key=lambda failure: rng.uniform(f"failures {what}", *place, failure.item))


build = AFlow
