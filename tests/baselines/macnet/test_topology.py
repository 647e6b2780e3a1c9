from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baselines.macnet import between_terminals, graph_of
from tests.baselines.macnet.model import TOPOLOGIES, edges_of, longest_path

ANY_SIZE = st.integers(1, 12)
ANY_TOPOLOGY = st.sampled_from(TOPOLOGIES)


@pytest.mark.parametrize(
    ("topology", "predecessors", "leaves", "temperatures"),
    [
        ("chain", ((), (0,), (1,), (2,), (3,), (4,)), (5,), (1, 0.8, 0.6, 0.4, 0.2, 0)),
        ("star", ((), (0,), (0,), (0,), (0,), (0,)), (1, 2, 3, 4, 5), (1, 0, 0, 0, 0, 0)),
        ("tree", ((), (0,), (0,), (1,), (1,), (2,)), (3, 4, 5), (1, 0.5, 0.5, 0, 0, 0)),
        ("complete", ((), (0,), (0, 1), (0, 1, 2), (0, 1, 2, 3), (0, 1, 2, 3, 4)), (5,), (1, 0.8, 0.6, 0.4, 0.2, 0)),
    ],
)
def test_six_agents(topology: str, predecessors: object, leaves: object, temperatures: tuple[float, ...]) -> None:
    graph = graph_of(topology, 6)  # type: ignore[arg-type]
    assert graph.predecessors == predecessors
    assert graph.leaves == leaves
    assert graph.temperatures == pytest.approx(temperatures)


@given(ANY_TOPOLOGY, ANY_SIZE)
def test_any_size(topology: str, agents: int) -> None:
    graph = graph_of(topology, agents)  # type: ignore[arg-type]
    edges = [(before, node) for node in graph.nodes for before in graph.predecessors[node]]
    assert len(graph.nodes) == agents
    assert edges == edges_of(topology, agents)
    assert graph.depths == tuple(longest_path(node, edges) for node in range(agents))
    assert all(before < node for before, node in edges)


@given(ANY_TOPOLOGY, ANY_SIZE)
def test_terminals(topology: str, agents: int) -> None:
    """Depths with a source in front, as if it were a node of its own."""
    graph = graph_of(topology, agents)  # type: ignore[arg-type]
    whole = between_terminals(graph)
    edges = [(-1, 0), *edges_of(topology, agents), *((leaf, agents) for leaf in graph.leaves)]
    depths = [longest_path(node, edges) for node in range(agents + 1)]
    assert whole.depths == tuple(depths)
    assert whole.leaves == (agents,)
    assert whole.temperatures == pytest.approx([1 - depth / depths[-1] for depth in depths])


def test_one_agent_alone_is_cold() -> None:
    for topology in TOPOLOGIES:
        assert graph_of(topology, 1).temperatures == (0.0,)  # type: ignore[arg-type]
