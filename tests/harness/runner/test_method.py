"""A method as its entry describes it, and the setting it is given."""

from __future__ import annotations

import dataclasses

import pytest

from harness.errors import UserError
from harness.runner.config import methods
from harness.runner.method import build
from tests.scripted import setting


@pytest.mark.parametrize("key", ["single", "cot", "macnet_chain", "aflow", "puppeteer"])
def test_a_method_of_one_backbone_refuses_the_pool_in_one_line(key: str) -> None:
    entry = methods()[key]
    with pytest.raises(UserError, match="the row 'pool' is no backbone") as caught:
        build(entry.module, setting("pool"), entry.config)
    assert "\n" not in str(caught.value)


def test_what_is_to_be_trained_has_to_be_able_to_learn() -> None:
    with pytest.raises(UserError, match=r"`trained` of baselines\.single, whose method has no fit, load, utility"):
        build("baselines.single", setting(), {}, trained=True)
    build("baselines.single", setting(), {})


def test_a_setting_reads_what_differs_between_benchmarks() -> None:
    values = {"default": 10, "math": 5}
    its = setting(benchmark="math")
    assert (its.of_benchmark(values), its.epochs(values)) == (5, 5)
    assert dataclasses.replace(its, benchmark="mbpp").of_benchmark(values) == 10
    assert dataclasses.replace(its, max_epochs=3).epochs(values) == 3
    assert dataclasses.replace(its, max_epochs=0).epochs(values) == 0
    assert its.one_backbone == "small"
