"""Settings and choices of a router."""

import re
from collections import Counter
from typing import Any

import pytest

from gmr.config import Config, pool_of
from harness.agents.roles import by_domain, catalogue
from harness.errors import UserError
from harness.runner.config import methods
from harness.runner.method import settings_of
from tests.gmr.fixtures import MODULES
from tests.scripted import backbones, setting

ENTRIES = {key: entry for key, entry in methods().items() if entry.module == "gmr"}
HALF = {"Math": 6, "Code": 4, "Commonsense": 3}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": "cosin"}, "score: 'cosin' should be 'dot' or 'cosine'; did you mean 'cosine'?"),
        ({"group": 0}, "group: 0 should be greater than 0"),
        ({"role_subset": {"Code": 2}, "role_pool": "domain"}, "role_pool cannot be 'domain' beside it"),
        (
            {"epochs": {"math": 5}},
            "epochs: {'math': 5} has no `default`, for the benchmarks that are not named; add one",
        ),
        ({"epoch": {"default": 1}}, "unknown key 'epoch'; did you mean 'epochs'?"),
    ],
)
def test_a_value_that_makes_no_sense_is_one_line(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=rf"^config/methods\.yaml, config of gmr: .*{re.escape(message)}$"):
        settings_of("gmr", {"epochs": {"default": 1}, **change})


def test_the_paper_s_values_are_the_defaults() -> None:
    made = Config(**ENTRIES["gmr"].config)
    assert (made.batch, made.group, made.max_depth, made.lr, made.vae_weight) == (16, 6, 6, 0.01, 0.001)
    keys = ("math", "gsm_hard", "mbpp", "humaneval", "mmlu_pro")
    assert [setting(benchmark=key).epochs(made.epochs) for key in keys] == [5, 5, 10, 10, 10]
    assert all(getattr(made, switch) for switch in MODULES)


def test_each_ablation_switches_off_what_its_name_says_and_nothing_else() -> None:
    full = ENTRIES["gmr"].config
    for switch in MODULES:
        assert Config(**ENTRIES[f"gmr_no_{switch}"].config) == Config(**{**full, switch: False})
    both = Config(**{**full, "retrieval_gate": False, "write_gate": False})
    assert Config(**ENTRIES["gmr_no_memory_gates"].config) == Config(**ENTRIES["full_history"].config) == both


def keys(seed: int = 0, domain: str = "Math", **changes: Any) -> list[str]:
    pool = pool_of(Config(epochs={"default": 1}, **changes), setting("pool", seed=seed, domain=domain))
    facts = pool.to_facts()
    assert facts["backbones"] == [[key, backbone.profile] for key, backbone in backbones().items()]
    assert facts["roles"] == [[role.key, role.profile] for role in pool.roles]
    return [role.key for role in pool.roles]


def test_the_pool_is_the_catalogue_or_the_roles_of_the_domain() -> None:
    assert keys() == sorted(role.key for role in catalogue())
    assert len(keys()) == 26
    for domain, count in {"Math": 12, "Code": 7, "Commonsense": 7}.items():
        found = keys(domain=domain, role_pool="domain")
        assert found == sorted(role.key for role in by_domain(domain))
        assert len(found) == count


def test_half_of_the_roles_is_drawn_once_by_the_seed() -> None:
    drawn = keys(role_subset=HALF)
    assert Counter(key.split("/")[0] for key in drawn) == HALF
    assert drawn == sorted(drawn) == keys(role_subset=dict(reversed(HALF.items())))
    assert len({tuple(keys(seed, role_subset=HALF)) for seed in range(20)}) > 15
    assert set(keys(role_subset={"Math": 3})) < set(keys(role_subset={"Math": 6}))
    for count in (0, 13):
        with pytest.raises(UserError, match=f"asks for {count} roles of Math; choose between 1 and 12"):
            keys(role_subset={"Math": count})
