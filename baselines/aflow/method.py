"""AFlow as a method of the suite: searches workflows on the training questions and tests the best one."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from jinja2 import StrictUndefined, Template
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt

from baselines.aflow import search
from baselines.aflow.edits import apply, in_short, parse_proposal, proposal_schema, repetition
from baselines.aflow.operators import run_workflow
from baselines.aflow.search import Failure, Round
from baselines.aflow.workflow import MOST_NODES, MOST_REPEATS, InvalidWorkflowError, offered, start
from harness.agents import rng
from harness.agents.trajectory import Episode, sample
from harness.concurrency import gather
from harness.errors import UserError
from harness.files import Declaration, Share
from harness.method import Answered, CallSpec, Context, Item, Message, Reply
from harness.runner.setting import Setting
from harness.training.loop import Learned, Training, TrainingStep


class Config(Declaration):
    """Settings of AFlow with the released values."""

    optimizer: str | None = None  # backbone that proposes edits; None: the executor (D-AF-1)
    max_rounds: NonNegativeInt = 20  # not counting round 1, which scores the initial workflow
    sample: PositiveInt = 4  # number of candidate parents
    uniform_share: Share = 0.3  # weight λ of the uniform distribution over parents
    sharpness: NonNegativeFloat = 0.2  # factor α on score differences (percentage points) in the softmax
    patience: PositiveInt = 5  # number of rounds without a change of the best scores that ends the search


SHOWN_FAILURES = 3
# More than SHOWN_FAILURES, so that rounds with the same parent see different failures.
KEPT_FAILURES = 8
MOST_ASKS = 3
MOST_UNUSABLE = 2
PURPOSE = "optimizer"
FAILED = "the optimizer's call failed, with a response format and without one"
TEMPERATURE = 0.7
_STORED = 2000  # characters of an answer stored in a round


class Situation(NamedTuple):
    """Input of a proposal: the parent round, the rounds that edited it, and questions it failed."""

    parent: Round
    children: Sequence[Round]
    failures: Sequence[tuple[Item, Failure]]


class AFlow:
    """Search over workflows edited by a model. Answers with the best workflow."""

    def __init__(self, setting: Setting, config: Config) -> None:
        self._executor = setting.one_backbone
        optimizer = config.optimizer or self._executor
        if optimizer not in setting.pool:
            raise UserError(
                f"optimizer is {optimizer!r}; expected one of {', '.join(setting.pool)}; name further backbones under "
                "`further_backbones` of its entry"
            )
        self.workflow = start(setting.domain)
        self._setting = setting
        self._config = config
        self._optimizer = setting.pool[optimizer]
        # Every round, including the first, is one pass over the training questions.
        self._most_rounds = setting.epochs({"default": 1 + config.max_rounds})

    async def solve(self, item: Item, context: Context) -> str:
        return await run_workflow(self.workflow, self._executor, context)

    def utility(self, answered: Answered) -> float:
        """1 if correct, else 0. Cost does not count."""
        return float(answered.verdict.correct)

    async def fit(self, training: Training) -> Learned:
        """Search until convergence or the maximum number of rounds (D-AF-6), and keep the best workflow."""
        rounds: list[Round] = []
        while len(rounds) < self._most_rounds and not search.converged(search.scores(rounds), self._config.patience):
            if rounds:
                entry = await self.propose(rounds, training)
            else:
                entry = Round(round=1, parent=None, status="scored", workflow=start(self._setting.domain))
            if entry.workflow is not None:
                entry = await self._score(entry, rounds, training)
            rounds.append(entry)
        if (best := search.best(rounds)) is not None:
            self.workflow = best.tried
        return Learned({}, {"search": [entry.model_dump(mode="json", by_alias=True) for entry in rounds]})

    async def propose(self, rounds: Sequence[Round], training: Training) -> Round:
        """Ask for an edit up to three times, but stop after two unusable replies (D-AF-3)."""
        # Reasons for refusals by parent round. The parent's next prompt lists them.
        refused: defaultdict[int, list[str]] = defaultdict(list)
        unusable, attempt = 0, 0
        while attempt < MOST_ASKS and unusable < MOST_UNUSABLE:
            episode = Episode(len(rounds) + 1, attempt)
            situation = self._situation(rounds, episode, training)
            parent = situation.parent
            reply = await self._ask(situation, refused[parent.round], episode, training)
            attempt += 1
            entry = Round(round=episode.epoch, parent=parent.round, status="no_proposal", reason=FAILED)
            if reply.error is not None:
                unusable += 1
                continue
            try:
                proposal = parse_proposal(reply.text)
                child = apply(proposal.edit, parent.tried, self._setting.domain)
                reason = repetition(proposal, child, parent, situation.children)
            except InvalidWorkflowError as error:
                reason, unusable = str(error), unusable + 1
            if not reason:
                edit, modification = in_short(proposal.edit, child), proposal.modification
                found = {"status": "scored", "edit": edit, "modification": modification, "workflow": child}
                return entry.model_copy(update={**found, "reason": ""})
            refused[parent.round].append(reason)
            entry = entry.model_copy(update={"reason": reason})
        return entry

    def _situation(self, rounds: Sequence[Round], episode: Episode, training: Training) -> Situation:
        """Draw parent and failures for one attempt. Every attempt draws anew, as upstream (D-AF-3)."""
        key = (str(training.seed), *map(str, episode))
        config, candidates = self._config, search.candidates(rounds, self._config.sample)
        probabilities = search.probabilities(search.scores(candidates), config.uniform_share, config.sharpness)
        parent = candidates[int(sample(probabilities, rng.uniform("parent", *key)))]
        items = {item.id: item for item in training.items}
        failures = _shuffled(parent.failures, "failures shown", *key)[:SHOWN_FAILURES]
        children = [entry for entry in rounds if entry.parent == parent.round and entry.workflow is not None]
        return Situation(parent, children, [(items[failed.item], failed) for failed in failures])

    async def _ask(self, situation: Situation, refused: Sequence[str], episode: Episode, training: Training) -> Reply:
        """Ask the optimizer with a response format and, if that fails, without it (D-AF-2, D-AF-3)."""
        domain = self._setting.domain
        draw = rng.index(1 << 31, PURPOSE, str(training.seed), *map(str, episode))
        schema = proposal_schema(situation.parent.tried, domain)
        with training.auxiliary_calls(PURPOSE, episode) as context:
            prompt = optimizer_prompt(situation, schema, domain, context.rules, refused)
            for slot, response_format in enumerate((response_format_of(schema), None)):
                spec = CallSpec(1, "propose", slot, temperature=TEMPERATURE, draw=draw, is_sample=True)
                reply = await context.ask(self._optimizer.key, prompt, spec, response_format)
                if reply.error is None:
                    break
        return reply

    async def _score(self, entry: Round, rounds: Sequence[Round], training: Training) -> Round:
        """Run a workflow once on every training question (D-AF-6). Returns the round with its score and failures."""

        async def solve(item: Item, context: Context) -> str:
            return await run_workflow(entry.tried, self._executor, context)

        training.expect_attempts(len(training.items))
        episode = Episode(entry.round, 0)
        attempts = await gather(training.attempt(solve, item, episode) for item in training.items)
        answered = [attempt.answered for attempt in attempts]
        score = 100 * sum(verdict.correct for _, verdict in answered) / len(answered)
        failures = [
            Failure(
                item=trajectory.item.id,
                output=clipped(trajectory.answer, _STORED),
                extracted=None if verdict.answer is None else clipped(verdict.answer, _STORED),
            )
            for trajectory, verdict in answered
            if not verdict.correct
        ]
        kept = _shuffled(failures, "failures kept", str(training.seed), str(entry.round))[:KEPT_FAILURES]
        measures = {"score": score, "parent": entry.parent or 0, "best": max([*search.scores(rounds), score])}
        training.log_update(TrainingStep(entry.round, entry.round, self._most_rounds), measures, attempts)
        return entry.model_copy(update={"score": score, "failures": tuple(kept)})


def _shuffled(failures: Sequence[Failure], *key: str) -> list[Failure]:
    return sorted(failures, key=lambda failure: rng.uniform(*key, failure.item))


build = AFlow


def optimizer_prompt(
    situation: Situation, schema: Mapping[str, Any], domain: str, rules: str, refused: Sequence[str]
) -> tuple[Message, ...]:
    """Build the optimizer's prompt, with the reasons why earlier proposals for the parent were refused."""
    system = _template("system").render(
        domain=domain,
        operators=offered(domain).values(),
        most_nodes=MOST_NODES,
        most_repeats=MOST_REPEATS,
        rules=rules,
    )
    user = _template("user").render(
        situation._asdict(),
        workflow=situation.parent.tried.model_dump_json(by_alias=True, indent=2),
        schema=orjson.dumps(schema).decode(),
        refused=refused,
        clipped=clipped,
    )
    return (Message("system", system), Message("user", user))


def _template(role: str) -> Template:
    source = Path(__file__).with_name(f"optimizer_{role}.j2").read_text(encoding="utf-8")
    return Template(source, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)


def clipped(text: str, length: int) -> str:
    """Cut the middle of a long text, since answers are mostly at the end."""
    text = text.strip()
    if len(text) <= length:
        return text
    return f"{text[: length // 3]} [...] {text[-(length - length // 3) :]}"


def response_format_of(schema: Mapping[str, Any]) -> str:
    """Build OpenAI's response_format for a schema, as JSON text."""
    proposal = {"name": "proposal", "strict": True, "schema": schema}
    return orjson.dumps({"type": "json_schema", "json_schema": proposal}).decode()
