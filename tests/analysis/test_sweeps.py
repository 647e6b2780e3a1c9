"""What the methods of a sweep have of its setting."""

from __future__ import annotations

import pytest

from analysis import sweeps
from gmr.config import Config
from harness.errors import UserError
from harness.runner.config import methods


@pytest.mark.parametrize(
    ("names", "setting", "expected"),
    [(sweeps.COST_WEIGHTS, "lambda_c", [10, 20, 50]), (sweeps.DEPTHS, "max_depth", [2, 4, 6, 8, 10])],
)
def test_the_values_are_those_the_router_is_built_with(names, setting, expected):
    found = sweeps.values(names, setting)
    assert list(found.values()) == expected
    assert found == {name: getattr(Config(**methods()[name].config), setting) for name in names}


def test_another_value_in_the_configuration_is_taken_and_ordered(monkeypatch):
    known = methods()
    known["gmr_lambda_10"] = known["gmr_lambda_10"].model_copy(
        update={"config": {**known["gmr_lambda_10"].config, "lambda_c": 100}}
    )
    monkeypatch.setattr(sweeps, "methods", lambda: known)
    assert list(sweeps.values(sweeps.COST_WEIGHTS, "lambda_c").items())[-1] == ("gmr_lambda_10", 100)


def test_a_method_that_is_no_longer_configured_is_named(monkeypatch):
    monkeypatch.setattr(sweeps, "methods", dict)
    with pytest.raises(UserError, match="has no method gmr_depth_2, which is in the sweep of max_depth"):
        sweeps.values(sweeps.DEPTHS, "max_depth")
