"""The six modes against a table written down a second time, and the topologies against a graph built edge by edge."""

from __future__ import annotations

import itertools

import pytest

from baselines.masrouter.team import MODES, Mode, profiles
from harness.agents.roles import DOMAINS

BY_NAME = {mode.name: mode for mode in MODES}


def reachable(edges: set[tuple[int, int]], start: int) -> set[int]:
    found, pending = {start}, [start]
    while pending:
        at = pending.pop()
        pending += [b for a, b in edges if a == at and b not in found]
        found |= {b for a, b in edges if a == at}
    return found


def complete_without_cycles(agents: int) -> set[tuple[int, int]]:
    """Every ordered pair in turn, refused where it would close a cycle."""
    edges: set[tuple[int, int]] = set()
    for a, b in itertools.product(range(agents), repeat=2):
        if a not in reachable(edges, b):
            edges.add((a, b))
    return edges


def edges_of(mode: Mode, agents: int) -> set[tuple[int, int]]:
    return {(before, slot) for slot in range(agents) for before in mode.before(slot)}


@pytest.mark.parametrize("agents", range(1, 7))
def test_the_edges_of_every_mode(agents: int) -> None:
    expected = {
        "Chain": {(slot, slot + 1) for slot in range(agents - 1)},
        "FullConnected": complete_without_cycles(agents),
    }
    for mode in MODES:
        edges = edges_of(mode, agents)
        assert edges == expected.get(mode.name, set())
        layers = mode.layers(agents)
        assert [slot for layer in layers for slot in layer] == list(range(agents))
        turn = {slot: number for number, layer in enumerate(layers) for slot in layer}
        assert all(turn[before] < turn[slot] for before, slot in edges)
        assert len(layers) == (agents if mode.name in expected else 1)


def test_the_rest_of_the_table() -> None:
    assert list(BY_NAME) == ["IO", "CoT", "Chain", "FullConnected", "Debate", "Reflection"]
    assert {name: mode.rounds for name, mode in BY_NAME.items() if mode.rounds != 1} == {"Debate": 2}
    assert [name for name, mode in BY_NAME.items() if mode.note] == ["CoT", "Debate"]
    assert [name for name, mode in BY_NAME.items() if mode.second_call] == ["Reflection"]


def test_what_is_embedded_is_name_and_description() -> None:
    embedded = [mode.profile for mode in MODES]
    assert len(set(embedded)) == 6
    assert all(text == f"{mode.name} : {mode.description}" for text, mode in zip(embedded, MODES, strict=True))
    assert list(profiles()) == list(DOMAINS)
    assert all(text.startswith(f"{domain} : ") for domain, text in profiles().items())
