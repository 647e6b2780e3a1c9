"""The side of a run: each function against numpy, intervals against a bootstrap by hand, and every verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import spearmanr

from analysis import traces
from analysis.claims.declared import Region, above, below, between, claim
from analysis.claims.judge import Consistency, Interval, Judged, Outcome, Part, decide, judge
from analysis.claims.measured import Run, Seeds
from analysis.claims.numbers import GMR, LARGE, MASROUTER, PUPPETEER, Numbers, Value
from analysis.claims.statements import CLAIMS
from analysis.frames import Results
from analysis.published import load
from analysis.ratios import estimates
from analysis.results import read_all
from harness.agents.roles import catalogue
from harness.runner import config

PUBLISHED = load()
BENCHMARKS = tuple(PUBLISHED.benchmarks)
ONE, TWO, THREE = (Seeds.of(config.preset("embedded", {"seeds": seeds})) for seeds in ([0], [0, 1], [0, 1, 2]))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def judged(
    quantity: Callable[[Numbers], Value],
    cells: Sequence[Path],
    timings: dict[tuple[str, str, str], Any] | None = None,
    seeds: Seeds = ONE,
    **declared: Any,
) -> Judged:
    """One claim, judged against some cells."""
    found = Results(read_all(cells)).trainings if cells else {}
    return judge(claim("a", "b", "points", **declared)(quantity), PUBLISHED, Run(found, timings or {}, seeds))


def part(*args: Any, **changes: Any) -> Part:
    return judged(*args, **changes).parts[0]


def edit(folder: Path, **columns: Any) -> Path:
    """Replace columns of a cell's items."""
    path = folder / "items.parquet"
    table = pq.read_table(path)
    for name, values in columns.items():
        field = table.schema.get_field_index(name)
        table = table.set_column(field, name, pa.array(values, table.schema.field(name).type))
    pq.write_table(table, path)
    return folder


def decide_by(folder: Path, drawn: Sequence[tuple[int, int, str, str]]) -> Path:
    """Draws of gates: question, step, gate, choice."""
    rows = [
        {"item_id": f"item-{item:04d}", "step": step, "name": name, "choice": choice}
        for item, step, name, choice in drawn
    ]
    schema = pa.schema([("item_id", pa.string()), ("step", pa.int64()), ("name", pa.string()), ("choice", pa.string())])
    pq.write_table(pa.Table.from_pylist(rows, schema), folder / "decisions.parquet")
    return folder


def log(folder: Path, *updates: dict[str, float]) -> Path:
    rows = [
        {"epoch": 1, "update": number, "measure": name, "value": value}
        for number, update in enumerate(updates, 1)
        for name, value in update.items()
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "training.parquet")
    return folder


def asked(measure: str) -> Callable[[Numbers], Value]:
    return lambda n: n.of(measure, "gmr", "mbpp")


def first(right: int, n: int) -> list[bool]:
    return [place < right for place in range(n)]


def test_a_difference_and_its_interval(write_cell: Any, rng: np.random.Generator) -> None:
    ours, theirs = rng.random((2, 200)) < [[0.8], [0.6]]
    cells = [write_cell(key, "pool", "mbpp", correct=of.tolist()) for key, of in (("gmr", ours), ("masrouter", theirs))]
    found = part(lambda n: n.lead(GMR, MASROUTER, "mbpp"), cells)
    paired = 100 * (ours.astype(float) - theirs)
    assert found.value == pytest.approx(paired.mean())
    chosen = rng.integers(200, size=(20000, 200))
    assert found.interval == pytest.approx(np.percentile(paired[chosen].mean(axis=1), [2.5, 97.5]), abs=1.0)


def test_methods_share_the_items_that_are_drawn(write_cell: Any, rng: np.random.Generator) -> None:
    """Paired: a constant ratio has no spread, however much the costs themselves vary."""
    costs = rng.random(100) + 0.1
    ours = edit(write_cell("gmr", "pool", "mbpp", correct=[True] * 100), cost_steps=costs)
    theirs = edit(write_cell("masrouter", "pool", "mbpp", correct=[True] * 100), cost_total=2 * costs)
    alone = part(lambda n: n.cost("gmr", "mbpp"), [ours, theirs]).interval
    assert alone is not None
    assert alone.high - alone.low > 0.05
    ratio = part(lambda n: n.cost("gmr", "mbpp") / n.cost("masrouter", "mbpp"), [ours, theirs])
    assert ratio.interval is None or ratio.interval.high - ratio.interval.low < 1e-9
    assert (ratio.value, ratio.all_calls) == pytest.approx((0.5, 0.25 / np.mean(2 * costs)))


def test_seeds_are_averaged_and_drawn(write_cell: Any, rng: np.random.Generator) -> None:
    """Seeds that disagree widen the interval beyond that of items."""
    right = [first(count, 100) for count in (50, 70, 90)]
    cells = [write_cell("gmr", "pool", "mbpp", seed=seed, correct=one) for seed, one in enumerate(right)]
    several = part(lambda n: n.accuracy("gmr", "mbpp"), cells, seeds=THREE)
    assert several.value == pytest.approx(70)
    chosen = rng.integers(100, size=(20000, 100))
    of_items = np.percentile(100 * np.mean(right, axis=0)[chosen].mean(axis=1), [2.5, 97.5])
    assert several.interval is not None
    assert several.interval.low < of_items[0] - 5
    assert several.interval.high > of_items[1] + 5


def test_averages_and_seeds_of_all_benchmarks(write_cell: Any, rng: np.random.Generator) -> None:
    right = {(seed, name): rng.random(30) < 0.3 + 0.1 * seed for seed in (0, 1, 2) for name in BENCHMARKS}
    cells = [write_cell("gmr", "pool", name, seed=seed, correct=one.tolist()) for (seed, name), one in right.items()]
    by_seed = [100 * np.mean([np.mean(right[seed, name]) for name in BENCHMARKS]) for seed in (0, 1, 2)]
    expected: list[tuple[Callable[[Numbers], Value], Any, int]] = [
        (lambda n: n.accuracy("gmr", "average"), np.mean(by_seed), 15),
        (lambda n: n.of("seed_mean", "gmr", "overall"), np.mean(by_seed), 15),
        (lambda n: n.of("seed_mean", "gmr", "mbpp"), 100 * np.mean([right[seed, "mbpp"] for seed in (0, 1, 2)]), 3),
        (lambda n: n.of("seed_lowest", "gmr", "overall"), min(by_seed), 15),
        (lambda n: n.of("seed_highest", "gmr", "overall"), max(by_seed), 15),
    ]
    for quantity, value, count in expected:
        found = part(quantity, cells, seeds=THREE)
        assert found.value == pytest.approx(value)
        assert found.interval is not None
        assert found.interval.low <= value <= found.interval.high
        assert len(found.cells) == count


def test_a_missing_seed_is_never_averaged_away(write_cell: Any) -> None:
    """Gone from every benchmark, so that what is left looks complete."""
    cells = {
        (row, seed, name): write_cell(row, "pool", name, seed=seed, correct=first(5, 9))
        for row in ("gmr", "masrouter")
        for name in BENCHMARKS
        for seed in (0, 1, 2)
    }
    left = [cell for (row, seed, _), cell in cells.items() if (row, seed) != ("gmr", 2)]
    lost = tuple(f"gmr pool on {name}, seed 2" for name in BENCHMARKS)
    quantities: list[tuple[Callable[[Numbers], Value], Seeds]] = [
        (lambda n: n.of("seed_mean", "gmr", "overall") - n.of("seed_mean", "masrouter", "overall"), ONE),
        (lambda n: n.accuracy("gmr", "average"), THREE),
        (lambda n: n.of("seed_highest", "gmr", "overall"), ONE),
    ]
    for quantity, seeds in quantities:
        assert judged(quantity, list(cells.values()), seeds=seeds).outcome is not Outcome.NOT_RUN
        found = part(quantity, left, seeds=seeds)
        assert (found.outcome, found.value, found.missing) == (Outcome.NOT_RUN, None, lost)
    assert judged(lambda n: n.accuracy("gmr", "average"), left).outcome is not Outcome.NOT_RUN


def test_which_seeds_a_statement_reads(write_cell: Any) -> None:
    """An ablation has the seed of the preset, and so has what it is compared with; one about seeds has several."""
    cells = [
        write_cell("gmr", "pool", "mbpp", seed=seed, correct=first(of, 20)) for seed, of in enumerate((10, 14, 18))
    ]
    cells.append(write_cell("gmr_no_halting", "pool", "mbpp", correct=first(8, 20)))
    cells.append(write_cell("cot", LARGE, "mbpp", correct=first(8, 20)))
    lost = part(lambda n: n.lead(GMR, "gmr_no_halting", "mbpp"), cells)
    assert (lost.value, [cell.run.seed for cell in lost.cells]) == (pytest.approx(10), [0, 0])
    both = part(lambda n: n.of("seed_mean", "gmr", "mbpp") - n.accuracy("gmr", "mbpp"), cells)
    assert (both.value, [cell.run.seed for cell in both.cells]) == (pytest.approx(20), [0, 1, 2, 0])
    assert len(part(lambda n: n.accuracy(("cot", LARGE), "mbpp"), cells, seeds=THREE).cells) == 1
    absent = part(lambda n: n.of("seed_mean", ("cot", LARGE), "mbpp"), cells)
    assert absent.missing == (f"several seeds of cot {LARGE}",)
    small = Seeds.of(config.preset("embedded", {"backbones": ["qwen-2.5-14B"]}))
    unknown = part(lambda n: n.accuracy(("cot", LARGE), "mbpp"), cells, seeds=small)
    assert unknown.missing == (f"cot {LARGE} on mbpp, which the preset does not have",)
    timed = part(
        lambda n: n.of("seconds", "gmr", "mbpp"), cells, {(*GMR, "mbpp"): SimpleNamespace(per_query=1.5, seed=0)}
    )
    assert (timed.value, [cell.run.seed for cell in timed.cells], timed.interval) == (1.5, [0], None)
    assert part(lambda n: n.of("seconds", "gmr", "mbpp"), cells).missing == ("a timing job of gmr pool on mbpp",)


def test_a_seed_is_ranked_against_the_same_seed(write_cell: Any) -> None:
    """The best seed of the lower row is above the worst of the higher one, and yet each seed ranks them alike."""
    cells = [
        write_cell(row, "pool", name, seed=seed, correct=first(share, 20))
        for row, by_seed in {"gmr": (14, 6, 18), "masrouter": (11, 4, 12)}.items()
        for seed, share in enumerate(by_seed)
        for name in BENCHMARKS
    ]
    spread = part(lambda n: n.of("seed_lowest", GMR, "overall") - n.of("seed_highest", MASROUTER, "overall"), cells)
    assert spread.value == pytest.approx(-30)
    assert part(lambda n: n.seed_lead(GMR, MASROUTER), cells).value == pytest.approx(10)
    uneven = Seeds(ONE.own, {GMR: (0, 1), MASROUTER: (1, 2)})
    found = part(lambda n: n.seed_lead(GMR, MASROUTER), cells, seeds=uneven)
    assert found.missing == ("the same seeds of gmr and masrouter",)


def test_a_seed_without_a_case_has_no_part_in_the_mean(write_cell: Any) -> None:
    """The same rule as that of the table of gates, for a whole seed and for a draw of its questions."""
    shown: dict[int, dict[int, str]] = {0: dict(enumerate(["yes", "no"] * 4)), 1: {8: "yes", 9: "no"}, 2: {}}
    folders = []
    for seed, choices in shown.items():
        folder = edit(write_cell("gmr", "pool", "mbpp", seed=seed, correct=[True] * 12), depth=[2] * 12)
        written = [(item, 1, "write", "yes") for item in choices or [0]]
        folders.append(decide_by(folder, written + [(item, 2, "retrieve", one) for item, one in choices.items()]))
    by_seed = [traces.ratios(traces.read(cell)) for cell in read_all(folders)]
    assert ["retrieved_1" in one for one in by_seed] == [True, True, False]
    found = part(lambda n: n.of("retrieved_1", "gmr", "mbpp"), folders, seeds=THREE)
    expected = estimates(by_seed)["retrieved_1"]
    assert found.value == pytest.approx(100 * expected.mean)
    assert found.interval == pytest.approx((100 * expected.low, 100 * expected.high), abs=1)


def test_rows_by_place_against_brute_force(write_cell: Any) -> None:
    folders = []
    for place, row in enumerate(PUBLISHED.rows):
        # Every row has an accuracy of its own.
        correct, calibrated = first(10 + place * 8 % 23, 40), row.method == "single"
        folders.append(write_cell(row.method, row.backbone, "humaneval", correct=correct, calibrated=calibrated))
        edit(folders[-1], cost_steps=[1e-4 * (place + 1)] * 40, cost_total=[1e-4 * (place + 1)] * 40)
    cells = read_all(folders)
    right = {(cell.run.method, cell.run.backbone): 100 * np.mean(cell.items["correct"]) for cell in cells}
    spent = {(cell.run.method, cell.run.backbone): np.mean(cell.items["cost_total"]) for cell in cells}
    others = {row: value for row, value in right.items() if row != GMR}
    found = part(lambda n: n.rival(GMR, "humaneval"), folders)
    assert (found.value, found.calibrated, len(found.cells)) == (pytest.approx(max(others.values())), True, 20)
    assert part(lambda n: n.rival(MASROUTER, "humaneval", PUPPETEER), folders).value == pytest.approx(
        max(value for row, value in others.items() if row not in (MASROUTER, PUPPETEER))
    )
    macnet = sorted(value for (method, _), value in right.items() if method.startswith("macnet"))
    second = part(lambda n: n.runner_up("humaneval", "macnet_chain", "macnet_tree", "macnet_complete"), folders)
    assert second.value == pytest.approx(macnet[-2])
    best = max((row for row in others if row[0] not in ("single", "cot", "complex_cot")), key=others.__getitem__)
    assert part(lambda n: n.strongest_cost("humaneval"), folders).value == pytest.approx(spent[best])
    margins = [max(right[GMR] - right[row], 100 * (spent[row] / spent[GMR] - 1)) for row in others]
    assert part(lambda n: n.undominated("humaneval"), folders).value == pytest.approx(min(margins))


def test_gates_and_calls(write_cell: Any) -> None:
    folder = edit(write_cell("gmr", "pool", "mbpp", correct=[True] * 3), depth=[1, 2, 6])
    drawn = [(0, 1, "write", "yes"), (1, 1, "write", "yes"), (1, 2, "retrieve", "yes"), (1, 2, "write", "no")]
    drawn += [(2, 1, "write", "yes"), (2, 2, "retrieve", "no"), (2, 2, "write", "no"), (2, 3, "retrieve", "yes")]
    decide_by(folder, [*drawn, (2, 3, "write", "yes")])
    tokens = {"prompt_tokens": [100, 101, 102], "completion_tokens": [10] * 3}
    calls = {"item_id": [f"item-{item:04d}" for item in range(3)], "backbone": ["qwen-2.5-14B"] * 3, **tokens}
    pq.write_table(pa.table(calls), folder / "calls.parquet")
    expected = {"depth": 3, "six_steps": 100 / 3, "write_rate": 100 * 4 / 6, "retrieved_1": 50, "retrieved_2": 100}
    for measure, value in {**expected, "flops": 2 * 14e9 * 111 / 1e15}.items():
        assert part(asked(measure), [folder]).value == pytest.approx(value)
    never = judged(lambda n: n.of("retrieved_3", "gmr", "mbpp"), [folder])
    assert (never.outcome, never.parts[0].value) == (Outcome.UNDECIDED, None)


def by_difficulty(write_cell: Any, wrong: Any, depths: Sequence[Any]) -> list[Path]:
    """Each question with as many of the nine single-call rows wrong as given, and GMR with the depths of each seed."""
    rows = [(row.method, row.backbone) for row in PUBLISHED.rows if row.method in ("single", "cot", "complex_cot")]
    singles = [
        write_cell(*row, "mbpp", correct=[bool(place >= one) for one in wrong]) for place, row in enumerate(rows)
    ]
    own = [write_cell("gmr", "pool", "mbpp", seed=seed, correct=[True] * len(wrong)) for seed in range(len(depths))]
    return [*singles, *(edit(decide_by(folder, []), depth=depth) for folder, depth in zip(own, depths, strict=True))]


def test_depth_by_difficulty_against_scipy(write_cell: Any, rng: np.random.Generator) -> None:
    wrong = rng.integers(0, 10, 80)
    depths = [np.clip(wrong // 2 + rng.integers(0, 3, 80), 1, 6) for _ in range(3)]
    cells = by_difficulty(write_cell, wrong, depths)
    found = part(lambda n: n.of("depth_by_difficulty", "gmr", "mbpp"), cells, seeds=THREE)
    assert found.value == pytest.approx(np.mean([spearmanr(wrong, depth).statistic for depth in depths]))
    chosen = rng.integers(80, size=(300, 80))
    by_hand = [np.mean([spearmanr(wrong[one], depth[one]).statistic for depth in depths]) for one in chosen]
    assert found.interval == pytest.approx(np.percentile(by_hand, [2.5, 97.5]), abs=0.05)
    without = part(lambda n: n.of("depth_by_difficulty", "gmr", "mbpp"), cells[1:], seeds=THREE)
    assert without.missing == ("single llama-3.2-3B on mbpp, seed 0",)
    # Nothing that is missing hides another.
    alone = part(lambda n: n.of("depth_by_difficulty", "gmr", "mbpp"), cells[1:9], seeds=ONE)
    assert alone.missing == ("gmr pool on mbpp, seed 0", "single llama-3.2-3B on mbpp, seed 0")


@pytest.mark.parametrize(
    ("wrong", "depth", "value"),
    [
        ([0, 0, 3, 3, 9, 9], [1, 1, 2, 2, 6, 6], 1.0),
        ([0, 0, 3, 3, 9, 9], [6, 6, 2, 2, 1, 1], -1.0),
        ([0, 0, 3, 3, 9, 9], [4, 4, 4, 4, 4, 4], 0.0),
        ([5, 5, 5, 5, 5, 5], [1, 2, 3, 4, 5, 6], 0.0),
    ],
)
def test_easy_early_and_hard_deep(write_cell: Any, wrong: list[int], depth: list[int], value: float) -> None:
    limit = next(one.holds for one in CLAIMS if one.key == "easy_end_early_hard_run_deep")
    cells = by_difficulty(write_cell, wrong, [depth])
    one = judged(lambda n: n.of("depth_by_difficulty", "gmr", "mbpp"), cells, holds=limit, exact=True)
    assert one.parts[0].value == pytest.approx(value)
    assert (one.outcome is Outcome.HOLDS) == (value == 1)


def test_training_logs(write_cell: Any) -> None:
    """The second update never asked the retrieval gate."""
    one = {"steps": 30.0, "trajectories": 10.0, "entropy_write": 0.6, "entropy_retrieval": 0.4}
    two = {"steps": 50.0, "trajectories": 10.0, "entropy_write": 0.2}
    cells = [log(write_cell("gmr", "pool", "mbpp", seed=0), one, two)]
    cells.append(log(write_cell("gmr", "pool", "mbpp", seed=1), {**two, "entropy_retrieval": 0.3}, two))
    expected = {"training_steps": 90, "training_depth": 4.5, "entropy_write": 0.2, "entropy_retrieval": 0.3}
    for measure, value in expected.items():
        found = judged(asked(measure), cells, seeds=TWO)
        assert found.parts[0].value == pytest.approx(value)
        assert (found.parts[0].interval, found.outcome) == (None, Outcome.UNDECIDED)
    for holds, outcome in ((between(4.5, 4.5), Outcome.HOLDS), (above(5), Outcome.FAILS)):
        depth = judged(lambda n: n.of("training_depth", "gmr", "mbpp"), cells, seeds=TWO, holds=holds, exact=True)
        assert depth.outcome is outcome
    assert "entropy_halt" in part(lambda n: n.of("entropy_halt", "gmr", "mbpp"), cells, seeds=TWO).reason
    untrained = [write_cell("masrouter", "pool", "mbpp")]
    found = judged(lambda n: n.of("training_steps", "masrouter", "mbpp"), untrained)
    assert (found.outcome, found.parts[0].value) == (Outcome.UNDECIDED, None)


@pytest.mark.parametrize("simulated", [False, True])
@pytest.mark.parametrize(
    ("ours", "theirs", "verdict", "shown"),
    [
        (0.9, 0.3, "reproduced", Outcome.HOLDS),
        (0.3, 0.9, "contradicted", Outcome.FAILS),
        (0.5, 0.52, "undecided", Outcome.UNDECIDED),
    ],
)
def test_verdicts(write_cell: Any, ours: float, theirs: float, simulated: bool, verdict: str, shown: Outcome) -> None:
    """A simulation reproduces and contradicts nothing, whatever it shows."""
    right = np.random.default_rng(5).random((2, 150)) < [[ours], [theirs]]
    pairs = zip(("gmr", "masrouter"), right.tolist(), strict=True)
    cells = [write_cell(key, "pool", "mbpp", correct=one, simulated=simulated) for key, one in pairs]
    found = judged(lambda n: n.lead(GMR, MASROUTER, "mbpp"), cells)
    assert (found.verdict, found.outcome) == ("simulated" if simulated else verdict, shown)
    lacking = judged(lambda n: n.lead(GMR, MASROUTER, "mbpp"), cells[:1])
    assert (lacking.verdict, lacking.parts[0].missing) == ("not run", ("masrouter pool on mbpp, seed 0",))


def test_roles_are_those_of_the_catalogue(write_cell: Any) -> None:
    roles = {one.key: one for one in CLAIMS}["role_count"]
    run = Run(Results(read_all([write_cell("gmr", "pool", "mbpp")])).trainings)
    assert (judge(roles, PUBLISHED, Run()).verdict, judge(roles, PUBLISHED, run).outcome) == ("not run", Outcome.HOLDS)
    assert judge(roles, PUBLISHED, run).parts[0].value == len(catalogue())


def test_without_any_spread_nothing_is_decided(write_cell: Any) -> None:
    """Every answer right, or a single question: a bootstrap would pretend to certainty."""
    for right in ([True] * 20, [True]):
        cell = write_cell("gmr", "pool", "mbpp", correct=right, **{f"n{len(right)}": 0})
        found = judged(lambda n: n.accuracy("gmr", "mbpp"), [cell])
        assert found.outcome is Outcome.UNDECIDED
        assert "no replicate differs" in found.parts[0].reason


def test_parts_make_the_whole() -> None:
    good, bad, unknown = Consistency.CONSISTENT, Consistency.INCONSISTENT, Consistency.NOT_CHECKABLE
    holds, open_, fails, lacking = Outcome.HOLDS, Outcome.UNDECIDED, Outcome.FAILS, Outcome.NOT_RUN
    plain = Part({}, None, None)
    for parts, whole in {(good, good): good, (bad, bad): bad, (unknown,): unknown, (bad, unknown): bad}.items():
        assert Judged(CLAIMS[0], tuple(replace(plain, consistency=one) for one in parts), True).consistency is whole
    for parts in ((good, bad), (good, unknown)):
        made = Judged(CLAIMS[0], tuple(replace(plain, consistency=one) for one in parts), True)
        assert made.consistency is Consistency.PARTLY
    for results, outcome in {
        (holds, holds): holds,
        (holds, open_): open_,
        (open_, fails): fails,
        (fails, lacking): lacking,
    }.items():
        assert Judged(CLAIMS[0], tuple(replace(plain, outcome=one) for one in results), True).outcome is outcome


@pytest.mark.parametrize(
    ("region", "low", "high", "expected"),
    [
        (above(0), 0.1, 9, Outcome.HOLDS),
        (above(0), 0, 9, Outcome.UNDECIDED),
        (above(0), -9, 0, Outcome.FAILS),
        (below(1), -9, 0.9, Outcome.HOLDS),
        (below(1), 1, 9, Outcome.FAILS),
        (between(-2, 2), -2, 2, Outcome.HOLDS),
        (between(-2, 2), -3, 2, Outcome.UNDECIDED),
        (between(-2, 2), -9, 9, Outcome.UNDECIDED),
        (between(-2, 2), 2.1, 9, Outcome.FAILS),
        (between(-2, 2), -9, -2.1, Outcome.FAILS),
        (between(-2, 2), 2, 9, Outcome.UNDECIDED),
    ],
)
def test_regions(region: Region, low: float, high: float, expected: Outcome) -> None:
    assert decide(region, Interval(low, high)) is expected
    assert decide(region, None) is Outcome.UNDECIDED
