"""What a method's configuration may hold, and how a mistake is told."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Literal

import pytest

from harness.checks import check_choice, check_epochs, check_flag, check_number, check_weights, check_whole

Colour = Literal["red", "green"]


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: check_choice("colour", "blue", Colour), "colour is 'blue'; choose one of red, green"),
        (lambda: check_whole("size", 0, 1), "size is 0; expected a whole number of at least 1"),
        (lambda: check_whole("size", True, 0), "size is True; expected a whole number of at least 0"),
        (lambda: check_whole("size", 2.0, 0), "size is 2.0; expected a whole number of at least 0"),
        (lambda: check_number("rate", -0.1, 0), "rate is -0.1; expected a number of at least 0"),
        (lambda: check_number("rate", math.nan), "rate is nan; expected a number"),
        (lambda: check_number("rate", "0.1"), "rate is '0.1'; expected a number"),
        (lambda: check_flag("on", "yes"), "on is 'yes'; expected true or false"),
        (lambda: check_epochs({"math": 3}), "expected whole numbers by benchmark, and one as default"),
        (lambda: check_epochs(3), "epochs is 3; expected whole numbers by benchmark, and one as default"),  # type: ignore[arg-type]
        (lambda: check_weights("kappa", 20), "kappa is 20; expected numbers of at least 0 by benchmark"),  # type: ignore[arg-type]
        (
            lambda: check_weights("kappa", {"math": 1.0}),
            "expected numbers of at least 0 by benchmark, and one as default",
        ),
        (lambda: check_weights("kappa", {"default": -1.0}), "expected numbers of at least 0 by benchmark"),
        (lambda: check_epochs({"default": 1, "math": -1}), "expected whole numbers by benchmark"),
    ],
)
def test_a_mistake_names_field_value_and_what_was_expected(check: Callable[[], None], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        check()
    assert "\n" not in str(caught.value)


def test_what_is_right_passes() -> None:
    check_choice("colour", "red", Colour)
    check_whole("size", 1, 1)
    check_number("bias", -1.1)
    check_number("rate", 0, 0)
    check_flag("on", False)
    check_epochs({"default": 0, "math": 5})
    check_weights("kappa", {"default": 0, "math": 2.5})
