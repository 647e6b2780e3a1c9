"""From a prompt that has been read to the text of the reply."""

from __future__ import annotations

import math
import string
from dataclasses import dataclass

from harness import rng
from harness.rng import Stream
from harness.simulator import prose, tokens
from harness.simulator.answers import Answers
from harness.simulator.lengths import log_location
from harness.simulator.model import affinity, difficulty, evidence, fit, overload, sigmoid
from harness.simulator.parameters import Kind, Parameters
from harness.simulator.reading import Reading
from harness.simulator.weighing import agreeing, last_stance, weigh, wrong_answers_shown
from harness.simulator.world import World

# Turns that prepare or judge an answer without committing to one.
_PREPARATORY: frozenset[Kind] = frozenset({"plan", "critique", "search"})
_LETTERS = string.ascii_uppercase


@dataclass(frozen=True)
class Writer:
    """Writes replies.

    Attributes:
        world: The calibrated world.
        length_scale: Factor on every target length.
    """

    world: World
    length_scale: float

    def write(self, backbone: str, reading: Reading, key: str) -> str:
        """The reply of a backbone to a prompt.

        Args:
            backbone: Key of the backbone.
            reading: The prompt, understood.
            key: Identity of the request; fixes every draw.
        """
        if reading.item is None:
            return self._generic(key)
        answers = self.world.answers(reading.item)
        length = self._length(backbone, reading, reading.item.benchmark, key)
        stream = Stream("prose", key)
        if reading.kind == "search":
            return ", ".join(prose.keywords(reading.item.question, stream))
        if reading.kind not in _PREPARATORY and rng.uniform("parsable", key) < self._parameters.unparsable_share:
            return prose.without_answer(length, stream)
        answer = self._answer(backbone, answers, reading, key)
        ending = self._ending(answers, reading, answer)
        body = prose.reasoning(
            reading.item.question, reading.kind, reading.style, length - tokens.count(ending), stream
        )
        return f"{body}\n\n{ending}" if body else ending

    def probability(self, backbone: str, answers: Answers, reading: Reading) -> float:
        """The probability that the answer of a parsable reply is right."""
        item, values = answers.item, self._parameters
        known = self.world.benchmarks[item.benchmark].calibration
        context = weigh(answers, reading, values)
        return sigmoid(
            values.slope * (known.ability[backbone] - difficulty(item.question, item.difficulty, values))
            + affinity(item.question, backbone, values)
            + (known.style[reading.style][backbone] if reading.style != "direct" else 0.0)
            + fit(reading.role, item.benchmark, item.question, values)
            + evidence(context, known.accuracy[backbone], reading.kind == "aggregate", values)
            - overload(context, values)
        )

    @property
    def _parameters(self) -> Parameters:
        return self.world.settings.parameters

    def _answer(self, backbone: str, answers: Answers, reading: Reading, key: str) -> str:
        if rng.uniform("correct", key) < self.probability(backbone, answers, reading):
            return answers.right
        shown = wrong_answers_shown(answers, reading)
        if shown and rng.uniform("copy", key) < self._parameters.copy_wrong_share:
            return shown[rng.index(len(shown), "copied", key)]
        return self._from_pool(answers, key)

    def _from_pool(self, answers: Answers, key: str) -> str:
        """A wrong answer; of programs, a stated share passes the visible examples where one of the pool does."""
        places = list(range(len(answers.wrong)))
        deceive = rng.uniform("visible", key) < self._parameters.visible_pass_share
        places = [place for place in places if answers.passes_visible[place] == deceive] or places
        weights = [self._parameters.wrong_weights[place] for place in places]
        return answers.wrong[places[rng.weighted(weights, "wrong", key)]]

    def _ending(self, answers: Answers, reading: Reading, answer: str) -> str:
        if reading.choice and reading.contributions:
            return f"Candidate {_LETTERS[agreeing(answers, reading, answer) % len(_LETTERS)]}"
        if reading.kind == "critique":
            return _verdict(answers, reading, answer)
        if reading.kind in _PREPARATORY:
            return f"Followed through, this leads to {answers.mention(answer)} in the end."
        final = answers.benchmark.present(answers.item, answer)
        if reading.program and answers.item.code is None:
            return f"```python\nanswer = {_literal(answer)}\n```\n\n{final}"
        return final

    def _length(self, backbone: str, reading: Reading, benchmark: str, key: str) -> float:
        known = self.world.benchmarks[benchmark]
        floors = (0,) if reading.kind in _PREPARATORY else tuple(known.floors)
        factor = self._parameters.kind_length[reading.kind] * self.length_scale
        return self._draw_length(known.tokens[reading.style][backbone] * factor, floors, key)

    def _draw_length(self, mean: float, floors: tuple[int, ...], key: str) -> float:
        sd = self._parameters.length_sd
        return math.exp(log_location(mean, sd, floors) + sd * rng.normal("length", key))

    def _generic(self, key: str) -> str:
        length = self._draw_length(self._parameters.generic_tokens * self.length_scale, (0,), key)
        return prose.without_answer(length, Stream("prose", key))


def _verdict(answers: Answers, reading: Reading, answer: str) -> str:
    """A critic that comes to the same answer as the turn it reads approves it; any other answer is its objection."""
    criticised = last_stance(answers, reading)
    if criticised is not None and answers.benchmark.same(answers.item, criticised.answer, answer):
        return f"I find no fault with it: {answers.mention(answer)} holds up."
    return f"That should be put right: the steps above lead to {answers.mention(answer)} instead."


def _literal(answer: str) -> str:
    try:
        float(answer)
    except ValueError:
        return repr(answer)
    return answer
