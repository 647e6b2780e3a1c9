"""How long replies are: log-normal lengths whose mean follows from published costs.

A published cost fixes the mean number of completion tokens once the prompt is known: what remains of the cost of a
question after its prompt tokens, divided by the output rate. A reply is never shorter than the answer it must hold, so
the location of the log-normal is chosen for the mean of the larger of the two.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist, fmean

from harness.benchmarks import benchmark as find_benchmark
from harness.errors import UserError
from harness.llm.backbones import Backbone
from harness.simulator import tokens
from harness.simulator.parameters import Settings, Style

_CDF = NormalDist().cdf
_BISECTIONS = 40
_LOG_SHORTEST, _LOG_LONGEST = 0.0, math.log(1e6)
_QUANTILES = 21


def mean_tokens(
    settings: Settings, benchmark: str, style: Style, backbones: Mapping[str, Backbone], question_tokens: float
) -> dict[str, float]:
    """Mean completion tokens of one solving turn, by backbone.

    Args:
        settings: Published costs, borrowed and assumed lengths.
        benchmark: Key of the benchmark.
        style: Style of the prompt.
        backbones: The pool, for its prices.
        question_tokens: Mean length of the benchmark's questions.

    Raises:
        UserError: The settings say nothing about the lengths of this benchmark.
    """
    if benchmark in settings.borrowed_length:
        loan = settings.borrowed_length[benchmark]
        lent = mean_tokens(settings, loan["lender"], style, backbones, loan["question_tokens"])
        return {key: loan["factor"] * mean for key, mean in lent.items()}
    if benchmark in settings.assumed_length:
        return dict.fromkeys(backbones, settings.assumed_length[benchmark][style])
    if benchmark in settings.cost:
        return _from_cost(settings, benchmark, style, backbones, question_tokens)
    raise UserError(
        f"no reply length is stated for benchmark {benchmark!r}; add it to stated_cost, borrowed_length or "
        "assumed_length in config/simulator.yaml"
    )


def _from_cost(
    settings: Settings, benchmark: str, style: Style, backbones: Mapping[str, Backbone], question_tokens: float
) -> dict[str, float]:
    """Backbones without a cost for this style get what the style adds, on average, to those that have one."""
    published = {
        each: _published(settings, benchmark, each, backbones, question_tokens)
        for each in dict.fromkeys(("direct", style))
    }
    direct, styled = published["direct"], published[style]
    added = fmean(styled[key] - direct[key] for key in styled if key in direct)
    return {key: styled.get(key, direct[key] + added) for key in backbones}


def _published(
    settings: Settings, benchmark: str, style: Style, backbones: Mapping[str, Backbone], question_tokens: float
) -> dict[str, float]:
    table = settings.cost[benchmark]
    prompt = question_tokens + _overhead(settings, benchmark, style)
    return {
        key: (cost / table["n"] * 1e6 - prompt * backbones[key].price_in) / backbones[key].price_out
        for key, cost in table[style].items()
        if key in backbones
    }


def _overhead(settings: Settings, benchmark: str, style: Style) -> float:
    """Prompt tokens beside the question: output rules, cue of the style, chat template of a single message."""
    rules = tokens.count(find_benchmark(benchmark).output_rules)
    values = settings.parameters
    return rules + values.style_prompt_tokens[style] + values.message_tokens + values.prompt_tokens


def quantiles(values: Sequence[int]) -> list[int]:
    """A few evenly spaced order statistics that stand for a distribution."""
    ordered = sorted(values)
    return [ordered[int((place + 0.5) / _QUANTILES * len(ordered))] for place in range(_QUANTILES)]


@functools.lru_cache(maxsize=4096)
def log_location(mean: float, sd: float, floors: tuple[int, ...]) -> float:
    """Location of the log-normal length for which replies have the wanted mean.

    Args:
        mean: Wanted mean of max(floor, length), in tokens.
        sd: Standard deviation of the logarithm of the length.
        floors: Least lengths, equally likely.

    Returns:
        The mean of the logarithm; the smallest allowed where the floors alone exceed the wanted mean.
    """
    low, high = _LOG_SHORTEST, _LOG_LONGEST
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if fmean(_mean_above(floor, middle, sd) for floor in floors) < mean:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _mean_above(floor: int, location: float, sd: float) -> float:
    """Mean of the larger of a floor and a log-normal number."""
    whole = math.exp(location + sd**2 / 2)
    if floor == 0:
        return whole
    edge = (math.log(floor) - location) / sd
    return floor * _CDF(edge) + whole * _CDF(sd - edge)
