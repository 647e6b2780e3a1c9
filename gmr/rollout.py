"""One trajectory of Gated-Memory Routing (Algorithm 1), from the question to the aggregated answer."""

from __future__ import annotations

import math

import torch

from gmr.config import Config, Pool
from gmr.policy import Snapshot, Step, Trace
from gmr.router import Chance, Draw
from harness.agents.activation import act, most_frequent
from harness.agents.prompts import Record, team_prompt
from harness.agents.runtime import Context
from harness.agents.trajectory import Decision
from harness.benchmarks.items import Item
from harness.llm.request import Turn

AGGREGATOR_INSTRUCTION = (
    "You close the work of a team. Weigh the analyses and results your colleagues stored, find the errors in them, and "
    "commit to the single most reliable answer; where nothing they stored convinces you, answer on your own."
)
NOTHING_STORED = "No stored records: none of your colleagues' contributions was kept."


class GatedRollout:
    """One question through Algorithm 1."""

    def __init__(self, policy: Snapshot, pool: Pool, config: Config) -> None:
        self._policy = policy
        self._pool = pool
        self._config = config
        self.trace: Trace

    async def solve(self, item: Item, context: Context) -> str:
        """Run steps until halted or φ are done, aggregate the stored records, and return the answer (D-GMR-4)."""
        config, pool = self._config, self._pool
        temperature = None if config.sampling == "published" else 0.0
        steps: list[Step] = []
        memory: list[Record] = []
        log_prob, halted = 0.0, False
        question = await context.embed(item.question)
        state = self._policy.begin(question)
        while not halted and len(steps) < config.max_depth:
            step = len(steps) + 1
            chance = _chance(context, step, slots=state.tokens.shape[1])
            # Role ~ softmax, backbone ~ softmax, and for every record in memory whether it is seen ~ Bernoulli.
            state, agent = await self._policy.assign(state, chance)
            role_index, backbone_index = int(agent.role.choice), int(agent.backbone.choice)
            role, backbone = pool.roles[role_index], pool.backbones[backbone_index]
            retrieved = tuple(agent.retrieve.choice[0, : len(memory)].bool().tolist())
            seen = [record for record, is_seen in zip(memory, retrieved, strict=True) if is_seen]
            text = await act(role, backbone.key, item, seen, context, step=step, temperature=temperature)
            response = await context.embed(text)
            if config.write_gate and memory:
                # No decision of the policy, but what the write gate is to keep low: the similarity to what is stored.
                nearest = max(float(response @ earlier.response) for earlier in steps if earlier.written)
                context.decide(Decision(step, "redundancy", 0, f"{nearest:.4f}", 1, 0.0))
            # Written ~ Bernoulli, halted ~ Bernoulli.
            state, end = await self._policy.end_step(state, response, chance)
            written, halted = bool(end.write.choice), bool(end.halt.choice)
            if written:
                memory.append(Record(role.name, text))
            halting = halted if end.halt.drawn else None
            steps.append(Step(role_index, backbone_index, retrieved, response, written, halting))
            draws = {**agent._asdict(), **end._asdict()}
            log_prob += sum(self._record(context, step, name, draw) for name, draw in draws.items())
        self.trace = Trace(question, tuple(steps), log_prob)
        closing = "" if memory else NOTHING_STORED
        reply = await context.ask(
            most_frequent([pool.backbones[step.backbone].key for step in steps]),
            team_prompt((AGGREGATOR_INSTRUCTION, context.rules), item, memory, closing),
            Turn("aggregate"),
            step=len(steps) + 1,
            purpose="aggregate",
            is_step=False,
            temperature=temperature,
        )
        return reply.text

    def _record(self, context: Context, step: int, name: str, draw: Draw) -> float:
        """Record one decision of a step, by slot for retrieval; return its log-probability under the policy."""
        keys = {
            "role": [role.key for role in self._pool.roles],
            "backbone": [backbone.key for backbone in self._pool.backbones],
        }
        options = keys.get(name, ["no", "yes"])
        indices, log_probs = (values.flatten().tolist() for values in (draw.choice, draw.log_prob()))
        for slot, (index, log_prob) in enumerate(zip(indices, log_probs, strict=True)):
            if draw.drawn.flatten()[slot]:
                # If no module decides, the choice is uniform.
                recorded = -math.log(len(options)) if draw.log_probs is None else log_prob
                context.decide(Decision(step, name, slot, options[index], len(options), recorded))
        return math.fsum(log_probs)


def _chance(context: Context, step: int, slots: int) -> Chance:
    """Return the uniform numbers of one step, each fixed by seed, question, episode, step, decision and memory slot."""
    numbers = {name: [context.uniform(step, name)] for name in ("role", "backbone", "write", "halt")}
    retrieve = [[context.uniform(step, "retrieve", slot) for slot in range(slots)]]
    tensors = {name: torch.tensor(values, dtype=torch.float64) for name, values in numbers.items()}
    return Chance(**tensors, retrieve=torch.tensor(retrieve, dtype=torch.float64))
