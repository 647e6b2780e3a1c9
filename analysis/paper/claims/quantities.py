"""Quantities of ``statements.yaml`` that are more than one method of :class:`Numbers`, of the numbers of one side.

One that belongs to a single statement has its name, and the arguments of its parts.
"""

from itertools import pairwise

from analysis.paper.claims.numbers import (
    GMR,
    GSM_AND_HUMANEVAL,
    LARGE,
    MASROUTER,
    PAPER,
    PUPPETEER,
    ROWS,
    Number,
    Numbers,
    Row,
    Value,
    least,
    mean,
    most,
)
from harness.agents.roles import DOMAINS, by_domain

_CHAIN_14B, _COMPLETE = ("macnet_chain", "qwen-2.5-14B"), ("macnet_complete", LARGE)
_OTHER_THREE = ("math", "mbpp", "mmlu_pro")
# Bold and underlined in Table 1: by benchmark the rows of the best and of the second best value.
_MARKS = {
    "math": [[GMR], [_COMPLETE, PUPPETEER]],
    "gsm_hard": [[GMR], [PUPPETEER]],
    "mbpp": [[_CHAIN_14B], [_COMPLETE]],
    "humaneval": [[GMR], [_CHAIN_14B]],
    "mmlu_pro": [[GMR], [PUPPETEER]],
    "average": [[GMR], [PUPPETEER]],
}
#: Benchmark, row and rank from 0 of each mark.
MARKS = [(key, row, rank) for key, ranks in _MARKS.items() for rank, rows in enumerate(ranks) for row in rows]
BACKBONES = tuple(PAPER.prices)
MACNET = ("macnet_chain", "macnet_tree", "macnet_complete")


def excess(n: Numbers, row: Row | str, other: Row | str, benchmark: str) -> Value:
    """Return the extra cost of a row relative to another, in percent of the other's cost."""
    return -n.saving(row, other, benchmark)


def lead_over_both(n: Numbers, benchmark: str, measure: str = "accuracy") -> Value:
    """Return the smaller lead of GMR over MASRouter and Puppeteer-32B."""
    return least(*[n.lead(GMR, row, benchmark, measure) for row in (MASROUTER, PUPPETEER)])


def saving_over_both(n: Numbers, benchmark: str, measure: str) -> Value:
    return least(*[n.saving(GMR, row, benchmark, measure) for row in (MASROUTER, PUPPETEER)])


def saving_over_strongest(n: Numbers, benchmark: str) -> Value:
    """Return the smaller saving over the most accurate multi-agent baseline and over MASRouter."""
    strongest = n.of_strongest(lambda row: n.saving(GMR, row, benchmark), benchmark)
    return least(strongest, n.saving(GMR, MASROUTER, benchmark))


def repeated(n: Numbers, measure: str, table: str, row: Row | str, benchmark: str) -> Value:
    """Return the difference between a number in one table of the paper and in the first table that prints it."""
    return n.of(measure, row, benchmark, table) - n.of(measure, row, benchmark)


def tables_repeat(n: Numbers, measure: str, table_and_method: tuple[str, str], benchmark: str) -> Value:
    return repeated(n, measure, *table_and_method, benchmark)


def average(n: Numbers, row: Row) -> Value:
    return mean(*[n.accuracy(row, benchmark) for benchmark in PAPER.benchmarks])


def printed_average(n: Numbers, row: Row) -> Value:
    return n.accuracy(row, "average")


def marks(n: Numbers, mark: tuple[str, Row, int]) -> Value:
    benchmark, row, _ = mark
    return n.accuracy(row, benchmark)


def of_rank(n: Numbers, mark: tuple[str, Row, int]) -> Value:
    """Equal values share a rank."""
    benchmark, _, rank = mark
    return sorted({float(n.accuracy(row, benchmark)) for row in ROWS}, reverse=True)[rank]


def two_strongest_baselines(n: Numbers) -> Value:
    weaker = least(n.accuracy(MASROUTER, "average"), n.accuracy(PUPPETEER, "average"))
    return weaker - n.rival(MASROUTER, "average", PUPPETEER)


def mbpp_exception(n: Numbers) -> Value:
    return n.accuracy(_CHAIN_14B, "mbpp") - most(n.rival(_CHAIN_14B, "mbpp"), n.accuracy(GMR, "mbpp"))


def mbpp_macnet_ahead(n: Numbers) -> Value:
    macnet = [row for row in ROWS if row[0].startswith("macnet_")]
    return n.at(2, macnet, "mbpp") - n.accuracy(GMR, "mbpp")


def gains_most_on_two(n: Numbers) -> Value:
    on_two = least(*[n.gain(GMR, benchmark) for benchmark in GSM_AND_HUMANEVAL])
    return on_two - most(*[n.gain(GMR, benchmark) for benchmark in _OTHER_THREE])


def gains_most_on_two_over_strongest(n: Numbers) -> Value:
    on_two = least(*[n.lead(GMR, PUPPETEER, benchmark) for benchmark in GSM_AND_HUMANEVAL])
    return on_two - most(*[n.lead(GMR, PUPPETEER, benchmark) for benchmark in _OTHER_THREE])


def on_the_frontier(n: Numbers, benchmark: str) -> Value:
    accuracy, cost = n.accuracy(GMR, benchmark), n.cost(GMR, benchmark)
    # Another row dominates if it is at least as accurate and at most as expensive.
    margins = [
        most(accuracy - n.accuracy(row, benchmark), 100 * (n.cost(row, benchmark) / cost - 1))
        for row in ROWS
        if row != GMR
    ]
    return least(*margins)


def same_order_as_the_proxy(n: Numbers, pair: tuple[Row, Row]) -> Value:
    cost, *others = (n.ratio(*pair, "humaneval", measure) - 1 for measure in ("cost", "flops", "seconds"))
    return least(*[most(least(cost, other), least(-cost, -other)) for other in others])


def flops_and_time_agree(n: Numbers, benchmark: str) -> Value:
    pairs = [(measure, pair) for measure in ("flops", "seconds") for pair in ((PUPPETEER, GMR), (MASROUTER, PUPPETEER))]
    return least(*[n.ratio(*pair, benchmark, measure) for measure, pair in pairs])


def cost_fits_flops(n: Numbers, row: Row) -> Value:
    return n.cost(row, "humaneval") / (n.of("flops", row, "humaneval") / 2)


def printed_cost_fits_flops(n: Numbers, row: Row) -> Value:
    return n.cost(row, "humaneval") / 128 / (n.of("flops", row, "humaneval") / 2)


def llm_router_matters_most(n: Numbers, benchmark: str) -> Value:
    others = ("role_allocator", "retrieval_gate", "write_gate", "halting", "memory_gates")
    weakest = least(*[n.accuracy(f"gmr_no_{module}", benchmark) for module in others])
    return weakest - n.accuracy("gmr_no_llm_router", benchmark)


def gates_add_up(n: Numbers, benchmark: str) -> Value:
    weaker = least(n.accuracy("gmr_no_retrieval_gate", benchmark), n.accuracy("gmr_no_write_gate", benchmark))
    return weaker - n.accuracy("gmr_no_memory_gates", benchmark)


def gates_save_cost(n: Numbers) -> Value:
    return least(*[n.saving(GMR, "gmr_no_memory_gates", benchmark) for benchmark in GSM_AND_HUMANEVAL])


def most_at_six(n: Numbers, benchmark: str) -> Value:
    """Return the largest share of questions with six steps that the mean depth allows."""
    return 100 * (n.of("depth", GMR, benchmark) - 1) / 5


def equal_depth_accuracy(n: Numbers, method: str) -> Value:
    return n.lead("gmr_no_halting", (method, LARGE), "gsm_hard")


def equal_depth_cost(n: Numbers, method: str) -> Value:
    return n.saving("gmr_no_halting", (method, LARGE), "gsm_hard")


def macnet_range(n: Numbers, end: str) -> Value:
    accuracies = [n.accuracy((method, LARGE), "gsm_hard") for method in MACNET]
    return least(*accuracies) if end == "lowest" else most(*accuracies)


def depth_gain_until_six(n: Numbers) -> Value:
    return n.lead(GMR, "gmr_depth_2", "math") - n.lead("gmr_depth_10", GMR, "math")


def query_only_least_accurate(n: Numbers, benchmark: str) -> Value:
    others = least(n.accuracy("full_history", benchmark), n.accuracy(GMR, benchmark))
    return others - n.accuracy(MASROUTER, benchmark)


def seed_overall(n: Numbers, method: str) -> Value:
    overall = n.of("seed_mean", method, "overall")
    return mean(*[n.of("seed_mean", method, benchmark) for benchmark in PAPER.benchmarks]) - overall


def worst_seed_beats_best(n: Numbers, row: Row) -> Value:
    return n.of("seed_lowest", GMR, "overall") - n.of("seed_highest", row, "overall")


def same_ranking_every_seed(n: Numbers) -> Value:
    return least(n.seed_lead(GMR, PUPPETEER), n.seed_lead(PUPPETEER, MASROUTER))


def steps_follow_from_depth(n: Numbers, benchmark: str) -> Value:
    return n.ratio("gmr_no_halting", GMR, benchmark, "training_steps") - 6 / n.of("training_depth", GMR, benchmark)


def write_gate_is_no_constant(n: Numbers, benchmark: str) -> Value:
    rate = n.of("write_rate", GMR, benchmark)
    return least(rate, 100 - rate)


def retrieval_gate_is_no_constant(n: Numbers, benchmark: str) -> Value:
    shares = _retrieved(n, benchmark)
    return least(*shares, *[100 - share for share in shares])


def retrieval_more_selective(n: Numbers, benchmark: str) -> Value:
    return least(*[before - after for before, after in pairwise(_retrieved(n, benchmark))])


def _retrieved(n: Numbers, benchmark: str) -> list[Number]:
    return [n.of(f"retrieved_{step}", GMR, benchmark) for step in range(1, 6)]


def gate_entropy(n: Numbers, benchmark: str, gate: str) -> Value:
    return n.of(f"entropy_{gate}", GMR, benchmark)


def stored_is_less_redundant(n: Numbers, benchmark: str) -> Value:
    return n.of("redundancy_refused", GMR, benchmark) - n.of("redundancy_stored", GMR, benchmark)


def role_count(_: Numbers) -> Value:
    return sum(len(by_domain(domain)) for domain in DOMAINS)


def roles_by_domain(_: Numbers, domain: str) -> Value:
    return len(by_domain(domain))


def prices(_: Numbers, backbone: str) -> Value:
    price = PAPER.prices[backbone]
    return most(abs(price.input - 0.003 * price.size), abs(price.output - 0.010 * price.size))
