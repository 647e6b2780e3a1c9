"""Statements of the paper about cost, floating-point operations and time."""

from __future__ import annotations

from functools import partial

from analysis.claims.declared import above, between, claim
from analysis.claims.numbers import GMR, MASROUTER, PUPPETEER, Numbers, Row, Value, alike, least, most

_HARDWARE = ["humaneval", "mbpp"]
_cost = partial(claim, "Cost")


@_cost("abstract; introduction; cost analysis; conclusion", "%", stated=31.9, tolerance=0.05)
def humaneval_cheaper_than_puppeteer(n: Numbers) -> Value:
    """On HumanEval GMR costs 31.9 % less than Puppeteer-32B.

    The baseline meant is the strongest by average accuracy.
    """
    return n.saving(GMR, PUPPETEER, "humaneval")


@_cost("cost analysis", "%", stated=43.86, tolerance=0.005)
def humaneval_cheaper_than_masrouter(n: Numbers) -> Value:
    """On HumanEval GMR costs 43.86 % less than MASRouter."""
    return n.saving(GMR, MASROUTER, "humaneval")


@_cost("cost analysis", "points")
def humaneval_more_accurate_than_both(n: Numbers) -> Value:
    """On HumanEval GMR is more accurate than both MASRouter and Puppeteer-32B."""
    return n.accuracy(GMR, "humaneval") - most(n.accuracy(MASROUTER, "humaneval"), n.accuracy(PUPPETEER, "humaneval"))


@_cost("cost analysis; captions of the Pareto figures", "margin", over={"benchmark": ["humaneval", "gsm_hard"]})
def on_the_frontier(n: Numbers, benchmark: str) -> Value:
    """GMR lies on the Pareto frontier, so that no row is as accurate without costing more.

    The margin mixes points of accuracy and percent of cost; only its sign means something.
    """
    return n.undominated(benchmark)


def _caption(n: Numbers, benchmark: str) -> Value:
    own = n.cost(GMR, benchmark)
    return 100 * (1 - own / least(n.strongest_cost(benchmark), n.cost(MASROUTER, benchmark)))


@_cost("caption of the HumanEval Pareto figure", "%")
def humaneval_caption_cost(n: Numbers) -> Value:
    """On HumanEval GMR costs less than the strongest multi-agent baseline, the most accurate one there, and than
    the routing baseline.

    Strongest is taken by the accuracy of the figure, on each side whichever row it is: in the paper MacNet-Chain on
    qwen-2.5-14B, which costs less than GMR.
    """  # noqa: D205 - one sentence
    return _caption(n, "humaneval")


@_cost("caption of the GSM-Hard Pareto figure", "%")
def gsm_caption_cost(n: Numbers) -> Value:
    """On GSM-Hard GMR costs less than the strongest multi-agent baseline, the most accurate one there, and than
    the routing baseline.

    In the paper the strongest there, and by average, is Puppeteer-32B; GMR costs 31.9 % more than it.
    """  # noqa: D205 - one sentence
    return _caption(n, "gsm_hard")


@_cost("cost analysis", "%", over={"row": [PUPPETEER, MASROUTER]})
def gsm_same_pattern(n: Numbers, row: Row) -> Value:
    """The pattern of HumanEval, cheaper than Puppeteer-32B and than MASRouter, is that of GSM-Hard, too."""
    return n.saving(GMR, row, "gsm_hard")


def _least_of_three(n: Numbers, measure: str, benchmark: str) -> Value:
    own, *others = (n.of(measure, row, benchmark) for row in (GMR, MASROUTER, PUPPETEER))
    return 100 * (1 - own / least(*others))


@_cost("appendix on cost, text and table", "%", over={"benchmark": _HARDWARE})
def lowest_flops(n: Numbers, benchmark: str) -> Value:
    """GMR needs the fewest FLOPs a question of the three routers."""
    return _least_of_three(n, "flops", benchmark)


@_cost("appendix on cost, text and table", "%", over={"benchmark": _HARDWARE})
def lowest_time(n: Numbers, benchmark: str) -> Value:
    """GMR needs the least wall-clock time a question of the three routers."""
    return _least_of_three(n, "seconds", benchmark)


@_cost(
    "cost analysis; appendix on cost",
    "margin",
    over={
        "pair": [
            {"row": PUPPETEER, "other": GMR},
            {"row": MASROUTER, "other": PUPPETEER},
            {"row": MASROUTER, "other": GMR},
        ]
    },
)
def same_order_as_the_proxy(n: Numbers, row: Row, other: Row) -> Value:
    """By FLOPs and by time the three routers have the order that they have by cost.

    Positive where cost, FLOPs and time put a pair in one order, whichever it is; the smallest of the distances, as
    a fraction. For MBPP the paper prints no cost.
    """
    cost, flops, seconds = (
        n.of(measure, row, "humaneval") / n.of(measure, other, "humaneval") - 1
        for measure in ("cost", "flops", "seconds")
    )
    return least(alike(cost, flops), alike(cost, seconds))


@_cost("appendix on cost, table of FLOPs and time", "ratio", holds=above(1), over={"benchmark": _HARDWARE})
def flops_and_time_agree(n: Numbers, benchmark: str) -> Value:
    """FLOPs and wall-clock time put the three routers in the same order.

    The order asked for is the printed one, GMR, Puppeteer-32B, MASRouter.
    """
    return least(
        *[
            n.of(measure, more, benchmark) / n.of(measure, less, benchmark)
            for measure in ("flops", "seconds")
            for more, less in ((PUPPETEER, GMR), (MASROUTER, PUPPETEER))
        ]
    )


@_cost(
    "appendix on cost, text and both tables",
    "price",
    holds=between(0.003, 0.01),
    published=lambda n, row: n.cost(row, "humaneval") / 128 / (n.of("flops", row, "humaneval") / 2),
    over={"row": [GMR, PUPPETEER, MASROUTER]},
)
def cost_fits_flops(n: Numbers, row: Row) -> Value:
    """Cost and FLOPs on HumanEval imply a price between that of prompt and of completion tokens.

    A check of two definitions against each other; 128 is the number of questions behind the printed accuracies. The
    price of a million tokens of a model of a billion parameters, with 2 N FLOPs a token. With the costs of all
    calls it is true of any run by arithmetic; where the FLOPs alone count the final call, the price comes out
    lower.
    """
    return n.cost(row, "humaneval") / (n.of("flops", row, "humaneval") / 2)
