"""Statements of the paper about roles and prices, and whether its tables agree."""

from __future__ import annotations

from functools import partial

from analysis.claims.declared import between, claim
from analysis.claims.numbers import GMR, LARGE, Numbers, Row, Value, most
from analysis.claims.statements.names import ROWS, TWO
from harness.agents.roles import by_domain

_DOMAINS = {"Code": 7, "Commonsense": 7, "Math": 12}
_roles = partial(claim, "Roles and backbones", place="appendix on roles")
_repeated = partial(claim, "Tables against each other", stated=0, holds=None)
_REPEATED = {
    "row": [
        {"table": "ablation", "method": "gmr"},
        {"table": "paradigm", "method": "gmr"},
        {"table": "paradigm", "method": "masrouter"},
    ],
    "benchmark": TWO,
}


@_roles(
    place="implementation details; appendix on roles",
    unit="roles",
    stated=26,
    holds=between(26, 26),
    published=lambda: sum(_DOMAINS.values()),
    exact=True,
)
def role_count() -> Value:
    """There are 26 roles, for code, knowledge and mathematics together.

    In a run, the roles of the suite's catalogue.
    """
    return float(sum(len(by_domain(domain)) for domain in _DOMAINS))


@_roles(
    unit="roles",
    holds=lambda number: between(number, number),
    published=lambda number: number,
    exact=True,
    over={"domain": [{"domain": domain, "number": number} for domain, number in _DOMAINS.items()]},
)
def roles_by_domain(domain: str) -> Value:
    """Of the roles, 7 are for code, 7 for knowledge and 12 for mathematics.

    As above, domain by domain.
    """
    return float(len(by_domain(domain)))


@_roles(
    unit="points",
    stated=lambda half, full: half - full,
    tolerance=0.001,
    holds=between(-2, 2),
    over={
        "pair": [
            {"benchmark": "gsm_hard", "half": 70.74, "full": 70.55},
            {"benchmark": "humaneval", "half": 89.06, "full": 89.84},
        ]
    },
)
def half_the_roles(n: Numbers, benchmark: str) -> Value:
    """With 13 of the 26 roles GMR reaches 70.74 on GSM-Hard and 89.06 on HumanEval, so the full set is not
    needed.

    Not needed is taken as within 2 points; the margin is ours.
    """  # noqa: D205 - one sentence
    return n.lead("gmr_roles_13", GMR, benchmark)


@_roles(
    place="appendix on cost, table of backbones",
    unit="price",
    stated=0,
    tolerance=1e-06,
    holds=None,
    over={"backbone": ["llama-3.2-3B", "llama-3.1-8B", "mistral-nemo-12B", "qwen-2.5-14B", LARGE]},
)
def prices(n: Numbers, backbone: str) -> Value:
    """A million tokens cost 0.003 N as input and 0.010 N as output, with N billion parameters."""
    price = n.paper.prices[backbone]
    return most(abs(price.input - 0.003 * price.size), abs(price.output - 0.010 * price.size))


@_repeated("both cost tables against Table 1", "points", tolerance=0.001, over={"benchmark": TWO, "row": ROWS})
def cost_tables_repeat_accuracy(n: Numbers, benchmark: str, row: Row) -> Value:
    """The cost tables repeat the accuracies of the main table."""
    return n.accuracy(row, benchmark, "costs") - n.accuracy(row, benchmark)


@_repeated("tables of ablations, paradigms and roles against Table 1", "points", tolerance=0.001, over=_REPEATED)
def tables_repeat_accuracy(n: Numbers, table: str, method: str, benchmark: str) -> Value:
    """The other tables repeat the accuracies of GMR and MASRouter."""
    return n.accuracy(method, benchmark, table) - n.accuracy(method, benchmark)


@_repeated("appendix on roles against Table 1", "points", tolerance=0.001, over={"benchmark": TWO})
def roles_table_repeats_accuracy(n: Numbers, benchmark: str) -> Value:
    """The sentence on 13 roles repeats the accuracies of GMR."""
    return n.accuracy(GMR, benchmark, "roles13") - n.accuracy(GMR, benchmark)


@_repeated("tables of ablations and paradigms against the cost tables", "price", tolerance=1e-06, over=_REPEATED)
def tables_repeat_cost(n: Numbers, table: str, method: str, benchmark: str) -> Value:
    """The other tables repeat the costs of GMR and MASRouter."""
    return n.cost(method, benchmark, table) - n.cost(method, benchmark)
