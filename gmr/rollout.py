"""One trajectory of Gated-Memory Routing (Algorithm 1), from the question to the aggregated answer."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from gmr.config import Config, Pool
from gmr.policy import Draw, Snapshot, Step, Trace
from gmr.router import State
from harness.agents.activation import act
from harness.agents.prompts import Record, team_prompt
from harness.agents.trajectory import Context, Decision
from harness.benchmarks.items import Item
from harness.llm.request import Turn

Array = NDArray[np.float64]

AGGREGATOR_INSTRUCTION = (
    "You close the work of a team. Weigh the analyses and results your colleagues stored, find the errors in them, and "
    "commit to the single most reliable answer; where nothing they stored convinces you, answer on your own."
)
NOTHING_STORED = "No stored records: none of your colleagues' contributions was kept."


class GatedRollout:
    """One question through Algorithm 1; ``greedy`` takes the most probable choice, and opens gates above one half."""

    def __init__(self, policy: Snapshot, pool: Pool, config: Config, *, greedy: bool = False) -> None:
        self._policy = policy
        self._pool = pool
        self._config = config
        self._greedy = greedy
        self._temperature = None if config.sampling == "published" else 0.0
        self._steps: list[Step] = []
        self._stored: list[Record] = []
        self.trace: Trace

    async def solve(self, item: Item, context: Context) -> str:
        """Run steps until halted or φ are done, aggregate the stored records, and return the answer (D-GMR-4)."""
        question = await context.embed(item.question)
        state, halted = self._policy.begin(question), False
        while not halted and len(self._steps) < self._config.max_depth:
            state, halted = await self._step(state, item, context)
        self.trace = Trace(question, tuple(self._steps), state.log_prob.item())
        # Of equally frequent backbones the first: a Counter keeps the order of first sight.
        [(backbone, _)] = Counter(self._pool.backbones[step.backbone].key for step in self._steps).most_common(1)
        closing = "" if self._stored else NOTHING_STORED
        reply = await context.ask(
            backbone,
            team_prompt((AGGREGATOR_INSTRUCTION, context.rules), item, self._stored, closing),
            Turn("aggregate"),
            step=len(self._steps) + 1,
            purpose="aggregate",
            is_step=False,
            temperature=self._temperature,
        )
        return reply.text

    async def _step(self, state: State, item: Item, context: Context) -> tuple[State, bool]:
        step, count = len(self._steps) + 1, len(self._stored)
        draw = self._draw(step, context)
        state, agent = await self._policy.assign(state, draw)
        retrieved = agent.retrieved[0, :count].tolist()
        records = [record for record, is_seen in zip(self._stored, retrieved, strict=True) if is_seen]
        role, backbone = self._pool.roles[int(agent.role)], self._pool.backbones[int(agent.backbone)]
        text = await act(role, backbone.key, item, records, context, step=step, temperature=self._temperature)
        response = await context.embed(text)
        if self._config.write_gate and self._stored:
            # No decision of the policy, but what the write gate is to keep low: the similarity to what is stored.
            nearest = max(float(response @ earlier.response) for earlier in self._steps if earlier.written)
            context.decide(Decision(step, "redundancy", 0, f"{nearest:.4f}", 1, 0.0))
        state, end = await self._policy.end_step(state, agent, response, draw)
        written, halted = bool(end.written), bool(end.halted)
        if written:
            self._stored.append(Record(role.name, text))
        halting = halted if self._config.halting and step < self._config.max_depth else None
        self._steps.append(Step(int(agent.role), int(agent.backbone), tuple(retrieved), response, written, halting))
        return state, halted

    def _draw(self, step: int, context: Context) -> Draw:
        """Return a function that makes and records the draws of one step."""
        pools = {
            "role": [role.key for role in self._pool.roles],
            "backbone": [backbone.key for backbone in self._pool.backbones],
        }

        def draw(name: str, log_probs: Array | None, slot: int = 0) -> int:
            keys = pools.get(name, ["no", "yes"])
            # A draw that no policy makes stays a draw when the policy is greedy: there is nothing to prefer.
            greedy = self._greedy and log_probs is not None
            if log_probs is None:
                log_probs = np.full(len(keys), -math.log(len(keys)))
            if name in pools:
                index = context.draw(step, name, keys, np.exp(log_probs), slot, greedy=greedy)
            else:
                index = int(context.bernoulli(step, name, math.exp(log_probs[1]), slot, greedy=greedy))
            context.decide(Decision(step, name, slot, keys[index], len(keys), float(log_probs[index])))
            return index

        return draw
