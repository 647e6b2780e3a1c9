"""Settings, and training and test end to end."""

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gmr.config import Config
from gmr.method import GMR
from harness.agents import rng
from harness.errors import UserError
from harness.runner.config import methods
from harness.runner.setting import Matched, settings_of
from harness.scripted import backbones, setting
from tests.fixtures import ITEMS, Client, answered_by, questions, right_if, runtime, trained
from tests.gmr.fixtures import MODULES, method


async def fitted(folder: Path, client: Any, number: int = 4, **changes: Any) -> GMR:
    small = {"batch": 2, "group": 2, "max_depth": 3}
    return await trained(method(**{**small, **changes}), folder, client, questions(number, "t"))


async def test_a_backbone_that_is_always_wrong_and_dearer_is_given_up(tmp_path: Path) -> None:
    async def share(router: GMR) -> float:
        answered = await answered_by(router, client, ITEMS)
        drawn = [choice for a in answered for choice in a.trajectory.decisions if choice.name == "backbone"]
        probabilities = [math.exp(choice.log_prob) for choice in drawn]
        pairs = zip(drawn, probabilities, strict=True)
        return float(np.mean([p if choice.choice == "large" else 1 - p for choice, p in pairs]))

    client = Client(right_if("small"), tokens=(1000, 300))
    learned = await fitted(tmp_path, client, 16, batch=4, group=6)
    untrained = await fitted(tmp_path, client, max_epochs=0)
    assert await share(untrained) > 0.3
    assert await share(learned) < 0.1
    answered = await answered_by(learned, client, ITEMS)
    assert sum(graded.verdict.correct for graded in answered) >= len(ITEMS) - 1


async def test_the_greedy_switch_rules_the_test_and_not_the_training(tmp_path: Path) -> None:
    """Of one question, greedy decisions are the same whatever the seed of the draws, and each the most probable."""
    decided, tables = {}, []
    for decode in ("sample", "greedy"):
        gmr = await fitted(tmp_path / decode, Client(), 2, decode=decode)
        tables.append((tmp_path / decode / "training_decisions.parquet").read_bytes())
        contexts = [runtime(Client(), seed).context(ITEMS[0]) for seed in range(8)]
        decided[decode] = {context.close(await gmr.solve(ITEMS[0], context)).decisions for context in contexts}
    assert tables[0] == tables[1]
    assert len(decided["greedy"]) == 1 < len(decided["sample"])
    [greedy] = decided["greedy"]
    gates = [decision for decision in greedy if decision.options == 2]
    assert {decision.name for decision in gates} >= {"backbone", "write", "halt"}
    assert all(decision.log_prob >= math.log(0.5) for decision in gates)


ENTRIES = {key: entry for key, entry in methods().items() if entry.module == "gmr"}
HALF = {"Math": 6, "Code": 4, "Commonsense": 3}


def test_each_ablation_switches_off_what_its_name_says_and_nothing_else() -> None:
    full = ENTRIES["gmr"].config
    for switch in MODULES:
        assert Config(**ENTRIES[f"gmr_no_{switch}"].config) == Config(**{**full, switch: False})
    both = Config(**{**full, "retrieval_gate": False, "write_gate": False})
    assert Config(**ENTRIES["gmr_no_memory_gates"].config) == Config(**ENTRIES["full_history"].config) == both


def keys(seed: int = 0, **changes: Any) -> list[str]:
    gmr = GMR(setting("pool", seed=seed), Config(epochs={"default": 1}, **changes))
    choices = gmr.choices()
    assert choices["backbones"] == [[key, backbone.profile] for key, backbone in backbones().items()]
    assert choices["roles"] == [[role.key, role.profile] for role in gmr.pool.roles]
    return [role.key for role in gmr.pool.roles]


def test_roles_can_be_listed() -> None:
    listed = ["Math/Mathematician", "Code/ProgrammingExpert"]
    assert keys(roles=listed) == sorted(listed)
    with pytest.raises(UserError, match=r"unknown role 'Code/ProgramingExpert'; did you mean 'Code/ProgrammingExpert'"):
        keys(roles=["Code/ProgramingExpert"])
    with pytest.raises(UserError, match=r"roles lists the roles"):
        settings_of("gmr", {"epochs": {"default": 1}, "roles": listed, "role_pool": "domain"})


def test_half_of_the_roles_is_drawn_once_by_the_seed() -> None:
    drawn = keys(role_subset=HALF)
    assert Counter(key.split("/")[0] for key in drawn) == HALF
    assert drawn == sorted(drawn) == keys(role_subset=dict(reversed(HALF.items())))
    assert len({tuple(keys(seed, role_subset=HALF)) for seed in range(20)}) > 15
    assert set(keys(role_subset={"Math": 3})) < set(keys(role_subset={"Math": 6}))
    for count in (0, 13):
        with pytest.raises(UserError, match=f"asks for {count} roles of Math; choose between 1 and 12"):
            keys(role_subset={"Math": count})


async def test_a_random_router_that_matches_another_has_its_mean_depth(tmp_path: Path) -> None:
    """Every question has one or two steps, drawn by its number, and no role or backbone is preferred."""
    switches = methods()["random_matched"].config
    random = method(**{**switches, "max_depth": 3}, matched=Matched("gmr", 0.0, 1.25))
    client = Client()
    await trained(random, tmp_path, client, questions(1, "t"))
    items = questions(60)
    answered = await answered_by(random, client, items)
    depths = [trajectory.depth for trajectory, _ in answered]
    uniforms = [rng.uniform("0", "0", "0", "toy", item.id, "0", "one step more", "0") for item in items]
    assert depths == [1 + (uniform < 0.25) for uniform in uniforms]
    names = {decision.name for trajectory, _ in answered for decision in trajectory.decisions}
    assert names == {"role", "backbone"}
    with pytest.raises(UserError, match=r"the mean depth of gmr, 3\.10, which exceeds max_depth 3; raise"):
        method(**{**switches, "max_depth": 3}, matched=Matched("gmr", 0.0, 3.1))
