from collections import Counter

import pytest

from gmr.config import Config
from gmr.pool import pool_of
from harness.agents.roles import by_domain, catalogue
from harness.errors import UserError
from tests.scripted import backbones, setting

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
