"""Abilities and style effects for which the expected accuracy of single calls is the published one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from harness.benchmarks.items import Item
from harness.errors import UserError
from harness.simulator.model import affinity, difficulty
from harness.simulator.parameters import Parameters, Settings, Style

_STYLED: tuple[Style, ...] = ("step_by_step", "complex")
_BISECTIONS = 60
_WIDEST = 40.0
# Far below any sampling error, and coarse enough that the last bits of a processor's exponential cannot show.
_DECIMALS = 6


@dataclass(frozen=True)
class Calibration:
    """What calibration adds to the parameters, for one benchmark.

    Attributes:
        ability: By backbone, on the scale of difficulty.
        style: By style and backbone, in logits relative to a direct prompt.
        accuracy: By backbone: the published share of right answers to direct prompts.
    """

    ability: Mapping[str, float]
    style: Mapping[Style, Mapping[str, float]]
    accuracy: Mapping[str, float]


def calibrate(benchmark: str, items: Sequence[Item], backbones: Sequence[str], settings: Settings) -> Calibration:
    """Solve for abilities and style effects on a test set.

    A style that is published for some backbones only has, for the others, the mean effect of those.

    Args:
        benchmark: Key of the benchmark.
        items: Its test questions.
        backbones: The pool.
        settings: Parameters and published accuracies.

    Raises:
        UserError: No accuracy is published for the benchmark or for a backbone, or there are no questions.
    """
    if not items:
        raise UserError(f"benchmark {benchmark!r} has no test questions to calibrate on; raise limit: {{test: ...}}")
    published = _published(benchmark, backbones, settings)
    logits = {key: _fixed_logits(items, key, settings.parameters) for key in backbones}
    slope, ceiling = settings.parameters.slope, 1 - settings.parameters.unparsable_share
    ability = {key: _solve(logits[key], published["direct"][key] / ceiling) / slope for key in backbones}
    style = {
        each: _style_effects(published[each], {key: logits[key] + slope * ability[key] for key in backbones}, ceiling)
        for each in _STYLED
    }
    return Calibration(
        ability=_rounded(ability),
        style={each: _rounded(effects) for each, effects in style.items()},
        accuracy={key: published["direct"][key] for key in backbones},
    )


def _published(benchmark: str, backbones: Sequence[str], settings: Settings) -> dict[Style, dict[str, float]]:
    """Shares of right answers by style and backbone."""
    if benchmark not in settings.accuracy:
        raise UserError(
            f"no accuracy to calibrate {benchmark!r} to; add it to stated_accuracy in config/simulator.yaml"
        )
    table = settings.accuracy[benchmark]
    if missing := [key for key in backbones if key not in table["direct"]]:
        raise UserError(
            f"no accuracy to calibrate {missing[0]!r} on {benchmark!r} to; "
            f"add it to stated_accuracy > {benchmark} > direct in config/simulator.yaml"
        )
    return {style: {key: row[key] / 100 for key in backbones if key in row} for style, row in table.items()}


def _fixed_logits(items: Sequence[Item], backbone: str, parameters: Parameters) -> np.ndarray:
    """Logits of all questions at ability zero."""
    return np.array(
        [
            affinity(item.question, backbone, parameters)
            - parameters.slope * difficulty(item.question, item.difficulty, parameters)
            for item in items
        ]
    )


def _style_effects(
    published: Mapping[str, float], logits: Mapping[str, np.ndarray], ceiling: float
) -> dict[str, float]:
    solved = {key: _solve(logits[key], share / ceiling) for key, share in published.items()}
    average = fmean(solved.values()) if solved else 0.0
    return {key: solved.get(key, average) for key in logits}


def _solve(logits: np.ndarray, share: float) -> float:
    """The shift of all logits for which their mean probability is a given share."""
    low, high = -_WIDEST, _WIDEST
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if float(np.mean(1 / (1 + np.exp(-(logits + middle))))) < share:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {key: round(value, _DECIMALS) for key, value in values.items()}
