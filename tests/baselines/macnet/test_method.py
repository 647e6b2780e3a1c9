from __future__ import annotations

from typing import Any

import pytest

from baselines import macnet
from baselines.macnet import Config, build
from harness.errors import UserError
from harness.runner import config
from harness.runner import method as harness_method
from tests.baselines.macnet.model import Digesting, solve
from tests.scripted import setting

ROWS = ("qwen-2.5-14B", "qwen-2.5-32B")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"topology": "net"}, "topology: 'net' should be 'chain', 'star', 'tree' or 'complete'"),
        ({"topology": "tree", "agents": 0}, "agents: 0 should be greater than 0"),
        ({"topology": "tree", "agents": 2.5}, "agents: 2.5 should be a whole number"),
        ({"topology": "tree", "schedule": "released"}, "schedule: 'released' should be 'textbook' or 'official'"),
        ({}, "topology: missing; add it"),
    ],
)
def test_a_wrong_configuration_is_one_line(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        harness_method.build("baselines.macnet", setting(), given)


def test_a_benchmark_of_a_domain_without_checks_is_one_line() -> None:
    with pytest.raises(UserError, match="unknown domain of critics 'Musik'; known: Code, Commonsense, Math"):
        build(setting(domain="Musik"), Config(topology="chain"))


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


def test_the_rows_stand_after_the_single_calls() -> None:
    keys = list(config.methods())
    assert keys[: keys.index("macnet_chain")] == ["single", "cot", "complex_cot"]
