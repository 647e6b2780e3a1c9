"""Fit the simulated backbones to published numbers: abilities, effects of styles, mean lengths of replies.

Abilities and effects are those for which the expected accuracy of single calls is the published one. A published cost
fixes the mean number of completion tokens: what the prompt leaves of the cost of a question, by the output rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

import numpy as np

from harness.benchmarks import benchmark as find_benchmark
from harness.benchmarks.items import Item
from harness.errors import UserError
from harness.files import Declaration
from harness.llm.backbones import Backbone
from harness.simulator import tokens
from harness.simulator.parameters import STYLES, Settings, Style
from harness.simulator.response_model import affinity, difficulty, solve

# Far below any sampling error, and coarse enough that the last bits of a processor's exponential cannot show.
_DECIMALS = 6
_QUANTILES = 21


class Fit(Declaration):
    """The fitted values of one benchmark."""

    ability: Mapping[str, float]  # by backbone, on the scale of difficulty
    style: Mapping[Style, Mapping[str, float]]  # by style and backbone, in logits relative to a direct prompt
    accuracy: Mapping[str, float]  # by backbone: the published share of right answers to direct prompts


def fit(benchmark: str, items: Sequence[Item], backbones: Sequence[str], settings: Settings) -> Fit:
    """Solve for abilities and effects of styles on the test questions of a benchmark.

    A style that is published for some backbones only has, for the others, the mean effect of those.

    Raises:
        UserError: There are no questions, or no published number for a backbone.
    """
    if not items:
        raise UserError(f"{benchmark} has no test questions to calibrate on; raise limit: {{test: ...}}")
    published, values = _accuracies(benchmark, backbones, settings), settings.parameters
    hardness = np.array([difficulty(item.question, item.difficulty, values) for item in items])
    logits = {
        key: np.array([affinity(item.question, key, values) for item in items]) - values.slope * hardness
        for key in backbones
    }
    ceiling = 1 - values.unparsable_share
    ability = {key: _solve(logits[key], published["direct"][key] / ceiling) / values.slope for key in backbones}
    style = {}
    for each in STYLES[1:]:
        shares = published[each].items()
        solved = {key: _solve(logits[key] + values.slope * ability[key], share / ceiling) for key, share in shares}
        average = fmean(solved.values()) if solved else 0.0
        style[each] = _rounded({key: solved.get(key, average) for key in backbones})
    return Fit(ability=_rounded(ability), style=style, accuracy=published["direct"])


def _accuracies(benchmark: str, backbones: Sequence[str], settings: Settings) -> dict[Style, dict[str, float]]:
    """Shares of right answers by style and backbone."""
    table = settings.accuracy.get(benchmark)
    missing = [key for key in backbones if table is not None and key not in table["direct"]]
    if table is None or missing:
        what = f"{missing[0]!r} on {benchmark!r}" if missing else repr(benchmark)
        where = f"stated_accuracy > {benchmark} > direct" if missing else "stated_accuracy"
        raise UserError(f"no accuracy to calibrate {what} to; add it to {where} in config/simulator.yaml")
    return {style: {key: row[key] / 100 for key in backbones if key in row} for style, row in table.items()}


def _solve(logits: np.ndarray, share: float) -> float:
    """The shift of all logits for which their mean probability is a given share."""
    return solve(lambda shift: float(np.mean(1 / (1 + np.exp(-(logits + shift))))), share, -40.0, 40.0, 60)


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {key: round(value, _DECIMALS) for key, value in values.items()}


def mean_tokens(
    settings: Settings, benchmark: str, style: Style, backbones: Mapping[str, Backbone], question_tokens: float
) -> dict[str, float]:
    """Mean completion tokens of one solving turn, by backbone; ``question_tokens`` is the questions' mean length.

    Backbones without a cost for this style get what the style adds, on average, to those that have one.
    """
    if loan := settings.borrowed_length.get(benchmark):
        lent = mean_tokens(settings, loan.lender, style, backbones, loan.question_tokens)
        return {key: loan.factor * mean for key, mean in lent.items()}
    if assumed := settings.assumed_length.get(benchmark):
        return dict.fromkeys(backbones, getattr(assumed, style))
    if benchmark not in settings.cost:
        raise UserError(
            f"no reply length is stated for benchmark {benchmark!r}; add it to stated_cost, borrowed_length or "
            "assumed_length in config/simulator.yaml"
        )
    direct = _from_cost(settings, benchmark, "direct", backbones, question_tokens)
    styled = _from_cost(settings, benchmark, style, backbones, question_tokens)
    added = fmean(styled[key] - direct[key] for key in styled if key in direct)
    return {key: styled.get(key, direct[key] + added) for key in backbones}


def _from_cost(
    settings: Settings, benchmark: str, style: Style, backbones: Mapping[str, Backbone], question_tokens: float
) -> dict[str, float]:
    table, values = settings.cost[benchmark], settings.parameters
    rules = tokens.count(find_benchmark(benchmark).output_rules)
    prompt = question_tokens + (
        rules + values.style_prompt_tokens[style] + values.message_tokens + values.prompt_tokens
    )
    return {
        key: (cost / table.n * 1e6 - prompt * backbones[key].price_in) / backbones[key].price_out
        for key, cost in getattr(table, style).items()
        if key in backbones
    }


def quantiles(values: Sequence[int]) -> list[int]:
    """A few evenly spaced order statistics that stand for a distribution."""
    ordered = sorted(values)
    return [ordered[int((place + 0.5) / _QUANTILES * len(ordered))] for place in range(_QUANTILES)]
