"""Checks of a method's configuration; each names the field, what it holds and what was expected."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, get_args


def check_choice(name: str, value: object, choices: Any) -> None:
    """One of the values of a ``Literal``.

    Raises:
        ValueError: It is none of them.
    """
    if value not in get_args(choices):
        raise ValueError(f"{name} is {value!r}; choose one of {', '.join(map(str, get_args(choices)))}")


def check_whole(name: str, value: object, least: int) -> None:
    """A whole number of at least ``least``.

    Raises:
        ValueError: It is none.
    """
    if not is_whole(value) or value < least:  # type: ignore[operator]
        raise ValueError(f"{name} is {value!r}; expected a whole number of at least {least}")


def check_number(name: str, value: object, least: float = -math.inf) -> None:
    """A finite number of at least ``least``.

    Raises:
        ValueError: It is none.
    """
    if not is_number(value) or value < least:  # type: ignore[operator]
        raise ValueError(
            f"{name} is {value!r}; expected a number{'' if least == -math.inf else f' of at least {least:g}'}"
        )


def check_flag(name: str, value: object) -> None:
    """True or false.

    Raises:
        ValueError: It is neither.
    """
    if not isinstance(value, bool):
        raise ValueError(f"{name} is {value!r}; expected true or false")


def check_epochs(epochs: Mapping[str, int]) -> None:
    """Passes over the training questions, by benchmark.

    Raises:
        ValueError: One is no whole number, or there is no default.
    """
    if not _by_benchmark(epochs) or not all(is_whole(count) and count >= 0 for count in epochs.values()):
        raise ValueError(f"epochs is {epochs!r}; expected whole numbers by benchmark, and one as default")


def check_weights(name: str, weights: Mapping[str, float]) -> None:
    """Weights by benchmark.

    Raises:
        ValueError: One is no number of at least 0, or there is no default.
    """
    if not _by_benchmark(weights) or not all(is_number(weight) and weight >= 0 for weight in weights.values()):
        raise ValueError(f"{name} is {weights!r}; expected numbers of at least 0 by benchmark, and one as default")


def is_number(value: object) -> bool:
    """Whether a value is a finite number, which true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _by_benchmark(values: object) -> bool:
    return isinstance(values, Mapping) and "default" in values


def is_whole(value: object) -> bool:
    """Whether a value is a whole number, which true and false are not."""
    return isinstance(value, int) and not isinstance(value, bool)
