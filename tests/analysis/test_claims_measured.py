"""The side of a run: each function against numpy, intervals against a bootstrap by hand, and every verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import spearmanr

from analysis import traces
from analysis.claims.declared import Above, Below, Between, Region, claim
from analysis.claims.judge import (
    Consistency,
    Finding,
    Interval,
    Judged,
    Outcome,
    Verdict,
    consistency,
    decide,
    judge,
    outcome,
    verdict,
)
from analysis.claims.numbers import Numbers, Value
from analysis.claims.readings import Run, Seeds, Timed, by_key
from analysis.claims.statements import CLAIMS
from analysis.published import load
from analysis.ratios import estimates
from analysis.results import read_all
from harness.agents.roles import catalogue
from harness.runner import config

PUBLISHED = load()
DECISION = ("item_id", "step", "name", "choice")
BENCHMARKS = tuple(PUBLISHED.benchmarks)
ONE, THREE = (Seeds.of(config.preset("embedded", {"seeds": seeds})) for seeds in ([0], [0, 1, 2]))
RNG = np.random.default_rng(5)
START = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def _same_draws_in_any_order() -> None:
    RNG.bit_generator.state = START


def judged(
    quantity: Callable[[Numbers], Value],
    cells: Sequence[Path],
    timings: dict[tuple[str, str, str], Timed] | None = None,
    seeds: Seeds = ONE,
    holds: Region = Above(0),  # noqa: B008 - it cannot change
    exact: bool = False,
) -> Judged:
    """One claim, judged against some cells."""
    found = read_all(cells) if cells else ()
    simulated = any(cell.run.simulated for cell in found)
    one = claim(section="a", place="b", unit="points", holds=holds, exact=exact)(quantity)
    return judge(one, PUBLISHED, Run(by_key(found), timings or {}, seeds, simulated))


def finding(one: Judged) -> Finding:
    return one.parts[0].finding


def edit(folder: Path, **columns: Sequence[Any]) -> Path:
    """Replace columns of a cell's items."""
    path = folder / "items.parquet"
    table = pq.read_table(path)
    for name, values in columns.items():
        table = table.set_column(
            table.schema.get_field_index(name), name, pa.array(values, table.schema.field(name).type)
        )
    pq.write_table(table, path)
    return folder


def log(folder: Path, updates: Sequence[dict[str, float]]) -> Path:
    rows = [
        {"epoch": 1, "update": number, "measure": name, "value": value}
        for number, update in enumerate(updates, 1)
        for name, value in update.items()
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "training.parquet")
    return folder


def draws(rate: float, n: int) -> list[bool]:
    return [bool(one) for one in RNG.random(n) < rate]


def test_a_difference_and_its_interval(write_cell: Any) -> None:
    ours, theirs = draws(0.8, 200), draws(0.6, 200)
    cells = [write_cell("gmr", "pool", "mbpp", correct=ours), write_cell("masrouter", "pool", "mbpp", correct=theirs)]
    found = finding(judged(lambda n: n.accuracy("gmr", "mbpp") - n.accuracy("masrouter", "mbpp"), cells))
    paired = 100 * (np.array(ours, dtype=float) - theirs)
    assert found.value == pytest.approx(paired.mean())
    chosen = np.random.default_rng(1).integers(200, size=(20000, 200))
    by_hand = np.percentile(paired[chosen].mean(axis=1), [2.5, 97.5])
    assert found.interval == pytest.approx(by_hand, abs=1.0)


def test_methods_share_the_items_that_are_drawn(write_cell: Any) -> None:
    """Paired: a constant lead has no spread, however much the accuracies themselves vary."""
    right = draws(0.5, 100)
    costs = RNG.random(100) + 0.1
    ours = edit(write_cell("gmr", "pool", "mbpp", correct=right), cost_steps=costs.tolist())
    theirs = edit(write_cell("masrouter", "pool", "mbpp", correct=right), cost_total=(2 * costs).tolist())
    alone = finding(judged(lambda n: n.accuracy("gmr", "mbpp"), [ours, theirs]))
    assert alone.interval is not None
    assert alone.interval.high - alone.interval.low > 10
    ratio = finding(
        judged(
            lambda n: n.cost("gmr", "mbpp") / n.cost("masrouter", "mbpp") + 0 * n.accuracy("gmr", "mbpp"),
            [ours, theirs],
        )
    )
    assert ratio.interval is None or ratio.interval.high - ratio.interval.low < 1e-9
    assert ratio.value == pytest.approx(0.5)


def test_seeds_are_averaged_and_drawn(write_cell: Any) -> None:
    """Seeds that disagree widen the interval beyond that of items."""
    rates = (0.5, 0.7, 0.9)
    right = [[place < 100 * rate for place in range(100)] for rate in rates]
    cells = [write_cell("gmr", "pool", "mbpp", seed=seed, correct=one) for seed, one in enumerate(right)]
    several = finding(judged(lambda n: n.accuracy("gmr", "mbpp"), cells, seeds=THREE))
    assert several.value == pytest.approx(70)
    assert several.interval is not None
    by_item = 100 * np.mean(right, axis=0)
    chosen = np.random.default_rng(1).integers(100, size=(20000, 100))
    of_items = np.percentile(by_item[chosen].mean(axis=1), [2.5, 97.5])
    assert several.interval.low < of_items[0] - 5
    assert several.interval.high > of_items[1] + 5


def test_averages_and_seeds_of_all_benchmarks(write_cell: Any) -> None:
    right = {(seed, name): draws(0.3 + 0.1 * seed, 30) for seed in (0, 1, 2) for name in BENCHMARKS}
    cells = [write_cell("gmr", "pool", name, seed=seed, correct=one) for (seed, name), one in right.items()]
    by_seed = [100 * np.mean([np.mean(right[seed, name]) for name in BENCHMARKS]) for seed in (0, 1, 2)]
    expected: list[tuple[Callable[[Numbers], Value], Any, int]] = [
        (lambda n: n.accuracy("gmr", "average"), np.mean(by_seed), 15),
        (lambda n: n.seed_mean("gmr", "overall"), np.mean(by_seed), 15),
        (lambda n: n.seed_mean("gmr", "mbpp"), 100 * np.mean([right[seed, "mbpp"] for seed in (0, 1, 2)]), 3),
        (lambda n: n.seed_lowest("gmr"), min(by_seed), 15),
        (lambda n: n.seed_highest("gmr"), max(by_seed), 15),
    ]
    for quantity, value, count in expected:
        found = finding(judged(quantity, cells, seeds=THREE))
        assert found.value == pytest.approx(value)
        assert found.interval is not None
        assert found.interval.low <= value <= found.interval.high
        assert len(found.cells) == count


def test_one_seed_has_no_spread_between_seeds(write_cell: Any) -> None:
    cells = [write_cell("gmr", "pool", name, correct=draws(0.5, 9)) for name in BENCHMARKS]
    assert finding(judged(lambda n: n.accuracy("gmr", "average"), cells)).value is not None
    for quantity in (lambda n: n.seed_mean("gmr", "overall"), lambda n: n.seed_lowest("gmr")):
        found = judged(quantity, cells)
        assert found.verdict is Verdict.NOT_RUN
        assert "gmr pool on math, seed 1/2" in finding(found).missing
    assert finding(judged(lambda n: n.seed_mean("cot", "mbpp", "qwen-2.5-32B"), cells)).missing == (
        "several seeds of cot qwen-2.5-32B",
    )


def test_a_missing_seed_is_never_averaged_away(write_cell: Any) -> None:
    """Gone from every benchmark, so that what is left looks complete."""
    pairs = [(row, name, seed) for row in ("gmr", "masrouter") for name in BENCHMARKS for seed in (0, 1, 2)]
    cells = {one: write_cell(one[0], "pool", one[1], seed=one[2], correct=draws(0.5, 9)) for one in pairs}
    left = [cell for (row, _, seed), cell in cells.items() if (row, seed) != ("gmr", 2)]
    lost = tuple(f"gmr pool on {name}, seed 2" for name in BENCHMARKS)
    quantities: list[tuple[Callable[[Numbers], Value], Seeds]] = [
        (lambda n: n.seed_mean("gmr", "overall") - n.seed_mean("masrouter", "overall"), ONE),
        (lambda n: n.accuracy("gmr", "average"), THREE),
        (lambda n: n.seed_highest("gmr"), ONE),
    ]
    for quantity, seeds in quantities:
        assert judged(quantity, list(cells.values()), seeds=seeds).outcome is not Outcome.NOT_RUN
        found = judged(quantity, left, seeds=seeds)
        assert (found.outcome, finding(found).value) == (Outcome.NOT_RUN, None)
        assert finding(found).missing == lost
    assert judged(lambda n: n.accuracy("gmr", "average"), left).outcome is not Outcome.NOT_RUN


def test_only_statements_about_seeds_read_the_seeds_of_their_table(write_cell: Any) -> None:
    """An ablation has the seed of the preset, and so has what it is held against."""
    right = [[place < share for place in range(20)] for share in (10, 14, 18)]
    cells = [write_cell("gmr", "pool", "mbpp", seed=seed, correct=one) for seed, one in enumerate(right)]
    cells.append(write_cell("gmr_no_halting", "pool", "mbpp", correct=[place < 8 for place in range(20)]))
    lost = finding(judged(lambda n: n.accuracy("gmr", "mbpp") - n.accuracy("gmr_no_halting", "mbpp"), cells))
    assert (lost.value, [cell.run.seed for cell in lost.cells]) == (pytest.approx(10), [0, 0])
    mean = finding(judged(lambda n: n.seed_mean("gmr", "mbpp"), cells))
    assert (mean.value, [cell.run.seed for cell in mean.cells]) == (pytest.approx(70), [0, 1, 2])
    both = finding(judged(lambda n: n.seed_mean("gmr", "mbpp") - n.accuracy("gmr", "mbpp"), cells))
    assert both.value == pytest.approx(20)


def test_a_method_that_learns_nothing_needs_one_seed(write_cell: Any) -> None:
    cells = [write_cell("cot", "qwen-2.5-32B", "mbpp", correct=draws(0.5, 9))]
    assert len(finding(judged(lambda n: n.accuracy("cot", "mbpp", "qwen-2.5-32B"), cells, seeds=THREE)).cells) == 1
    small = Seeds.of(config.preset("embedded", {"backbones": ["qwen-2.5-14B"]}))
    found = finding(judged(lambda n: n.accuracy("cot", "mbpp", "qwen-2.5-32B"), cells, seeds=small))
    assert found.missing == ("cot qwen-2.5-32B on mbpp, which the preset does not have",)


def test_a_seed_is_ranked_against_the_same_seed(write_cell: Any) -> None:
    """The best seed of the lower row is above the worst of the higher one, and yet each seed ranks them alike."""
    shares = {"gmr": (14, 6, 18), "masrouter": (11, 4, 12)}
    cells = [
        write_cell(row, "pool", name, seed=seed, correct=[place < share for place in range(20)])
        for row, by_seed in shares.items()
        for seed, share in enumerate(by_seed)
        for name in BENCHMARKS
    ]
    assert finding(judged(lambda n: n.seed_lowest("gmr") - n.seed_highest("masrouter"), cells)).value == pytest.approx(
        -30
    )
    lead = judged(lambda n: n.seed_lead("gmr", "pool", "masrouter", "pool"), cells)
    assert finding(lead).value == pytest.approx(10)
    uneven = Seeds(ONE.own, {("gmr", "pool"): (0, 1), ("masrouter", "pool"): (1, 2)})
    found = finding(judged(lambda n: n.seed_lead("gmr", "pool", "masrouter", "pool"), cells, seeds=uneven))
    assert found.missing == ("the same seeds of gmr and masrouter",)


def test_a_seed_without_a_case_has_no_part_in_the_mean(write_cell: Any) -> None:
    """The same rule as that of the table of gates, for a whole seed and for a draw of its questions."""
    shown: dict[int, dict[int, str]] = {0: dict(enumerate(["yes", "no"] * 4)), 1: {8: "yes", 9: "no"}, 2: {}}
    folders = []
    for seed, choices in shown.items():
        folders.append(edit(write_cell("gmr", "pool", "mbpp", seed=seed, correct=[True] * 12), depth=[2] * 12))
        drawn = [(item, 1, "write", "yes") for item in choices or [0]]
        drawn += [(item, 2, "retrieve", choice) for item, choice in choices.items()]
        rows = [dict(zip(DECISION, (f"item-{item:04d}", *rest), strict=True)) for item, *rest in drawn]
        pq.write_table(pa.Table.from_pylist(rows), folders[-1] / "decisions.parquet")
    readings = [traces.ratios(traces.read(cell)) for cell in read_all(folders)]
    assert ["retrieved_1" in one for one in readings] == [True, True, False]
    found = finding(judged(lambda n: n.retrieved("mbpp", 1), folders, seeds=THREE))
    expected = estimates(readings)["retrieved_1"]
    assert found.value == pytest.approx(100 * expected.mean)
    assert found.interval is not None
    assert found.interval == pytest.approx((100 * expected.low, 100 * expected.high), abs=1)


def test_a_timing_has_the_seed_of_its_cell(write_cell: Any) -> None:
    cells = [write_cell("gmr", "pool", "mbpp", seed=seed) for seed in (0, 1, 2)]
    timed = finding(
        judged(lambda n: n.seconds("gmr", "mbpp"), cells, {("gmr", "pool", "mbpp"): Timed(1.5, 0)}, seeds=THREE)
    )
    assert [cell.run.seed for cell in timed.cells] == [0]


def test_roles_are_those_of_the_catalogue(write_cell: Any) -> None:
    cells = [write_cell("gmr", "pool", "mbpp")]
    found = judged(lambda n: n.roles("Math"), cells, holds=Between(12, 12), exact=True)
    assert finding(found).value == sum(role.key.startswith("Math/") for role in catalogue())
    assert found.outcome is Outcome.HOLDS
    assert judged(lambda n: n.roles("Math"), [], holds=Between(12, 12), exact=True).outcome is Outcome.NOT_RUN


def test_the_rival_is_the_best_other_row(full_run: list[Path]) -> None:
    found = finding(judged(lambda n: n.accuracy("gmr", "mbpp") - n.rival("gmr", "mbpp"), full_run))
    cells = [cell for cell in read_all(full_run) if cell.run.benchmark == "mbpp"]
    values = {(cell.run.method, cell.run.backbone): 100 * np.mean(cell.items["correct"]) for cell in cells}
    own = values.pop(("gmr", "pool"))
    assert found.value == pytest.approx(own - max(values.values()))
    assert found.calibrated
    assert len(found.cells) == 21


def test_rows_by_place_against_brute_force(full_run: list[Path]) -> None:
    for place, folder in enumerate(full_run):
        costs = [1e-4 * (place + 1)] * pq.read_metadata(folder / "items.parquet").num_rows
        edit(folder, cost_steps=costs, cost_total=costs)
    cells = [cell for cell in read_all(full_run) if cell.run.benchmark == "humaneval"]
    by_row = {(cell.run.method, cell.run.backbone): 100 * np.mean(cell.items["correct"]) for cell in cells}
    spent = {(cell.run.method, cell.run.backbone): np.mean(cell.items["cost_total"]) for cell in cells}
    macnet = sorted(value for (method, _), value in by_row.items() if method.startswith("macnet"))
    second = finding(
        judged(lambda n: n.runner_up("humaneval", "macnet_chain", "macnet_tree", "macnet_complete"), full_run)
    )
    assert second.value == pytest.approx(macnet[-2])
    alone = {row for row in by_row if row[0] in ("single", "cot", "complex_cot", "gmr")}
    best = max(by_row.keys() - alone, key=by_row.__getitem__)
    assert finding(judged(lambda n: n.strongest_cost("humaneval"), full_run)).value == pytest.approx(spent[best])
    pair = [("masrouter", "pool"), ("puppeteer", "qwen-2.5-32B")]
    rest = max(value for row, value in by_row.items() if row not in (*pair, ("gmr", "pool")))
    assert finding(
        judged(lambda n: n.rival("masrouter", "humaneval", "pool", "puppeteer", "qwen-2.5-32B"), full_run)
    ).value == pytest.approx(rest)


def test_the_frontier_against_brute_force(full_run: list[Path]) -> None:
    """All cells cost the same there, so that whoever is most accurate dominates the rest."""
    found = finding(judged(lambda n: n.undominated("gsm_hard"), full_run))
    cells = [cell for cell in read_all(full_run) if cell.run.benchmark == "gsm_hard"]
    values = {(cell.run.method, cell.run.backbone): 100 * np.mean(cell.items["correct"]) for cell in cells}
    own = values.pop(("gmr", "pool"))
    assert found.value == pytest.approx(min(max(own - other, 0.0) for other in values.values()))


def test_gates(write_cell: Any) -> None:
    folder = edit(write_cell("gmr", "pool", "mbpp", correct=[True] * 3), depth=[1, 2, 3])
    drawn = [(0, 1, "write", "yes"), (1, 1, "write", "yes"), (1, 2, "retrieve", "yes"), (1, 2, "write", "no")]
    drawn += [(2, 1, "write", "yes"), (2, 2, "retrieve", "no"), (2, 2, "write", "no"), (2, 3, "retrieve", "yes")]
    drawn += [(2, 3, "write", "yes")]
    rows = [
        {"item_id": f"item-{item:04d}", "step": step, "name": name, "choice": choice}
        for item, step, name, choice in drawn
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "decisions.parquet")
    expected = {
        lambda n: n.depth("gmr", "mbpp"): 2,
        lambda n: n.steps_share("gmr", "mbpp", 3): 100 / 3,
        lambda n: n.write_rate("mbpp"): 100 * 4 / 6,
    }
    expected |= {lambda n: n.retrieved("mbpp", 1): 50, lambda n: n.retrieved("mbpp", 2): 100}
    for quantity, value in expected.items():
        assert finding(judged(quantity, [folder])).value == pytest.approx(value)
    assert judged(lambda n: n.retrieved("mbpp", 3), [folder]).outcome is Outcome.UNDECIDED


def routed(folder: Path, depth: Sequence[int]) -> Path:
    """A cell of GMR with these depths and no gate that decided anything."""
    pq.write_table(pa.table({name: pa.array([], pa.string()) for name in DECISION}), folder / "decisions.parquet")
    return edit(folder, depth=depth)


def by_difficulty(write_cell: Any, wrong: Sequence[int], depths: Sequence[Sequence[int]]) -> list[Path]:
    """Each question with as many of the nine single-call rows wrong as given, and GMR with the depths of each seed."""
    rows = [(row.method, row.backbone) for row in PUBLISHED.rows if row.method in ("single", "cot", "complex_cot")]
    singles = [write_cell(*row, "mbpp", correct=[place >= one for one in wrong]) for place, row in enumerate(rows)]
    seeds = [write_cell("gmr", "pool", "mbpp", seed=seed, correct=[True] * len(wrong)) for seed in range(len(depths))]
    return [*singles, *(routed(folder, depth) for folder, depth in zip(seeds, depths, strict=True))]


def test_depth_by_difficulty_against_scipy(write_cell: Any) -> None:
    wrong = RNG.integers(0, 10, 80)
    depths = [np.clip(wrong // 2 + RNG.integers(0, 3, 80), 1, 6) for _ in range(3)]
    found = finding(
        judged(lambda n: n.depth_by_difficulty("mbpp"), by_difficulty(write_cell, wrong, depths), seeds=THREE)
    )
    expected = [spearmanr(wrong, depth).statistic for depth in depths]
    assert found.value == pytest.approx(np.mean(expected))
    chosen = RNG.integers(80, size=(400, 80))
    by_hand = [np.mean([spearmanr(wrong[one], depth[one]).statistic for depth in depths]) for one in chosen]
    assert found.interval == pytest.approx(np.percentile(by_hand, [2.5, 97.5]), abs=0.05)


@pytest.mark.parametrize(
    ("wrong", "depth", "value", "holds"),
    [
        ([0, 0, 3, 3, 9, 9], [1, 1, 2, 2, 6, 6], 1.0, True),
        ([0, 0, 3, 3, 9, 9], [6, 6, 2, 2, 1, 1], -1.0, False),
        ([0, 0, 3, 3, 9, 9], [4, 4, 4, 4, 4, 4], 0.0, False),
        ([5, 5, 5, 5, 5, 5], [1, 2, 3, 4, 5, 6], 0.0, False),
    ],
)
def test_easy_early_and_hard_deep(
    write_cell: Any, wrong: list[int], depth: list[int], value: float, holds: bool
) -> None:
    cells = by_difficulty(write_cell, wrong, [depth])
    limit = next(one.holds for one in CLAIMS if one.key == "easy_end_early_hard_run_deep")
    one = judged(lambda n: n.depth_by_difficulty("mbpp"), cells, holds=limit, exact=True)
    assert finding(one).value == pytest.approx(value)
    assert (one.outcome is Outcome.HOLDS) == holds


def test_depth_by_difficulty_needs_every_single_call_row(write_cell: Any) -> None:
    cells = by_difficulty(write_cell, [0, 1, 2], [[1, 2, 3]])
    found = judged(lambda n: n.depth_by_difficulty("mbpp"), cells[1:])
    assert found.outcome is Outcome.NOT_RUN
    assert finding(found).missing == ("single llama-3.2-3B on mbpp, seed 0",)


def test_training_logs(write_cell: Any) -> None:
    first = {"steps": 30.0, "trajectories": 10.0, "entropy_write": 0.6, "entropy_retrieval": 0.4}
    second = {"steps": 50.0, "trajectories": 10.0, "entropy_write": 0.2}
    cells = [
        log(write_cell("gmr", "pool", "mbpp", seed=0), [first, second]),
        log(write_cell("gmr", "pool", "mbpp", seed=1), [{**second, "entropy_retrieval": 0.3}, second]),
    ]
    two = Seeds.of(config.preset("embedded", {"seeds": [0, 1]}))
    expected = {lambda n: n.training_steps("gmr", "mbpp"): 90, lambda n: n.training_depth("gmr", "mbpp"): 4.5}
    # The second update never asked the retrieval gate.
    expected |= {lambda n: n.lowest_entropy("mbpp", "write"): 0.2, lambda n: n.lowest_entropy("mbpp", "retrieval"): 0.3}
    for quantity, value in expected.items():
        found = judged(quantity, cells, seeds=two)
        assert finding(found).value == pytest.approx(value)
        assert finding(found).interval is None
        assert found.outcome is Outcome.UNDECIDED
    assert (
        judged(lambda n: n.training_depth("gmr", "mbpp"), cells, seeds=two, holds=Between(4.5, 4.5), exact=True).outcome
        is Outcome.HOLDS
    )
    fails = judged(lambda n: n.training_depth("gmr", "mbpp"), cells, seeds=two, holds=Above(5), exact=True)
    assert fails.outcome is Outcome.FAILS
    assert "entropy_halt" in finding(judged(lambda n: n.lowest_entropy("mbpp", "halt"), cells, seeds=two)).reason
    untrained = judged(lambda n: n.training_steps("masrouter", "mbpp"), [write_cell("masrouter", "pool", "mbpp")])
    assert (untrained.outcome, finding(untrained).value) == (Outcome.UNDECIDED, None)


def test_flops_and_seconds(write_cell: Any) -> None:
    folder = write_cell("gmr", "pool", "mbpp", correct=[True, False])
    rows = [
        {
            "item_id": f"item-{item:04d}",
            "backbone": "qwen-2.5-14B",
            "prompt_tokens": 100 + item,
            "completion_tokens": 10,
        }
        for item in (0, 1)
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "calls.parquet")
    found = finding(judged(lambda n: n.flops("gmr", "mbpp"), [folder]))
    assert found.value == pytest.approx(2 * 14e9 * 110.5 / 1e15)
    assert found.interval is not None
    timed = judged(lambda n: n.seconds("gmr", "mbpp"), [folder], {("gmr", "pool", "mbpp"): Timed(1.5, 0)})
    assert finding(timed).value == 1.5
    assert timed.outcome is Outcome.UNDECIDED
    assert finding(judged(lambda n: n.seconds("gmr", "mbpp"), [folder])).missing == (
        "a timing job of gmr pool on mbpp",
    )


@pytest.mark.parametrize(
    ("ours", "theirs", "simulated", "expected", "shown"),
    [
        (0.9, 0.3, False, Verdict.REPRODUCED, Outcome.HOLDS),
        (0.3, 0.9, False, Verdict.CONTRADICTED, Outcome.FAILS),
        (0.5, 0.52, False, Verdict.UNDECIDED, Outcome.UNDECIDED),
        (0.9, 0.3, True, Verdict.REHEARSED, Outcome.HOLDS),
        (0.3, 0.9, True, Verdict.REHEARSED, Outcome.FAILS),
        (0.5, 0.52, True, Verdict.REHEARSED, Outcome.UNDECIDED),
    ],
)
def test_verdicts(
    write_cell: Any, ours: float, theirs: float, simulated: bool, expected: Verdict, shown: Outcome
) -> None:
    rates = {"gmr": ours, "masrouter": theirs}
    cells = [
        write_cell(key, "pool", "mbpp", correct=draws(rate, 150), simulated=simulated) for key, rate in rates.items()
    ]
    found = judged(lambda n: n.accuracy("gmr", "mbpp") - n.accuracy("masrouter", "mbpp"), cells)
    assert (found.verdict, found.outcome) == (expected, shown)


def test_a_missing_cell_is_named(write_cell: Any) -> None:
    found = judged(
        lambda n: n.accuracy("gmr", "mbpp") - n.accuracy("masrouter", "mbpp"), [write_cell("gmr", "pool", "mbpp")]
    )
    assert found.verdict is Verdict.NOT_RUN
    assert finding(found).missing == ("masrouter pool on mbpp, seed 0",)
    assert finding(found).value is None


def test_without_any_spread_nothing_is_decided(write_cell: Any) -> None:
    """Every answer right, or a single question: a bootstrap would pretend to certainty."""
    for right in ([True] * 20, [True]):
        found = judged(
            lambda n: n.accuracy("gmr", "mbpp"),
            [write_cell("gmr", "pool", "mbpp", correct=right, notes=["x"] * len(right))],
        )
        assert found.outcome is Outcome.UNDECIDED
        assert "no replicate differs" in finding(found).reason
        for path in found.parts[0].finding.cells:
            for file in path.folder.iterdir():
                file.unlink()
            path.folder.rmdir()


def test_parts_make_the_whole() -> None:
    good, bad, unknown = Consistency.CONSISTENT, Consistency.INCONSISTENT, Consistency.NOT_CHECKABLE
    assert consistency([good, good]) is good
    assert consistency([good, bad]) is Consistency.PARTLY
    assert consistency([bad, bad]) is bad
    assert consistency([unknown]) is unknown
    assert consistency([bad, unknown]) is bad
    assert consistency([good, unknown]) is Consistency.PARTLY
    assert outcome([Outcome.HOLDS, Outcome.HOLDS]) is Outcome.HOLDS
    assert outcome([Outcome.HOLDS, Outcome.UNDECIDED]) is Outcome.UNDECIDED
    assert outcome([Outcome.UNDECIDED, Outcome.FAILS]) is Outcome.FAILS
    assert outcome([Outcome.FAILS, Outcome.NOT_RUN]) is Outcome.NOT_RUN


def test_simulated_backbones_reproduce_nothing() -> None:
    assert Verdict.REPRODUCED not in {verdict(one, simulated=True) for one in Outcome}
    assert Verdict.CONTRADICTED not in {verdict(one, simulated=True) for one in Outcome}
    assert Verdict.REHEARSED not in {verdict(one, simulated=False) for one in Outcome}


@pytest.mark.parametrize(
    ("region", "low", "high", "expected"),
    [
        (Above(0), 0.1, 9, Outcome.HOLDS),
        (Above(0), 0, 9, Outcome.UNDECIDED),
        (Above(0), -9, 0, Outcome.FAILS),
        (Below(1), -9, 0.9, Outcome.HOLDS),
        (Below(1), 1, 9, Outcome.FAILS),
        (Between(-2, 2), -2, 2, Outcome.HOLDS),
        (Between(-2, 2), -3, 2, Outcome.UNDECIDED),
        (Between(-2, 2), -9, 9, Outcome.UNDECIDED),
        (Between(-2, 2), 2.1, 9, Outcome.FAILS),
        (Between(-2, 2), -9, -2.1, Outcome.FAILS),
        (Between(-2, 2), 2, 9, Outcome.UNDECIDED),
    ],
)
def test_regions(region: Region, low: float, high: float, expected: Outcome) -> None:
    assert decide(region, Interval(low, high)) is expected
    assert decide(region, None) is Outcome.UNDECIDED
