"""A model whose reply is a digest of what it was shown, and the schedule written down a second time."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from baselines import macnet
from harness.agents.trajectory import Trajectory
from harness.benchmarks.items import Item
from harness.llm.request import Reply, Request
from harness.runner.method import build
from harness.simulator.reading import records
from tests import scripted
from tests.fixtures import Client

ITEM = Item(id="1", benchmark="gsm_hard", question="How many eggs?", gold="3.0")
RULES = "End with a line that says: The answer is <number>."
TOPOLOGIES = ["chain", "tree", "complete"]
KINDS = {macnet.SOLVE: "solve", macnet.CRITICISE: "critique", macnet.REVISE: "revise", macnet.MERGE: "merge"}


class Asked(NamedTuple):
    """One request, taken apart: what was asked for, every record it shows, the temperature, which sample."""

    kind: str
    shown: tuple[str, ...]
    temperature: float
    draw: int


def take_apart(request: Request) -> Asked:
    system, user = request.messages
    [kind] = [kind for text, kind in KINDS.items() if text in system.content]
    assert user.content.startswith(f"Question:\n{ITEM.question}")
    assert request.metadata.kind == {"merge": "aggregate"}.get(kind, kind)
    return Asked(kind, tuple(records(user.content)), round(request.temperature, 9), request.draw)


def reply_to(call: Asked) -> str:
    """Return a name no other request gets; a prompt that shows it shows this reply."""
    return f"{call.kind} {hashlib.sha256(repr(call).encode()).hexdigest()[:16]}"


class Digesting(Client):
    """Answers with digests, or with what ``instead`` gives; with a seed of latencies, in a random order of arrival."""

    def __init__(self, latency: int | None = None, instead: Callable[[Request], Reply | str | None] = lambda _: None):
        random = np.random.default_rng(latency)
        super().__init__(self._answer, late=lambda _: 0 if latency is None else int(random.integers(9)))
        self._instead = instead
        self.replies: dict[str, str] = {}

    @property
    def prompts(self) -> list[Asked]:
        return [take_apart(request) for request in self.requests]

    def _answer(self, backbone: str, request: Request) -> str | Reply:
        reply = self._instead(request)
        if reply is None:
            reply = reply_to(take_apart(request))
        self.replies[request.key] = reply if isinstance(reply, str) else reply.text
        return reply


async def solve(client: Any, topology: str, agents: int = 6, **changes: Any) -> Trajectory:
    config = {"topology": topology, "agents": agents}
    context = scripted.context(ITEM, client, RULES)
    return context.close(await build("baselines.macnet", scripted.setting(**changes), config).solve(ITEM, context))


def edges_of(topology: str, agents: int) -> list[tuple[int, int]]:
    """Return the edges, ordered by where they lead, then by where they come from."""
    edges = {
        "chain": [(node, node + 1) for node in range(agents)],
        "tree": [(node, child) for node in range(agents) for child in (2 * node + 1, 2 * node + 2)],
        "complete": [(node, later) for node in range(agents) for later in range(node + 1, agents)],
    }[topology]
    return sorted((edge for edge in edges if edge[1] < agents), key=lambda edge: edge[::-1])


def longest_path(node: int, edges: Sequence[tuple[int, int]]) -> int:
    return max((1 + longest_path(before, edges) for before, after in edges if after == node), default=0)


def textbook(topology: str, agents: int) -> tuple[str, list[Asked]]:
    """Return the answer and every request, one node after the other; each call that a node may need has a number."""
    edges, solutions, calls = edges_of(topology, agents), list[str](), list[Asked]()
    incoming = [[source for source, target in edges if target == node] for node in range(agents)]
    deepest = max(longest_path(node, edges) for node in range(agents))

    def ask(node: int, offset: int, kind: str, shown: Sequence[str], temperature: float) -> str:
        number = sum(3 * len(sources) + 1 for sources in incoming[:node]) + offset
        calls.append(Asked(kind, tuple(shown), round(temperature, 9), number if temperature else 0))
        return reply_to(calls[-1])

    for node, sources in enumerate(incoming):
        # One edge more comes from the released code's virtual source, and another one leads to its sink.
        heat = 1 - (1 + longest_path(node, edges)) / (1 + deepest + 1)
        candidates = [] if sources else [ask(node, 0, "solve", [], heat)]
        for edge, source in enumerate(sources):
            advice = ask(node, 2 * edge, "critique", [solutions[source]], heat)
            candidates.append(ask(node, 2 * edge + 1, "revise", [solutions[source], advice], heat))
        merged = len(candidates) > 1
        solutions.append(ask(node, 2 * len(sources), "merge", candidates, heat) if merged else candidates[0])
    final = [solutions[node] for node in range(agents) if all(source != node for source, _ in edges)]
    return (final[0] if len(final) == 1 else ask(agents, 0, "merge", final, 0.0)), calls
