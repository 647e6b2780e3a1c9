"""One trajectory of Gated-Memory Routing: the paper's Algorithm 1, from the question to the aggregated answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gmr.config import Config, Pool
from gmr.router import Memory, Probabilities, Snapshot, State, Vector
from harness.agents.activation import act
from harness.agents.prompts import Record, team_prompt
from harness.agents.sampling import most_frequent
from harness.agents.trajectory import Context, Decision
from harness.benchmarks.items import Item
from harness.llm.request import Message


@dataclass(frozen=True, slots=True)
class Step:
    """The decisions of one step of Algorithm 1.

    Attributes:
        role: Index of the role in the router's pool.
        backbone: Index of the backbone in the router's pool.
        retrieved: For each record of S_{t-1}, in memory order, whether the agent saw it.
        response: Embedding y_t of the response, shape (384,).
        written: Whether the response was stored.
        halted: The halting draw; ``None`` where none is made (t = φ, or halting switched off).
        log_prob: Sum of the log-probabilities of the draws of this step, as sampled.
    """

    role: int
    backbone: int
    retrieved: tuple[bool, ...]
    response: Vector
    written: bool
    halted: bool | None
    log_prob: float


@dataclass(frozen=True, slots=True)
class Trace:
    """One trajectory: the embedding of the question, shape (384,), and its 1 to φ steps."""

    question: Vector
    steps: tuple[Step, ...]


INSTRUCTION = (
    "You close the work of a team. Weigh the analyses and results your colleagues stored, find the errors in them, and "
    "commit to the single most reliable answer; where nothing they stored convinces you, answer on your own."
)
NOTHING_STORED = "No stored records: none of your colleagues' contributions was kept."


def aggregator_prompt(rules: str, item: Item, records: Sequence[Record]) -> tuple[Message, ...]:
    """The final call: the question and the stored records, or an explicit line that there are none."""
    return team_prompt((INSTRUCTION, rules), item, records, "" if records else NOTHING_STORED)


class Rollout:
    """Walks one question through Algorithm 1 with a policy that does not change, and keeps the trace of its decisions.

    Greedy takes the most probable choice, and gates at one half, instead of sampling.
    """

    def __init__(self, policy: Snapshot, pool: Pool, config: Config, *, greedy: bool = False) -> None:
        self._policy = policy
        self._pool = pool
        self._config = config
        self._greedy = greedy
        self._question: Vector
        self._steps: list[Step] = []
        self._stored: list[Record] = []
        self._last: Record

    @property
    def trace(self) -> Trace:
        """The decisions made, complete once :meth:`solve` has returned."""
        return Trace(self._question, tuple(self._steps))

    async def solve(self, item: Item, context: Context) -> str:
        """Act until halted or φ steps are done, then aggregate what was stored; no step is cut short (D-GMR-4)."""
        self._question = await context.embed(item.question)
        state = self._policy.begin(self._question)
        memory, halted = await self._step(state, item, context)
        while not halted and len(self._steps) < self._config.max_depth:
            memory, halted = await self._step(await self._policy.state(memory), item, context)
        backbone = most_frequent([self._pool.backbones[step.backbone].key for step in self._steps])
        records = self._stored
        if not records and self._config.empty_memory == "last_response":
            records = [self._last]
        prompt = aggregator_prompt(context.rules, item, records)
        step = len(self._steps) + 1
        reply = await context.ask(backbone, prompt, step=step, purpose="aggregate", kind="aggregate", is_step=False)
        return reply.text

    async def _step(self, state: State, item: Item, context: Context) -> tuple[Memory, bool]:
        draw = _Draws(context, len(self._steps) + 1, greedy=self._greedy)
        role = self._choose(draw, "role", self._policy.roles(state), self._config.role_allocator)
        probabilities = self._policy.backbones(state, role)
        backbone = self._choose(draw, "backbone", probabilities, self._config.llm_router)
        retrieved = draw.gates("retrieve", self._policy.retrieval(state, role, backbone), len(self._stored))
        seen = [record for record, kept in zip(self._stored, retrieved, strict=True) if kept]
        its_role, its_backbone = self._pool.roles[role], self._pool.backbones[backbone]
        text = await act(its_role, its_backbone.key, item, seen, context, step=draw.step)
        response = await context.embed(text)
        written = draw.gate("write", self._policy.write(state, response), otherwise=True)
        self._last = Record(its_role.name, text)
        if written:
            self._stored.append(self._last)
        memory, halting = self._policy.advance(state, role, backbone, response, written)
        halted = None if halting is None else draw.gate("halt", halting, otherwise=False)
        self._steps.append(Step(role, backbone, retrieved, response, written, halted, draw.log_prob))
        return memory, bool(halted)

    def _choose(self, draw: _Draws, name: str, probabilities: Probabilities, learned: bool) -> int:
        members = self._pool.roles if name == "role" else self._pool.backbones
        return draw.choice(name, probabilities, [member.key for member in members], learned=learned)


class _Draws:
    """The draws of one step, recorded at the context; adds up the log-probability of those a policy makes."""

    def __init__(self, context: Context, step: int, *, greedy: bool) -> None:
        self.step = step
        self.log_prob = 0.0
        self._context = context
        self._greedy = greedy

    def choice(self, name: str, probabilities: Probabilities, keys: list[str], *, learned: bool) -> int:
        """Draw one of several; a uniform draw of a module that is off has no part in the log-probability."""
        # A draw that no policy makes stays a draw when the policy is greedy: there is nothing to prefer.
        index = self._context.draw(self.step, name, keys, probabilities, greedy=self._greedy and learned)
        log_prob = math.log(probabilities[index])
        self._context.decide(Decision(self.step, name, 0, keys[index], len(keys), log_prob))
        self.log_prob += log_prob if learned else 0.0
        return index

    def gate(self, name: str, probability: float | None, slot: int = 0, *, otherwise: bool) -> bool:
        """Draw open or closed; a gate that is off (``None``) draws nothing."""
        if probability is None:
            return otherwise
        is_open = self._context.bernoulli(self.step, name, probability, slot, greedy=self._greedy)
        log_prob = math.log(probability) if is_open else math.log1p(-probability)
        self._context.decide(Decision(self.step, name, slot, "yes" if is_open else "no", 2, log_prob))
        self.log_prob += log_prob
        return is_open

    def gates(self, name: str, probabilities: Probabilities | None, count: int) -> tuple[bool, ...]:
        """One gate for each of ``count`` records."""
        if probabilities is None:
            return (True,) * count
        return tuple(self.gate(name, float(p), slot, otherwise=True) for slot, p in enumerate(probabilities))
