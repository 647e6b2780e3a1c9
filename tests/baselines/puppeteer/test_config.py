"""What a configuration refuses, and the entries that exist."""

from __future__ import annotations

from typing import Any

import pytest

from baselines.puppeteer import Config, build
from harness.errors import UserError
from harness.runner.config import methods
from harness.runner.method import build as build_entry
from harness.runner.method import settings_of
from tests.scripted import setting


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("batch", 0),
        ("max_steps", 0),
        ("lr", -1e-4),
        ("gamma", "0.99"),
        ("entropy_weight", -1),
        ("step_weight", None),
        ("update", "batch"),
        ("selection", "threshold"),
        ("epochs", {"math": 5}),
    ],
)
def test_a_value_that_makes_no_sense_is_named(field: str, value: Any) -> None:
    with pytest.raises(UserError, match=f"config of baselines.puppeteer: {field}: ") as caught:
        settings_of("baselines.puppeteer", {"epochs": {"default": 1}, field: value})
    assert "\n" not in str(caught.value)


def test_the_values_of_the_specification_are_the_defaults() -> None:
    made = Config(epochs={"default": 1})
    assert (made.batch, made.max_steps, made.lr, made.gamma) == (16, 6, 1e-4, 0.99)
    assert (made.entropy_weight, made.step_weight) == (1.0, 1.0)
    assert (made.update, made.selection) == ("batched", "sample")


@pytest.mark.parametrize("key", ["puppeteer", "puppeteer_untrained"])
def test_the_entries_can_be_built(key: str) -> None:
    entry = methods()[key]
    assert entry.trained
    assert entry.rows == ("qwen-2.5-14B", "qwen-2.5-32B")
    made = build_entry(entry.module, setting(), entry.config)
    wanted = {"default": 0} if key.endswith("untrained") else {"default": 10, "math": 5, "gsm_hard": 5}
    assert {**made.config.epochs}["default"] == wanted["default"]


def test_the_row_has_to_be_a_backbone() -> None:
    with pytest.raises(UserError, match="the row 'pool' is no backbone") as caught:
        build(setting("pool"), Config(epochs={"default": 1}))
    assert "\n" not in str(caught.value)
