"""What the paper says of the main table."""

from __future__ import annotations

from analysis.claims.declared import LARGE, ROWS, Above, Between, claim
from analysis.claims.numbers import Numbers, Value, least, mean, most
from harness.runner.config import POOL

# In the order in which the functions read them.
_BENCHMARKS = ("gsm_hard", "humaneval", "math", "mbpp", "mmlu_pro")


@claim(
    section="Main results",
    place="Table 1, column Avg.",
    unit="points",
    stated=lambda n, method, backbone: n.accuracy(method, "average", backbone),
    tolerance=0.01,
    over={"row": ROWS},
)
def row_averages(n: Numbers, method: str, backbone: str) -> Value:
    """The average of every row is the mean of its five accuracies."""
    return mean(
        *[
            n.accuracy(method, benchmark, backbone)
            for benchmark in ("math", "gsm_hard", "mbpp", "humaneval", "mmlu_pro")
        ]
    )


@claim(
    section="Main results",
    place="Table 1, bold and underlined",
    unit="points",
    stated=lambda n, benchmark, rank: n.ranked(benchmark, rank),
    tolerance=0.001,
    over={
        "mark": [
            {"benchmark": "math", "rank": 1, "method": "gmr", "backbone": POOL},
            {"benchmark": "math", "rank": 2, "method": "macnet_complete", "backbone": LARGE},
            {"benchmark": "math", "rank": 2, "method": "puppeteer", "backbone": LARGE},
            {"benchmark": "gsm_hard", "rank": 1, "method": "gmr", "backbone": POOL},
            {"benchmark": "gsm_hard", "rank": 2, "method": "puppeteer", "backbone": LARGE},
            {"benchmark": "mbpp", "rank": 1, "method": "macnet_chain", "backbone": "qwen-2.5-14B"},
            {"benchmark": "mbpp", "rank": 2, "method": "macnet_complete", "backbone": LARGE},
            {"benchmark": "humaneval", "rank": 1, "method": "gmr", "backbone": POOL},
            {"benchmark": "humaneval", "rank": 2, "method": "macnet_chain", "backbone": "qwen-2.5-14B"},
            {"benchmark": "mmlu_pro", "rank": 1, "method": "gmr", "backbone": POOL},
            {"benchmark": "mmlu_pro", "rank": 2, "method": "puppeteer", "backbone": LARGE},
            {"benchmark": "average", "rank": 1, "method": "gmr", "backbone": POOL},
            {"benchmark": "average", "rank": 2, "method": "puppeteer", "backbone": LARGE},
        ]
    },
)
def marks(n: Numbers, benchmark: str, method: str, backbone: str) -> Value:
    """In every column the best value is bold and the second best underlined."""
    return n.accuracy(method, benchmark, backbone)


@claim(
    section="Main results",
    place="abstract; introduction; performance analysis; conclusion",
    unit="points",
    holds=Above(0),
)
def best_average(n: Numbers) -> Value:
    """GMR has the highest average accuracy of all rows."""
    return n.accuracy("gmr", "average") - n.rival("gmr", "average")


@claim(section="Main results", place="abstract; related work; performance analysis", unit="points", holds=Above(0))
def strongest_baseline(n: Numbers) -> Value:
    """Puppeteer on qwen-2.5-32B is the strongest baseline by average accuracy."""
    return n.accuracy("puppeteer", "average", LARGE) - n.rival("puppeteer", "average", LARGE)


@claim(
    section="Main results",
    place="appendices on cost and on seeds",
    unit="points",
    holds=Above(0),
    note=(
        "Asked is the lead of the weaker of the two over the best of all other baselines, in print "
        "MacNet-Complete-32B. Six rows besides Puppeteer-32B are above MASRouter there."
    ),
)
def two_strongest_baselines(n: Numbers) -> Value:
    """MASRouter and Puppeteer-32B are the two strongest baselines."""
    weaker = least(n.accuracy("masrouter", "average"), n.accuracy("puppeteer", "average", LARGE))
    return weaker - n.rival("masrouter", "average", POOL, "puppeteer", LARGE)


@claim(
    section="Main results",
    place="abstract; introduction; related work; performance analysis (twice); conclusion",
    unit="points",
    stated=2.44,
    tolerance=0.005,
    holds=Above(0),
)
def average_lead_over_puppeteer(n: Numbers) -> Value:
    """The average accuracy of GMR is 2.44 points above that of Puppeteer-32B, the strongest baseline."""
    return n.accuracy("gmr", "average") - n.accuracy("puppeteer", "average", LARGE)


@claim(
    section="Main results", place="performance analysis", unit="points", stated=3.46, tolerance=0.005, holds=Above(0)
)
def average_lead_over_masrouter(n: Numbers) -> Value:
    """The average accuracy of GMR is 3.46 points above that of MASRouter."""
    return n.accuracy("gmr", "average") - n.accuracy("masrouter", "average")


@claim(
    section="Main results",
    place="performance analysis; captions of the Pareto figures",
    unit="points",
    holds=Above(0),
    over={"benchmark": ["math", "gsm_hard", "humaneval", "mmlu_pro"]},
    note="On MATH the printed lead is one question of 416.",
)
def best_on_four(n: Numbers, benchmark: str) -> Value:
    """On four of the five benchmarks no row is as accurate as GMR."""
    return n.accuracy("gmr", benchmark) - n.rival("gmr", benchmark)


@claim(section="Main results", place="performance analysis", unit="points", holds=Above(0))
def mbpp_exception(n: Numbers) -> Value:
    """On MBPP, MacNet-Chain on qwen-2.5-14B is ahead of GMR and of every other row."""
    return n.accuracy("macnet_chain", "mbpp", "qwen-2.5-14B") - most(
        n.rival("macnet_chain", "mbpp", "qwen-2.5-14B"), n.accuracy("gmr", "mbpp")
    )


@claim(
    section="Main results",
    place="performance analysis",
    unit="points",
    holds=Above(0),
    over={"benchmark": ["math", "gsm_hard", "humaneval", "mmlu_pro", "average"]},
)
def mbpp_winner_trails_elsewhere(n: Numbers, benchmark: str) -> Value:
    """MacNet-Chain on qwen-2.5-14B is behind GMR on each of the other benchmarks and on average."""
    return n.accuracy("gmr", benchmark) - n.accuracy("macnet_chain", benchmark, "qwen-2.5-14B")


@claim(
    section="Main results",
    place="performance analysis",
    unit="points",
    holds=Above(0),
    note="Several is taken as at least two, so that the second best of the six counts; in print all six are ahead.",
)
def mbpp_macnet_ahead(n: Numbers) -> Value:
    """Several MacNet configurations are more accurate than GMR on MBPP."""
    return n.runner_up("mbpp", "macnet_chain", "macnet_tree", "macnet_complete") - n.accuracy("gmr", "mbpp")


@claim(
    section="Main results",
    place="performance analysis",
    unit="points",
    stated=79.6 - 79.2,
    tolerance=0.005,
    holds=Between(-2, 2),
    note="Comparable is taken as within 2 points; the margin is ours.",
)
def mbpp_close_to_masrouter(n: Numbers) -> Value:
    """On MBPP, GMR and MASRouter are comparable, 79.60 and 79.20."""
    return n.accuracy("gmr", "mbpp") - n.accuracy("masrouter", "mbpp")


@claim(
    section="Main results",
    place="performance analysis",
    unit="points",
    stated=79.6 - 74.8,
    tolerance=0.005,
    holds=Above(0),
)
def mbpp_ahead_of_puppeteer(n: Numbers) -> Value:
    """On MBPP, GMR is ahead of Puppeteer-32B, 79.60 against 74.80."""
    return n.accuracy("gmr", "mbpp") - n.accuracy("puppeteer", "mbpp", LARGE)


@claim(
    section="Main results",
    place="performance analysis",
    unit="points",
    holds=Above(0),
    over={"benchmark": ["math", "gsm_hard", "mbpp", "humaneval", "mmlu_pro"]},
    note="By two questions of 500 on MBPP against MASRouter, by one of 416 on MATH against Puppeteer-32B.",
)
def most_accurate_of_three(n: Numbers, benchmark: str) -> Value:
    """On every benchmark GMR is more accurate than MASRouter and Puppeteer-32B."""
    return n.accuracy("gmr", benchmark) - most(
        n.accuracy("masrouter", benchmark), n.accuracy("puppeteer", benchmark, LARGE)
    )


@claim(section="Main results", place="performance analysis", unit="points", holds=Above(0))
def gains_most_on_two(n: Numbers) -> Value:
    """The gain over the best baseline of a benchmark is largest on GSM-Hard and HumanEval."""
    gain = {benchmark: n.accuracy("gmr", benchmark) - n.rival("gmr", benchmark) for benchmark in _BENCHMARKS}
    return least(gain["gsm_hard"], gain["humaneval"]) - most(gain["math"], gain["mbpp"], gain["mmlu_pro"])


@claim(
    section="Main results",
    place="performance analysis",
    unit="points",
    holds=Above(0),
    note="A second reading of the same sentence. Over Puppeteer-32B the largest gain is the one on MBPP, 4.80 points.",
)
def gains_most_on_two_over_strongest(n: Numbers) -> Value:
    """The gain over Puppeteer-32B, which the sentence before calls the strongest baseline, is largest on these two."""
    gain = {
        benchmark: n.accuracy("gmr", benchmark) - n.accuracy("puppeteer", benchmark, LARGE) for benchmark in _BENCHMARKS
    }
    return least(gain["gsm_hard"], gain["humaneval"]) - most(gain["math"], gain["mbpp"], gain["mmlu_pro"])
