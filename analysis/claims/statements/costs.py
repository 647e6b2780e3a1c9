"""What the paper says of cost, floating-point operations and time."""

from __future__ import annotations

from analysis.claims.declared import LARGE, Above, Between, claim
from analysis.claims.numbers import Numbers, Value, alike, least, most
from harness.runner.config import POOL


@claim(
    section="Cost",
    place="abstract; introduction; cost analysis; conclusion",
    unit="%",
    stated=31.9,
    tolerance=0.05,
    holds=Above(0),
    note="The baseline meant is the strongest by average accuracy.",
)
def humaneval_cheaper_than_puppeteer(n: Numbers) -> Value:
    """On HumanEval GMR costs 31.9 % less than Puppeteer-32B."""
    return 100 * (1 - n.cost("gmr", "humaneval") / n.cost("puppeteer", "humaneval", LARGE))


@claim(section="Cost", place="cost analysis", unit="%", stated=43.86, tolerance=0.005, holds=Above(0))
def humaneval_cheaper_than_masrouter(n: Numbers) -> Value:
    """On HumanEval GMR costs 43.86 % less than MASRouter."""
    return 100 * (1 - n.cost("gmr", "humaneval") / n.cost("masrouter", "humaneval"))


@claim(section="Cost", place="cost analysis", unit="points", holds=Above(0))
def humaneval_more_accurate_than_both(n: Numbers) -> Value:
    """On HumanEval GMR is more accurate than both MASRouter and Puppeteer-32B."""
    return n.accuracy("gmr", "humaneval") - most(
        n.accuracy("masrouter", "humaneval"), n.accuracy("puppeteer", "humaneval", LARGE)
    )


@claim(
    section="Cost",
    place="cost analysis; captions of the Pareto figures",
    unit="margin",
    holds=Above(0),
    over={"benchmark": ["humaneval", "gsm_hard"]},
    note="The margin mixes points of accuracy and percent of cost; only its sign means something.",
)
def on_the_frontier(n: Numbers, benchmark: str) -> Value:
    """GMR lies on the Pareto frontier, so that no row is as accurate without costing more."""
    return n.undominated(benchmark)


@claim(
    section="Cost",
    place="caption of the HumanEval Pareto figure",
    unit="%",
    holds=Above(0),
    note=(
        "Strongest is taken by the accuracy of the figure, on each side whichever row it is: in print MacNet-Chain on "
        "qwen-2.5-14B, which costs less than GMR."
    ),
)
def humaneval_caption_cost(n: Numbers) -> Value:
    """On HumanEval GMR costs less than the strongest multi-agent baseline, the most accurate one there, and than the
    routing baseline.
    """  # noqa: D205 - one sentence
    return 100 * (
        1 - n.cost("gmr", "humaneval") / least(n.strongest_cost("humaneval"), n.cost("masrouter", "humaneval"))
    )


@claim(
    section="Cost",
    place="caption of the GSM-Hard Pareto figure",
    unit="%",
    holds=Above(0),
    note="In print the strongest there, and by average, is Puppeteer-32B; GMR costs 31.9 % more than it.",
)
def gsm_caption_cost(n: Numbers) -> Value:
    """On GSM-Hard GMR costs less than the strongest multi-agent baseline, the most accurate one there, and than the
    routing baseline.
    """  # noqa: D205 - one sentence
    return 100 * (1 - n.cost("gmr", "gsm_hard") / least(n.strongest_cost("gsm_hard"), n.cost("masrouter", "gsm_hard")))


@claim(
    section="Cost",
    place="cost analysis",
    unit="%",
    holds=Above(0),
    over={"row": [{"method": "puppeteer", "backbone": LARGE}, {"method": "masrouter", "backbone": POOL}]},
)
def gsm_same_pattern(n: Numbers, method: str, backbone: str) -> Value:
    """The pattern of HumanEval, cheaper than Puppeteer-32B and than MASRouter, is that of GSM-Hard, too."""
    return 100 * (1 - n.cost("gmr", "gsm_hard") / n.cost(method, "gsm_hard", backbone))


@claim(
    section="Cost",
    place="appendix on cost, text and table",
    unit="%",
    holds=Above(0),
    over={"benchmark": ["humaneval", "mbpp"]},
)
def lowest_flops(n: Numbers, benchmark: str) -> Value:
    """GMR needs the fewest FLOPs a question of the three routers."""
    own = n.flops("gmr", benchmark)
    return 100 * (1 - own / least(n.flops("masrouter", benchmark), n.flops("puppeteer", benchmark, LARGE)))


@claim(
    section="Cost",
    place="appendix on cost, text and table",
    unit="%",
    holds=Above(0),
    over={"benchmark": ["humaneval", "mbpp"]},
)
def lowest_time(n: Numbers, benchmark: str) -> Value:
    """GMR needs the least wall-clock time a question of the three routers."""
    own = n.seconds("gmr", benchmark)
    return 100 * (1 - own / least(n.seconds("masrouter", benchmark), n.seconds("puppeteer", benchmark, LARGE)))


@claim(
    section="Cost",
    place="cost analysis; appendix on cost",
    unit="margin",
    holds=Above(0),
    over={
        "pair": [
            {"method": "puppeteer", "backbone": LARGE, "other": "gmr", "its": POOL},
            {"method": "masrouter", "backbone": POOL, "other": "puppeteer", "its": LARGE},
            {"method": "masrouter", "backbone": POOL, "other": "gmr", "its": POOL},
        ]
    },
    note=(
        "Positive where cost, FLOPs and time put a pair in one order, whichever it is; the smallest of the distances, "
        "as a fraction. For MBPP the paper prints no cost."
    ),
)
def same_order_as_the_proxy(n: Numbers, method: str, backbone: str, other: str, its: str) -> Value:
    """By FLOPs and by time the three routers have the order that they have by cost."""
    cost, flops, seconds = [
        of(method, "humaneval", backbone) / of(other, "humaneval", its) - 1 for of in (n.cost, n.flops, n.seconds)
    ]
    return least(alike(cost, flops), alike(cost, seconds))


@claim(
    section="Cost",
    place="appendix on cost, table of FLOPs and time",
    unit="ratio",
    holds=Above(1),
    over={"benchmark": ["humaneval", "mbpp"]},
    note="The order asked for is the printed one, GMR, Puppeteer-32B, MASRouter.",
)
def flops_and_time_agree(n: Numbers, benchmark: str) -> Value:
    """FLOPs and wall-clock time put the three routers in the same order."""
    return least(
        n.flops("puppeteer", benchmark, LARGE) / n.flops("gmr", benchmark),
        n.flops("masrouter", benchmark) / n.flops("puppeteer", benchmark, LARGE),
        n.seconds("puppeteer", benchmark, LARGE) / n.seconds("gmr", benchmark),
        n.seconds("masrouter", benchmark) / n.seconds("puppeteer", benchmark, LARGE),
    )


@claim(
    section="Cost",
    place="appendix on cost, text and both tables",
    unit="price",
    holds=Between(0.003, 0.01),
    published=lambda n, method, backbone: (
        n.cost(method, "humaneval", backbone) / 128 / (n.flops(method, "humaneval", backbone) / 2)
    ),
    over={
        "row": [
            {"method": "gmr", "backbone": POOL},
            {"method": "puppeteer", "backbone": LARGE},
            {"method": "masrouter", "backbone": POOL},
        ]
    },
    note=(
        "A check of two definitions against each other; 128 is the number of questions behind the printed accuracies. "
        "The price of a million tokens of a model of a billion parameters, with 2 N FLOPs a token. With the costs of "
        "all calls it is true of any run by arithmetic; where the FLOPs alone count the final call, the price comes "
        "out lower."
    ),
)
def cost_fits_flops(n: Numbers, method: str, backbone: str) -> Value:
    """Cost and FLOPs on HumanEval imply a price between that of prompt and of completion tokens."""
    return n.cost(method, "humaneval", backbone) / (n.flops(method, "humaneval", backbone) / 2)
