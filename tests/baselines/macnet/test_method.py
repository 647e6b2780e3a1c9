from __future__ import annotations

from typing import Any

import pytest

from baselines import macnet
from baselines.macnet import Config, between_terminals, build, graph_of
from harness.errors import UserError
from harness.runner import config
from harness.runner import method as harness_method
from tests.baselines.macnet.model import Digesting, edges_of, longest_path, solve
from tests.scripted import setting

ROWS = ("qwen-2.5-14B", "qwen-2.5-32B")


def test_a_wrong_configuration_is_one_line() -> None:
    for given, message in (
        ({"topology": "net"}, "topology: 'net' should be 'chain', 'star', 'tree' or 'complete'"),
        ({"topology": "tree", "agents": 0}, "agents: 0 should be greater than 0"),
    ):
        with pytest.raises(UserError, match=message):
            harness_method.build("baselines.macnet", setting(), given)
    with pytest.raises(UserError, match="unknown domain of critics 'Musik'; known: Code, Commonsense, Math"):
        build(setting(domain="Musik"), Config(topology="chain"))


@pytest.mark.parametrize(
    ("topology", "predecessors", "leaves", "temperatures"),
    [
        ("chain", ((), (0,), (1,), (2,), (3,), (4,)), (5,), (1, 0.8, 0.6, 0.4, 0.2, 0)),
        ("star", ((), (0,), (0,), (0,), (0,), (0,)), (1, 2, 3, 4, 5), (1, 0, 0, 0, 0, 0)),
        ("tree", ((), (0,), (0,), (1,), (1,), (2,)), (3, 4, 5), (1, 0.5, 0.5, 0, 0, 0)),
        ("complete", ((), (0,), (0, 1), (0, 1, 2), (0, 1, 2, 3), (0, 1, 2, 3, 4)), (5,), (1, 0.8, 0.6, 0.4, 0.2, 0)),
    ],
)
def test_the_graphs(topology: Any, predecessors: Any, leaves: Any, temperatures: tuple[float, ...]) -> None:
    graph = graph_of(topology, 6)
    assert (graph.predecessors, graph.leaves) == (predecessors, leaves)
    assert graph.temperatures == pytest.approx(temperatures)
    for agents in range(1, 10):
        graph = graph_of(topology, agents)
        edges = [(before, node) for node in graph.nodes for before in graph.predecessors[node]]
        assert edges == edges_of(topology, agents)
        assert graph.depths == tuple(longest_path(node, edges) for node in range(agents))
        # With terminals, a source stands in front as if it were a node of its own.
        whole = between_terminals(graph)
        edges = [(-1, 0), *edges, *((leaf, agents) for leaf in graph.leaves)]
        depths = [longest_path(node, edges) for node in range(agents + 1)]
        assert (whole.depths, whole.leaves) == (tuple(depths), (agents,))
        assert whole.temperatures == pytest.approx([1 - depth / depths[-1] for depth in depths])
    assert graph_of(topology, 1).temperatures == (0.0,)


@pytest.mark.parametrize(
    "critique", ["NO REVISION NEEDED", "  No revision needed.\n", "All hold.\n\n> **`No revision needed`**", " \n "]
)
def test_approval_and_silence_are_no_advice(critique: str) -> None:
    assert macnet.advice_in(critique) == ""


@pytest.mark.parametrize("critique", ["No revision needed, except for the sign.", "REVISION NEEDED"])
def test_approval_with_a_restriction_is_advice(critique: str) -> None:
    assert macnet.advice_in(f"\n{critique} ") == critique


@pytest.mark.parametrize("domain", ["Math", "Code", "Commonsense"])
async def test_critics_check_what_the_domain_of_the_benchmark_asks_for(domain: str) -> None:
    client = Digesting()
    await solve(client, "chain", 2, domain=domain)
    [critic] = [request.messages[0].content for request in client.requests if macnet.CRITICISE in str(request)]
    assert [name for name, checks in macnet.CHECKS.items() if checks in critic] == [domain]


def test_the_rows_of_the_tables() -> None:
    """Entries of the configuration, and what they are built into for each row."""
    entries = {key: entry for key, entry in config.methods().items() if entry.module == "baselines.macnet"}
    assert {key: (entry.title, dict(entry.config)) for key, entry in entries.items()} == {
        f"macnet_{topology}{suffix}": (f"MacNet-{topology.title()}{words}", {"topology": topology, **more})
        for topology in ("chain", "tree", "complete")
        for suffix, words, more in (("", "", {}), ("_official", ", official schedule", {"schedule": "official"}))
    }
    for entry in entries.values():
        assert (entry.rows, entry.trained, entry.calibrated) == (ROWS, False, False)
        built = harness_method.build(entry.module, setting("large"), entry.config)
        assert built.backbone == "large"
        assert len(built.graph.nodes) == (6 if built.schedule == "textbook" else 7)
