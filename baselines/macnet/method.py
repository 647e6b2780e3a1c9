"""MacNet as a method of the suite: one backbone on every node, nothing learned."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import PositiveInt

from baselines.macnet.exchange import Exchange
from baselines.macnet.official import official
from baselines.macnet.prompts import CHECKS
from baselines.macnet.textbook import textbook
from baselines.macnet.topology import Graph, Topology, between_terminals, graph_of
from harness.agents.trajectory import Context
from harness.benchmarks.items import Item
from harness.declarations import Declaration
from harness.errors import unknown
from harness.runner.method import Setting

Schedule = Literal["textbook", "official"]

_SCHEDULES: Mapping[Schedule, Callable[[Exchange], Awaitable[str]]] = {"textbook": textbook, "official": official}


class Config(Declaration):
    """What distinguishes the rows.

    Attributes:
        topology: ``chain``, ``star``, ``tree`` or ``complete``.
        agents: How many nodes the graph has.
        schedule: ``textbook`` for a scheduler that does what the idea says, ``official`` for that of the released
            code with its defects (D-MAC-1).
    """

    topology: Topology
    agents: PositiveInt = 6
    schedule: Schedule = "textbook"


@dataclass(frozen=True)
class MacNet:
    """Agents on a graph.

    Attributes:
        backbone: Key of the backbone behind all of them.
        graph: Where they stand, the virtual sink included where the schedule has one.
        schedule: The order in which they run.
        checks: What critics look at.
    """

    backbone: str
    graph: Graph
    schedule: Schedule
    checks: str

    async def solve(self, item: Item, context: Context) -> str:
        """The solution of the last node, or the one made from all leaves."""
        exchange = Exchange(self.graph, self.backbone, self.checks, item, context)
        return await _SCHEDULES[self.schedule](exchange)


def build(setting: Setting, config: Config) -> MacNet:
    """The method for one backbone.

    Raises:
        UserError: The benchmark is of a domain that critics have no rules for, or the row is the pool.
    """
    if setting.domain not in CHECKS:
        raise unknown("domain of critics", setting.domain, CHECKS, "baselines/macnet/prompts.py")
    graph = graph_of(config.topology, config.agents)
    if config.schedule == "official":
        graph = between_terminals(graph)
    return MacNet(setting.one_backbone, graph, config.schedule, CHECKS[setting.domain])
