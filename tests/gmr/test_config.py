"""Settings and choices of a router."""

import math
import re
from collections import Counter
from typing import Any

import pytest

from gmr.config import Config, pool_of
from harness.agents.roles import by_domain, catalogue
from harness.errors import UserError
from harness.runner.config import methods
from harness.runner.method import settings_of
from tests.scripted import backbones, setting

SWITCHES = ("role_allocator", "llm_router", "retrieval_gate", "write_gate", "halting")
ENTRIES = {key: entry for key, entry in methods().items() if entry.module == "gmr"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": "cosin"}, "score: 'cosin' should be 'dot' or 'cosine'; did you mean 'cosine'?"),
        ({"decode": "argmax"}, "decode: 'argmax' should be 'sample' or 'greedy'"),
        ({"empty_memory": ""}, "empty_memory: '' should be 'note' or 'last_response'"),
        ({"reward_cost": "total"}, "reward_cost: 'total' should be 'steps' or 'all'"),
        ({"role_pool": "Math"}, "role_pool: 'Math' should be 'all' or 'domain'"),
        ({"group": 0}, "group: 0 should be greater than 0"),
        ({"max_depth": True}, "max_depth: True should be a whole number"),
        ({"lambda_c": -1}, "lambda_c: -1 should be greater than or equal to 0"),
        ({"lr": math.nan}, "lr: nan should be a finite number"),
        ({"halting_bias": "0"}, "halting_bias: '0' should be a number"),
        ({"retrieval_gate": "off"}, "retrieval_gate: 'off' should be true or false"),
        ({"role_subset": {}}, "role_subset: {} should have at least 1 item"),
        ({"role_subset": {"Math": "6"}}, "role_subset.Math: '6' should be a whole number"),
        ({"role_subset": {"Code": 2}, "role_pool": "domain"}, "role_pool cannot be 'domain' beside it"),
        ({"epochs": {"math": 5}}, "epochs: {'math': 5} has no `default`"),
        ({"epochs": {"default": -1}}, "epochs.default: -1 should be greater than or equal to 0"),
        ({"epoch": {"default": 1}}, "unknown key 'epoch'; did you mean 'epochs'?"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=rf"^config/methods\.yaml, config of gmr: .*{re.escape(message)}") as caught:
        settings_of("gmr", {"epochs": {"default": 1}, **change})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("where", "at_most", "epochs"),
    [("math", None, 5), ("mbpp", None, 10), ("math", 1, 1), ("mbpp", 7, 7), ("math", 9, 5), ("math", 0, 0)],
)
def test_a_run_may_shorten_the_training_and_never_lengthens_it(where: str, at_most: int | None, epochs: int) -> None:
    its = setting(benchmark=where, max_epochs=at_most)
    assert its.epochs(Config(epochs={"default": 10, "math": 5}).epochs) == epochs


def test_the_paper_s_values_are_the_defaults() -> None:
    made = Config(**ENTRIES["gmr"].config)
    assert (made.batch, made.group, made.max_depth, made.lr, made.vae_weight) == (16, 6, 6, 0.01, 0.001)
    keys = ("math", "gsm_hard", "mbpp", "humaneval", "mmlu_pro")
    assert [setting(benchmark=key).epochs(made.epochs) for key in keys] == [5, 5, 10, 10, 10]
    assert all(getattr(made, switch) for switch in SWITCHES)


def test_each_ablation_switches_off_what_its_name_says_and_nothing_else() -> None:
    full = ENTRIES["gmr"].config
    for switch in SWITCHES:
        assert Config(**ENTRIES[f"gmr_no_{switch}"].config) == Config(**{**full, switch: False})
    both = Config(**{**full, "retrieval_gate": False, "write_gate": False})
    assert Config(**ENTRIES["gmr_no_memory_gates"].config) == Config(**ENTRIES["full_history"].config) == both


HALF = {"Math": 6, "Code": 4, "Commonsense": 3}


def config(**changes: object) -> Config:
    return Config(epochs={"default": 1}, **changes)  # type: ignore[arg-type]


def keys(seed: int = 0, **changes: object) -> list[str]:
    return [role.key for role in pool_of(config(**changes), setting("pool", seed=seed)).roles]


def test_all_roles_of_the_catalogue_in_alphabetical_order_and_the_backbones_of_the_preset() -> None:
    pool = pool_of(config(), setting("pool"))
    assert [role.key for role in pool.roles] == sorted(role.key for role in catalogue())
    assert len(pool.roles) == 26
    assert [backbone.key for backbone in pool.backbones] == list(backbones())


@pytest.mark.parametrize(("domain", "count"), [("Math", 12), ("Code", 7), ("Commonsense", 7)])
def test_the_pool_of_a_domain(domain: str, count: int) -> None:
    pool = pool_of(config(role_pool="domain"), setting("pool", domain=domain))
    assert {role.key for role in pool.roles} == {role.key for role in by_domain(domain)}
    assert len(pool.roles) == count


def test_half_of_the_roles_is_drawn_once_by_the_seed() -> None:
    drawn = keys(role_subset=HALF)
    assert Counter(key.split("/")[0] for key in drawn) == HALF
    assert drawn == sorted(drawn) == keys(role_subset=HALF)
    assert keys(role_subset=dict(reversed(HALF.items()))) == drawn
    others = {tuple(keys(seed, role_subset=HALF)) for seed in range(20)}
    assert len(others) > 15


def test_a_larger_subset_holds_the_smaller_one() -> None:
    assert set(keys(role_subset={"Math": 3})) < set(keys(role_subset={"Math": 6}))


@pytest.mark.parametrize("count", [0, 13])
def test_more_roles_than_there_are_is_one_line(count: int) -> None:
    with pytest.raises(UserError, match=f"asks for {count} roles of Math; choose between 1 and 12"):
        keys(role_subset={"Math": count})


def test_the_facts_name_every_choice_with_its_profile_in_the_order_of_the_indices() -> None:
    pool = pool_of(config(role_subset=HALF), setting("pool"))
    facts = pool.to_facts()
    assert facts["roles"] == [[role.key, role.profile] for role in pool.roles]
    assert facts["backbones"] == [[key, backbone.profile] for key, backbone in backbones().items()]
