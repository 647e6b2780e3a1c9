"""One GMR trajectory, from question to aggregated answer (Algorithm 1)."""

import math
from collections.abc import Sequence

import torch

from gmr.config import Config, Pool
from gmr.router import Draw, Router, Uniforms
from gmr.training import Step, Trace, stack
from harness.agents.activation import Team, act, most_frequent
from harness.agents.prompts import Record, team_prompt
from harness.method import CallSpec, Context, Decision, Item

AGGREGATOR_INSTRUCTION = (
    "You close the work of a team. Weigh the analyses and results your colleagues stored, find the errors in them, and "
    "commit to the single most reliable answer; where nothing they stored convinces you, answer on your own."
)
NOTHING_STORED = "No stored records: none of your colleagues' contributions was kept."


class GatedRollout:
    """Algorithm 1 on one question with fixed router parameters. ``solve`` sets ``trace``."""

    def __init__(self, router: Router, pool: Pool, config: Config, *, greedy: bool = False) -> None:
        self._router = router
        self._pool = pool
        self._config = config
        self._greedy = greedy
        self.trace: Trace

    async def solve(self, item: Item, context: Context) -> str:
        """Act until the controller halts or step φ, then aggregate the stored records."""
        config, pool, router = self._config, self._pool, self._router
        temperature = None if config.sampling == "published" else 0.0
        steps: list[Step] = []
        memory: list[Record] = []
        log_prob, halted = 0.0, False
        question = await context.embed(item.question)
        with torch.inference_mode():
            latents, state = router.latents(), router.begin(stack([question]))
        while not halted and len(steps) < config.max_depth:
            step = len(steps) + 1
            uniforms = _uniforms(context, step, slots=state.tokens.shape[1])
            with torch.inference_mode():
                state, agent = router.assign(state, latents, uniforms, self._greedy)
            role_index, backbone_index = int(agent["role"].choice), int(agent["backbone"].choice)
            role, backbone = pool.roles[role_index], pool.backbones[backbone_index]
            retrieved = tuple(agent["retrieve"].choice[0, : len(memory)].bool().tolist())
            seen = [record for record, is_seen in zip(memory, retrieved, strict=True) if is_seen]
            spec, team = CallSpec(step, temperature=temperature), Team(tool_output=config.tool_output)
            text = await act(role, backbone.key, item, seen, context, spec, team)
            response = await context.embed(text)
            if config.write_gate and memory:
                # Logged with the decisions: the similarity to stored responses, which the write gate should lower.
                nearest = max(float(response @ earlier.response) for earlier in steps if earlier.written)
                context.decide(Decision(step, "redundancy", 0, f"{nearest:.4f}", 1, 0.0))
            with torch.inference_mode():
                state, end = router.end_step(state, latents, agent, stack([response]), uniforms, self._greedy)
            written, halted = bool(end["write"].choice), bool(end["halt"].choice)
            if written:
                memory.append(Record(role.name, text))
            halting = halted if end["halt"].drawn else None
            steps.append(Step(role_index, backbone_index, retrieved, response, written, halting))
            log_prob += sum(self._record(context, step, name, draw) for name, draw in {**agent, **end}.items())
        self.trace = Trace(question, tuple(steps), log_prob)
        used = [pool.backbones[step.backbone].key for step in steps]
        return await aggregate(item, memory, used, context, temperature=temperature)

    def _record(self, context: Context, step: int, name: str, draw: Draw) -> float:
        """Record one decision (for retrieval, one per slot) and return its log-probability."""
        roles, backbones = self._pool
        keys = {"role": [role.key for role in roles], "backbone": [backbone.key for backbone in backbones]}
        options = keys.get(name, ["no", "yes"])
        indices, log_probs = (values.flatten().tolist() for values in (draw.choice, draw.log_prob()))
        for slot, (index, log_prob) in enumerate(zip(indices, log_probs, strict=True)):
            if draw.drawn.flatten()[slot]:
                # If its module is off, the choice is uniform.
                recorded = -math.log(len(options)) if draw.log_probs is None else log_prob
                context.decide(Decision(step, name, slot, options[index], len(options), recorded))
        return math.fsum(log_probs)


async def aggregate(
    item: Item, memory: Sequence[Record], used: Sequence[str], context: Context, *, temperature: float | None = 0.0
) -> str:
    """Make the final aggregation call (appendix on the aggregator prompt; D-GMR-14).

    The most frequent backbone in ``used`` answers. Temperature None means the publisher's sampling parameters.
    """
    prompt = team_prompt((AGGREGATOR_INSTRUCTION, context.rules), item, memory, "" if memory else NOTHING_STORED)
    spec = CallSpec(len(used) + 1, "aggregate", temperature=temperature, is_step=False)
    return (await context.ask(most_frequent(used), prompt, spec)).text


def _uniforms(context: Context, step: int, slots: int) -> Uniforms:
    """Draw the uniform numbers of one step, keyed by seed, question, episode, step, decision and slot."""
    role, backbone, write, halt = (context.uniform(step, name) for name in ("role", "backbone", "write", "halt"))
    retrieve = [context.uniform(step, "retrieve", slot) for slot in range(slots)]
    numbers = ([number] for number in (role, backbone, retrieve, write, halt))
    return Uniforms(*(torch.tensor(row, dtype=torch.float64) for row in numbers))
