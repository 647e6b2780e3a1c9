"""What the paper says of roles and prices, and whether its tables repeat each other."""

from __future__ import annotations

from analysis.claims.declared import LARGE, ROWS, TWO, Between, claim
from analysis.claims.numbers import Numbers, Value, most
from harness.runner.config import POOL

_REPEATED = [
    {"table": "ablation", "method": "gmr"},
    {"table": "paradigm", "method": "gmr"},
    {"table": "paradigm", "method": "masrouter"},
]


@claim(
    section="Roles and backbones",
    place="implementation details; appendix on roles",
    unit="roles",
    stated=26,
    holds=Between(26, 26),
    published=lambda: 7 + 7 + 12,
    exact=True,
    note="In a run, the roles of the suite's catalogue.",
)
def role_count(n: Numbers) -> Value:
    """There are 26 roles, for code, knowledge and mathematics together."""
    return n.roles("Code") + n.roles("Commonsense") + n.roles("Math")


@claim(
    section="Roles and backbones",
    place="appendix on roles",
    unit="roles",
    holds=lambda number: Between(number, number),
    published=lambda number: number,
    exact=True,
    over={
        "domain": [
            {"domain": "Code", "number": 7},
            {"domain": "Commonsense", "number": 7},
            {"domain": "Math", "number": 12},
        ]
    },
    note="As above, domain by domain.",
)
def roles_by_domain(n: Numbers, domain: str) -> Value:
    """Of the roles, 7 are for code, 7 for knowledge and 12 for mathematics."""
    return n.roles(domain)


@claim(
    section="Roles and backbones",
    place="appendix on roles",
    unit="points",
    stated=lambda half, full: half - full,
    tolerance=0.001,
    holds=Between(-2, 2),
    over={
        "pair": [
            {"benchmark": "gsm_hard", "half": 70.74, "full": 70.55},
            {"benchmark": "humaneval", "half": 89.06, "full": 89.84},
        ]
    },
    note="Not needed is taken as within 2 points; the margin is ours.",
)
def half_the_roles(n: Numbers, benchmark: str) -> Value:
    """With 13 of the 26 roles GMR reaches 70.74 on GSM-Hard and 89.06 on HumanEval, so the full set is not needed."""
    return n.accuracy("gmr_roles_13", benchmark) - n.accuracy("gmr", benchmark)


@claim(
    section="Roles and backbones",
    place="appendix on cost, table of backbones",
    unit="price",
    stated=0,
    tolerance=1e-06,
    over={"backbone": ["llama-3.2-3B", "llama-3.1-8B", "mistral-nemo-12B", "qwen-2.5-14B", LARGE]},
)
def prices(n: Numbers, backbone: str) -> Value:
    """A million tokens cost 0.003 N as input and 0.010 N as output, with N billion parameters."""
    prompt = n.price_in(backbone) - 0.003 * n.size(backbone)
    completion = n.price_out(backbone) - 0.010 * n.size(backbone)
    return most(prompt, -prompt, completion, -completion)


@claim(
    section="Tables against each other",
    place="both cost tables against Table 1",
    unit="points",
    stated=0,
    tolerance=0.001,
    over={"benchmark": TWO, "row": ROWS},
)
def cost_tables_repeat_accuracy(n: Numbers, benchmark: str, method: str, backbone: str) -> Value:
    """The cost tables repeat the accuracies of the main table."""
    return n.accuracy(method, benchmark, backbone, "costs") - n.accuracy(method, benchmark, backbone)


@claim(
    section="Tables against each other",
    place="tables of ablations, paradigms and roles against Table 1",
    unit="points",
    stated=0,
    tolerance=0.001,
    over={"row": _REPEATED, "benchmark": TWO},
)
def tables_repeat_accuracy(n: Numbers, table: str, method: str, benchmark: str) -> Value:
    """The other tables repeat the accuracies of GMR and MASRouter."""
    return n.accuracy(method, benchmark, POOL, table) - n.accuracy(method, benchmark)


@claim(
    section="Tables against each other",
    place="appendix on roles against Table 1",
    unit="points",
    stated=0,
    tolerance=0.001,
    over={"benchmark": TWO},
)
def roles_table_repeats_accuracy(n: Numbers, benchmark: str) -> Value:
    """The sentence on 13 roles repeats the accuracies of GMR."""
    return n.accuracy("gmr", benchmark, POOL, "roles13") - n.accuracy("gmr", benchmark)


@claim(
    section="Tables against each other",
    place="tables of ablations and paradigms against the cost tables",
    unit="price",
    stated=0,
    tolerance=1e-06,
    over={"row": _REPEATED, "benchmark": TWO},
)
def tables_repeat_cost(n: Numbers, table: str, method: str, benchmark: str) -> Value:
    """The other tables repeat the costs of GMR and MASRouter."""
    return n.cost(method, benchmark, POOL, table) - n.cost(method, benchmark)
