from __future__ import annotations

import math
import re
from typing import Any

import pytest

from baselines.masrouter.method import Config
from harness.errors import UserError
from harness.runner.config import methods
from harness.runner.method import settings_of
from tests.scripted import setting

ENTRIES = {key: entry for key, entry in methods().items() if entry.module == "baselines.masrouter"}
KEYS = ("math", "gsm_hard", "mbpp", "humaneval", "mmlu_pro")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": {"math": 5}}, "epochs: {'math': 5} has no `default`"),
        ({"epochs": {"default": 1.5}}, "epochs.default: 1.5 should be a whole number"),
        ({"kappa": {"math": 100}}, "kappa: {'math': 100.0} has no `default`"),
        ({"kappa": {"default": math.inf}}, "kappa.default: inf should be a finite number"),
        ({"kappa": {"default": "20"}}, "kappa.default: '20' should be a number"),
        ({"kappa": 20}, "kappa: 20 should be a mapping"),
        ({"max_agents": 27}, "max_agents: 27 should be less than or equal to 26"),
        ({"vae_weight": True}, "vae_weight: True should be a number"),
        ({"visible_tests": "none"}, "visible_tests: 'none' should be 'first' or 'all'"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        settings_of("baselines.masrouter", {"epochs": {"default": 1}, "kappa": {"default": 200}, **change})
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
