import math
import re
from typing import Any

import pytest

from gmr.config import Config
from harness.runner.config import methods
from tests.scripted import setting

SWITCHES = ("role_allocator", "llm_router", "retrieval_gate", "write_gate", "halting")
ENTRIES = {key: entry for key, entry in methods().items() if entry.module == "gmr"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": "cosin"}, "score is 'cosin'; choose one of dot, cosine"),
        ({"decode": "argmax"}, "decode is 'argmax'; choose one of sample, greedy"),
        ({"empty_memory": ""}, "choose one of note, last_response"),
        ({"reward_cost": "total"}, "choose one of steps, all"),
        ({"role_pool": "Math"}, "choose one of all, domain"),
        ({"group": 0}, "group is 0; expected a whole number of at least 1"),
        ({"batch": 1.5}, "batch is 1.5; expected a whole number"),
        ({"max_depth": True}, "max_depth is True; expected a whole number"),
        ({"lambda_c": -1}, "lambda_c is -1; expected a number of at least 0"),
        ({"lr": math.nan}, "lr is nan; expected a number of at least 0"),
        ({"lr": math.inf}, "lr is inf; expected a number of at least 0"),
        ({"halting_bias": "0"}, "halting_bias is '0'; expected a number"),
        ({"retrieval_gate": "off"}, "retrieval_gate is 'off'; expected true or false"),
        ({"role_subset": {}}, "role_subset is {}; expected a whole number for each domain"),
        ({"role_subset": {"Math": "6"}}, "expected a whole number for each domain"),
        ({"role_subset": {"Code": 2}, "role_pool": "domain"}, "role_pool cannot be 'domain' beside it"),
        ({"epochs": {"math": 5}}, "and one as default"),
        ({"epochs": {"default": -1}}, "expected whole numbers by benchmark"),
        ({"epochs": {"default": 1, "math": 2.5}}, "expected whole numbers by benchmark"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        Config(**{"epochs": {"default": 1}, **change})
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
