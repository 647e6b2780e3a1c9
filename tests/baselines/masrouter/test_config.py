from __future__ import annotations

import math
import re
from typing import Any

import pytest

from baselines.masrouter.config import Config
from harness.runner.config import methods
from tests.scripted import setting

ENTRIES = {key: entry for key, entry in methods().items() if entry.module == "baselines.masrouter"}
KEYS = ("math", "gsm_hard", "mbpp", "humaneval", "mmlu_pro")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": {"math": 5}}, "and one as default"),
        ({"epochs": {"default": 1.5}}, "expected whole numbers by benchmark"),
        ({"kappa": {"math": 100}}, "kappa is {'math': 100}; expected numbers of at least 0 by benchmark, and one as"),
        ({"kappa": {"default": -1}}, "expected numbers of at least 0"),
        ({"kappa": {"default": math.inf}}, "expected numbers of at least 0"),
        ({"kappa": {"default": "20"}}, "expected numbers of at least 0"),
        ({"batch": 0}, "batch is 0; expected a whole number of at least 1"),
        ({"max_agents": 0}, "max_agents is 0; expected a whole number of at least 1"),
        ({"max_agents": 27}, "max_agents is 27; expected at most 26"),
        ({"lr": -0.1}, "lr is -0.1; expected a number of at least 0"),
        ({"vae_weight": True}, "vae_weight is True; expected a number"),
        ({"visible_tests": "none"}, "visible_tests is 'none'; choose one of first, all"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        Config(**{"epochs": {"default": 1}, "kappa": {"default": 200}, **change})
    assert "\n" not in str(caught.value)


def test_the_released_values_are_the_defaults() -> None:
    made = Config(**ENTRIES["masrouter"].config)
    assert (made.batch, made.max_agents, made.lr, made.vae_weight) == (16, 6, 0.01, 0.001)
    assert made.visible_tests == "first"
    assert [setting(benchmark=key).of_benchmark(made.kappa) for key in KEYS] == [100, 200, 400, 200, 500]
    assert [setting(benchmark=key).epochs(made.epochs) for key in KEYS] == [5, 5, 10, 10, 10]


def test_each_variant_changes_what_its_name_says_and_nothing_else() -> None:
    whole = ENTRIES["masrouter"].config
    changes = {
        "masrouter_untrained": {"epochs": {"default": 0}},
        "masrouter_all_tests": {"visible_tests": "all"},
        "masrouter_kappa_20": {"kappa": {"default": 20}},
    }
    assert set(ENTRIES) == {"masrouter", *changes}
    for key, change in changes.items():
        assert Config(**ENTRIES[key].config) == Config(**{**whole, **change})
        assert (ENTRIES[key].rows, ENTRIES[key].trained) == (("pool",), True)
    cheap = Config(**ENTRIES["masrouter_kappa_20"].config)
    assert {setting(benchmark=key).of_benchmark(cheap.kappa) for key in KEYS} == {20}
