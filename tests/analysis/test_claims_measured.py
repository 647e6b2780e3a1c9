"""Claims on a run: numbers against numpy, intervals against hand calculations, and every verdict."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr, t
from statsmodels.stats.proportion import proportion_confint

from analysis.finished_cells import read, read_all
from analysis.frames import Results
from analysis.paper import traces
from analysis.paper.claims.declaration import CLAIMS, Region
from analysis.paper.claims.joint import End
from analysis.paper.claims.judge import BY_CONSTRUCTION, FAILS, HOLDS, NOT_RUN, UNDECIDED, Part, decide, judge
from analysis.paper.claims.measured import Run, Seeds, seeds_of
from analysis.paper.claims.numbers import GMR, LARGE, MASROUTER, PAPER, ROWS, SINGLE_CALLS, Numbers, Value
from harness.agents.roles import catalogue
from harness.runner.preset import resolve
from tests.analysis.cells import claim, decision, run_of, timed, trajectory
from tests.analysis.cells import verdicts as first

BENCHMARKS = tuple(PAPER.benchmarks)
ONE, TWO, THREE = (seeds_of(resolve("embedded", {"seeds": seeds})) for seeds in ([0], [0, 1], [0, 1, 2]))
BY_KEY = {one.key: one for one in CLAIMS}
HALTING, CHAIN, TREE = ("gmr_no_halting", "pool"), ("macnet_chain", LARGE), ("macnet_tree", LARGE)
Quantity = Callable[[Numbers], Value]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def part(quantity: Quantity, run: Run, unit: str = "points", **declared: Any) -> Part:
    [[found]] = judge([claim(quantity, unit, **declared)], run)
    return found


def asked(measure: str, method: str = "gmr", benchmark: str = "mbpp") -> Quantity:
    return lambda n: n.of(measure, method, benchmark)


def lead(benchmark: str = "mbpp", measure: str = "accuracy") -> Quantity:
    return lambda n: n.lead(GMR, MASROUTER, benchmark, measure)


def pair(ours: Any, theirs: Any, benchmark: str = "mbpp", other: Any = MASROUTER) -> dict[Any, Any]:
    return {(*GMR, benchmark, 0): ours, (*other, benchmark, 0): theirs}


def of_cells(quantity: Quantity, *cells: Path, seeds: Any = ONE, **declared: Any) -> Part:
    return part(quantity, Run(Results(read_all(cells)).cells_by_row, seeds), **declared)


def test_methods_share_the_items_that_are_drawn(rng: np.random.Generator) -> None:
    """Paired: a constant ratio has no spread, however much the costs themselves vary."""
    costs = rng.random(100) + 0.1
    run = run_of(pair([True] * 100, [True] * 100), cost=pair(costs, 2 * costs))
    alone = part(asked("cost"), run)
    assert alone["high"] - alone["low"] > 0.05
    ratio = part(lambda n: n.ratio(GMR, MASROUTER, "mbpp", "cost"), run)
    assert ratio["measured"] == pytest.approx(0.5)
    assert ratio.get("high", 0) - ratio.get("low", 0) < 1e-9


def test_averages_and_seeds_of_all_benchmarks(rng: np.random.Generator) -> None:
    right = {(*GMR, name, seed): rng.random(30) < 0.3 + 0.1 * seed for seed in (0, 1, 2) for name in BENCHMARKS}
    by_seed = [100 * np.mean([right[*GMR, name, seed] for name in BENCHMARKS]) for seed in (0, 1, 2)]
    expected: list[tuple[Quantity, Any, int]] = [
        (asked("accuracy", benchmark="average"), np.mean(by_seed), 15),
        (asked("seed_mean", benchmark="overall"), np.mean(by_seed), 15),
        (asked("seed_mean"), 100 * np.mean([right[*GMR, "mbpp", seed] for seed in (0, 1, 2)]), 3),
        (asked("seed_lowest", benchmark="overall"), min(by_seed), 15),
        (asked("seed_highest", benchmark="overall"), max(by_seed), 15),
    ]
    for quantity, value, count in expected:
        found = part(quantity, run_of(right))
        assert found["measured"] == pytest.approx(value)
        assert found["low"] <= value <= found["high"]
        assert len(found["cells"].split()) == count


def test_a_missing_seed_is_never_averaged_away() -> None:
    """Gone from every benchmark, so that what is left looks complete."""
    cells = {(*row, name, seed): first(5, 9) for row in (GMR, MASROUTER) for name in BENCHMARKS for seed in (0, 1, 2)}
    left = {cell: right for cell, right in cells.items() if (cell[0], cell[-1]) != ("gmr", 2)}
    average = asked("accuracy", benchmark="average")
    cases = [(lead("overall", "seed_mean"), ONE), (average, THREE), (asked("seed_highest", benchmark="overall"), ONE)]
    for quantity, seeds in cases:
        assert part(quantity, run_of(cells, seeds))["outcome"] != NOT_RUN
        found = part(quantity, run_of(left, seeds))
        lost = tuple(f"gmr pool on {name}, seed 2" for name in BENCHMARKS)
        assert (found["outcome"], found["missing"], "measured" in found) == (NOT_RUN, lost, False)
    assert part(average, run_of(left, ONE))["outcome"] != NOT_RUN


def test_which_seeds_a_statement_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """An ablation has the seed of the preset, and so has what it is compared with; one about seeds has several."""
    cells = {(*GMR, "mbpp", seed): first(right, 20) for seed, right in enumerate((10, 14, 18))}
    cells |= {(*HALTING, "mbpp", 0): first(8, 20), ("cot", LARGE, "mbpp", 0): first(8, 20)}
    run, cot = run_of(cells, ONE), lambda n: n.accuracy(("cot", LARGE), "mbpp")
    lost = part(lambda n: n.lead(GMR, HALTING, "mbpp"), run)
    assert (lost["measured"], lost["cells"]) == (pytest.approx(10), "gmr/mbpp/pool/0 gmr_no_halting/mbpp/pool/0")
    both = part(lambda n: n.of("seed_mean", GMR, "mbpp") - n.accuracy(GMR, "mbpp"), run)
    assert (both["measured"], both["seeds"], len(both["cells"].split())) == (pytest.approx(20), "0 1 2", 4)
    assert part(cot, run_of(cells, THREE))["seeds"] == "0"
    small = seeds_of(resolve("embedded", {"backbones": ["qwen-2.5-14B"]}))
    assert part(cot, run_of(cells, small))["missing"] == (f"cot {LARGE} on mbpp, which the preset does not have",)
    assert part(asked("seconds"), run)["missing"] == ("seconds of gmr pool on mbpp",)
    monkeypatch.setattr("analysis.paper.claims.measured.seconds", lambda cell: 1.5 if cell.run.seed == 0 else math.nan)
    first_seed = part(asked("seconds"), run)
    assert (first_seed["measured"], first_seed["seeds"], "low" in first_seed) == (1.5, "0", False)


def test_a_seed_is_ranked_against_the_same_seed() -> None:
    """The best seed of the lower row is above the worst of the higher one, and yet each seed ranks them alike."""
    by_seed = {GMR: (14, 6, 18), MASROUTER: (11, 4, 12)}
    cells = {
        (*row, name, seed): first(share, 20)
        for row, shares in by_seed.items()
        for seed, share in enumerate(shares)
        for name in BENCHMARKS
    }
    run = run_of(cells)
    spread = part(lambda n: n.of("seed_lowest", GMR, "overall") - n.of("seed_highest", MASROUTER, "overall"), run)
    assert spread["measured"] == pytest.approx(-30)
    assert part(lambda n: n.seed_lead(GMR, MASROUTER), run)["measured"] == pytest.approx(10)
    uneven = part(
        lambda n: n.seed_lead(GMR, MASROUTER), replace(run, seeds=Seeds({}, {GMR: (0, 1), MASROUTER: (1, 2)}))
    )
    assert uneven["missing"] == ("the same seeds of gmr and masrouter",)


def test_rows_by_rank_against_brute_force() -> None:
    # Every row has an accuracy of its own.
    right = {row: first(10 + number * 8 % 23, 40) for number, row in enumerate(ROWS)}
    spent = {row: number + 1.0 for number, row in enumerate(ROWS)}
    run = run_of(
        {(*row, "humaneval", 0): verdicts for row, verdicts in right.items()},
        cost={(*row, "humaneval", 0): cost for row, cost in spent.items()},
    )
    shares = {row: 100 * np.mean(verdicts) for row, verdicts in right.items()}
    found = part(lambda n: n.rival(GMR, "humaneval"), run)
    ranked = sorted((row for row in ROWS if row != GMR), key=lambda row: -shares[row])
    assert found["measured"] == pytest.approx(shares[ranked[0]])
    assert len(found["cells"].split()) == 20
    assert part(lambda n: n.rival(ranked[0], "humaneval", ranked[1]), run)["measured"] == shares[ranked[2]]
    assert part(lambda n: n.at(4, ranked[::-1], "humaneval"), run)["measured"] == shares[ranked[3]]
    strongest = next(row for row in ranked if row not in SINGLE_CALLS)
    [caption], [frontier, _] = judge([BY_KEY["humaneval_caption_cost"], BY_KEY["on_the_frontier"]], run)
    assert caption["measured"] == pytest.approx(100 * (1 - spent[GMR] / min(spent[strongest], spent[MASROUTER])))
    margins = [max(shares[GMR] - shares[row], 100 * (spent[row] / spent[GMR] - 1)) for row in ranked]
    assert frontier["measured"] == pytest.approx(min(margins))


def test_gates_calls_and_seconds(make: Any) -> None:
    drawn = [*trajectory(0, ([], True)), *trajectory(1, ([], True), ([True], False))]
    drawn += trajectory(2, ([], True), ([False], False), ([True], True))
    tokens = {"backbone": "qwen-2.5-14B", "completion_tokens": 10}
    calls = [{"item_id": f"item-{item:04d}", "prompt_tokens": 100 + item, **tokens} for item in range(4)]
    folder = make(benchmark="mbpp", depth=(1, 2, 6, 1), decisions=drawn, calls=calls)
    expected = {"six_steps": 25, "write_rate": 100 * 4 / 6, "retrieved_1": 50, "retrieved_2": 100}
    for measure, value in {**expected, "flops": 2 * 14e9 * 111.5 / 1e15, "seconds": 1.5}.items():
        assert of_cells(asked(measure), timed(folder))["measured"] == pytest.approx(value)
    never = of_cells(asked("retrieved_3"), folder)
    assert (never["outcome"], never["reason"]) == (UNDECIDED, "nothing was drawn for retrieved_3 of gmr on mbpp")


def singles(wrong: np.ndarray) -> dict[Any, Any]:
    """Return answers of the nine single-call rows, of which as many are wrong about a question as its difficulty."""
    return {(*row, "mbpp", 0): number >= wrong for number, row in enumerate(SINGLE_CALLS)}


def test_depth_by_difficulty_against_scipy(rng: np.random.Generator) -> None:
    wrong, right = rng.integers(0, 10, 80), [True] * 80
    depths = {(*GMR, "mbpp", seed): np.clip(wrong // 2 + rng.integers(0, 3, 80), 1, 6) for seed in range(3)}
    cells = singles(wrong) | dict.fromkeys(depths, right)
    found = part(asked("depth_by_difficulty"), run_of(cells, THREE, depth=depths))
    by_seed = [spearmanr(wrong, depth).statistic for depth in depths.values()]
    assert found["measured"] == pytest.approx(np.mean(by_seed))
    # Of one seed, about two standard errors of a bootstrap over the questions either way.
    single = part(asked("depth_by_difficulty"), run_of(cells, ONE, depth=depths))
    by_hand = [
        spearmanr(wrong[one], depths[*GMR, "mbpp", 0][one]).statistic for one in rng.integers(80, size=(500, 80))
    ]
    assert (single["high"] - single["low"]) / 4 == pytest.approx(np.std(by_hand), rel=0.25)
    # Nothing that is missing hides another.
    alone = part(asked("depth_by_difficulty"), run_of(dict(list(singles(wrong).items())[1:]), ONE, depth={}))
    assert alone["missing"] == ("gmr pool on mbpp, seed 0", "single llama-3.2-3B on mbpp, seed 0")
    for depth, value in ((wrong, 1), (9 - wrong, -1), (4, 0)):
        run = run_of(cells, ONE, depth={(*GMR, "mbpp", 0): depth})
        assert part(asked("depth_by_difficulty"), run)["measured"] == pytest.approx(value)


def test_hard_questions_are_those_that_half_of_the_single_calls_get_wrong(rng: np.random.Generator) -> None:
    wrong = rng.integers(0, 10, 80)
    ours, theirs = rng.random((2, 80)) < [[0.7], [0.4]]
    found = part(lead(measure="hard_accuracy"), run_of(singles(wrong) | pair(ours, theirs)))
    hard = 2 * wrong >= 9
    apart = 100 * (ours.astype(float) - theirs)[hard]
    assert found["measured"] == pytest.approx(np.mean(apart))
    # Leaving a hard question out moves the mean by as much; another has no part in it.
    moves = (apart - np.mean(apart)) / (len(apart) - 1)
    degrees = np.sum(moves**2) ** 2 / np.sum(moves**4) - 1
    reach = t.ppf(0.975, degrees) * math.sqrt(79 / 80 * np.sum(moves**2))
    assert (found["low"], found["high"]) == pytest.approx((np.mean(apart) - reach, np.mean(apart) + reach))


def test_prompts_and_backbones_of_steps(make: Any, rng: np.random.Generator) -> None:
    """The final call is no step, and a call without a reply has no prompt that anybody read."""
    rows = [
        {"item_id": f"item-{item:04d}", "step": step, "backbone": backbone, "is_step": step < 4, "error": error}
        for item in (0, 1, 1, 3)
        for step in (1, 2, 3, 4)
        for backbone in (LARGE, "qwen-2.5-14B", "qwen-2.5-14B")
        for error in (None, "gone")
    ]
    calls = [{**row, "prompt_tokens": int(rng.integers(1, 999))} for row in rows if rng.random() < 0.7]
    backbones = {key: {"model": key} for key in (LARGE, "qwen-2.5-14B", "llama-3.2-3B")}
    folder = make(benchmark="mbpp", calls=calls, backbones=backbones)
    kept = [call for call in calls if call["is_step"] and call["error"] is None]
    later = [call["prompt_tokens"] for call in kept if call["step"] > 1]
    shares = {key: sum(call["backbone"] == key for call in kept) / len(kept) for key in backbones}
    assert of_cells(asked("later_prompt"), folder)["measured"] == pytest.approx(np.mean(later))
    assert of_cells(asked(f"calls_{LARGE}"), folder)["measured"] == pytest.approx(100 * shares[LARGE])
    ratios = traces.of_calls(read(folder))
    assert {key: ratios[f"calls_{key}"].value for key in backbones} == pytest.approx(shares)


def test_redundancy_of_what_is_stored_and_what_is_refused(make: Any, rng: np.random.Generator) -> None:
    """Of a first contribution there is none."""
    drawn, by_choice = [], {"yes": [], "no": []}
    for item, step in ((item, step) for item in range(4) for step in range(1, 6)):
        choice = "yes" if rng.random() < 0.5 else "no"
        drawn.append(decision("write", choice, item=item, step=step))
        if step > 1:
            nearest = f"{rng.random():.4f}"
            drawn.append(decision("redundancy", nearest, 1.0, item=item, step=step, options=1))
            by_choice[choice].append(float(nearest))
    folder = make(benchmark="mbpp", decisions=drawn)
    for name, choice in (("stored", "yes"), ("refused", "no")):
        found = of_cells(asked(f"redundancy_{name}"), folder)
        assert found["measured"] == pytest.approx(np.mean(by_choice[choice]))
        assert found["low"] < found["measured"] < found["high"]
    for none in ([], [decision("write", "yes")]):
        found = of_cells(asked("redundancy_stored"), make(benchmark="mbpp", decisions=none))
        assert (found["outcome"], "nothing was drawn" in found["reason"]) == (UNDECIDED, True)


def test_training_logs(write_cell: Any, make: Any) -> None:
    """The second update never asked the retrieval gate."""
    one = {"steps": 30.0, "trajectories": 10.0, "entropy_write": 0.6, "entropy_retrieval": 0.4}
    two = {"steps": 50.0, "trajectories": 10.0, "entropy_write": 0.2}
    logs = [one, two], [{**two, "entropy_retrieval": 0.3}, two]
    cells = [make(seed=seed, benchmark="mbpp", updates=updates) for seed, updates in enumerate(logs)]
    expected = {"training_steps": 90, "training_depth": 4.5, "entropy_write": 0.2, "entropy_retrieval": 0.3}
    for measure, value in expected.items():
        found = of_cells(asked(measure), *cells, seeds=TWO)
        assert (found["measured"], found["outcome"], "low" in found) == (pytest.approx(value), UNDECIDED, False)
    for holds, outcome in ((Region(4.5, 4.5), BY_CONSTRUCTION), (Region(5, 5), FAILS)):
        assert of_cells(asked("training_depth"), *cells, seeds=TWO, holds=holds)["outcome"] == outcome
    cases = {
        asked("entropy_retrieval", benchmark="math"): make(benchmark="math", updates=[two]),
        asked("training_steps", "masrouter"): write_cell("masrouter", "pool", "mbpp"),
    }
    for quantity, folder in cases.items():
        found = of_cells(quantity, folder)
        assert (found["outcome"], "in the training of" in found["reason"]) == (UNDECIDED, True)


@pytest.mark.parametrize(
    ("names", "verdict", "outcome"),
    [
        (["mbpp"], "reproduced", HOLDS),
        (["mbpp", "math"], "undecided", UNDECIDED),
        (["math", "humaneval"], "contradicted", FAILS),
        (["humaneval", "gsm_hard"], "not run", NOT_RUN),
    ],
)
def test_verdicts(names: list[str], verdict: str, outcome: str, rng: np.random.Generator) -> None:
    """A claim fails where any part surely does."""
    shares = {"mbpp": (0.9, 0.3), "math": (0.5, 0.5), "humaneval": (0.3, 0.9)}
    cells: dict[Any, Any] = {}
    for name, (ours, theirs) in shares.items():
        cells |= pair(rng.random(150) < ours, rng.random(150) < theirs, name)
    ahead = claim(lambda n, name: n.lead(GMR, MASROUTER, name), over={"name": names})
    [parts] = judge([ahead], run_of(cells))
    assert parts[-1]["outcome"] == outcome
    assert {(part["verdict"], part["claim_outcome"]) for part in parts} == {(verdict, outcome)}


@pytest.mark.parametrize("n", [20, 1])
def test_without_any_spread_nothing_is_decided(n: int) -> None:
    """Every answer right says something of an accuracy; every cost the same says nothing of a cost."""
    run = run_of({(*GMR, "mbpp", 0): [True] * n}, cost={(*GMR, "mbpp", 0): 0.125})
    assert part(asked("accuracy"), run)["outcome"] == (UNDECIDED if n == 1 else HOLDS)
    cost = part(asked("cost"), run)
    assert (cost["outcome"], cost["reason"]) == (UNDECIDED, "no interval: no question moves the value")
    # Nor do questions count as points of what is none: equal costs are no interval in percent.
    equal = run_of(pair([True] * n, [True] * n), cost=pair(0.125, 0.125))
    same = part(lambda n: n.saving(GMR, MASROUTER, "mbpp"), equal, "%", holds=Region(low=40))
    assert (same["measured"], same["outcome"], same["reason"]) == (0, UNDECIDED, cost["reason"])
    # What is not sampled needs no spread.
    [[roles]] = judge([BY_KEY["role_count"]], run)
    assert (roles["verdict"], roles["measured"]) == ("true by construction", len(catalogue()))


def test_an_interval_of_a_share_ends_at_0_and_100_percent() -> None:
    """Wilson's of one seed and at either end, otherwise of t."""

    def share(*depths: list[int]) -> Part:
        long = {(*GMR, "mbpp", seed): depth for seed, depth in enumerate(depths)}
        right = dict.fromkeys(long, first(9, len(depths[0])))
        return part(asked("six_steps"), run_of(right, depth=long), is_share=True)

    for long, total in ((0, 40), (1, 40), (40, 40), (39, 40)):
        found = share([6] * long + [2] * (total - long))
        expected = 100 * np.array([long / total, *proportion_confint(long, total, method="wilson")])
        assert (found["measured"], found["low"], found["high"]) == pytest.approx(tuple(expected))
        assert found["outcome"] == (HOLDS if long else UNDECIDED)
    found = share([6, 2, *[2] * 8], [2, 6, *[2] * 8])
    assert 0 == found["low"] < found["measured"] == 10 < found["high"] < 100


@pytest.mark.parametrize(
    ("region", "holding", "failing", "undecided"),
    [
        (Region(low=0), [(0.1, 9)], [(-9, -0.1)], [(0, 9), (-9, 0)]),
        (Region(high=1), [(-9, 0.9)], [(1.1, 9)], [(0, 1), (1, 9)]),
        (Region(-2, 2), [(-1.9, 1.9)], [(2.1, 9), (-9, -2.1)], [(-9, 9), (2, 9), (-2, 1), (-9, -2)]),
    ],
)
def test_an_interval_that_touches_the_border_of_a_region_is_on_neither_side(
    region: Region, holding: Any, failing: Any, undecided: Any
) -> None:
    for outcome, intervals in ((HOLDS, holding), (FAILS, failing), (UNDECIDED, undecided)):
        assert [decide(region, End(low), End(high)) for low, high in intervals] == [outcome] * len(intervals)


def rivals(wins: dict[Any, int]) -> Run:
    """GMR right on half of 200 questions of MATH; every other row, too, but for those that only one of them gets."""
    right = {}
    for row in ROWS:
        lead, verdicts = wins.get(row, 0), first(100, 200)
        verdicts[100 : 100 + max(0, -lead)] = [True] * max(0, -lead)
        verdicts[: max(0, lead)] = [False] * max(0, lead)
        right[*row, "math", 0] = verdicts
    return run_of(right)


@pytest.mark.parametrize(
    ("wins", "outcome", "reason"),
    [
        (20, HOLDS, ""),
        (5, UNDECIDED, "open because of"),
        (-6, UNDECIDED, "open because of"),
        (-14, FAILS, "decided by"),
    ],
)
def test_the_best_of_many_is_compared_with_each_of_them(wins: int, outcome: str, reason: str) -> None:
    """Of twenty rivals one is ahead by so much that it is by itself, but not as the best of twenty."""
    run = rivals(dict.fromkeys(ROWS, 20) | {GMR: 0, CHAIN: wins})
    found = part(lambda n: n.gain(GMR, "math"), run)
    assert (found["outcome"], found["measured"]) == (outcome, wins / 2)
    assert found.get("reason", "") == (f"{reason} MacNet-Chain (qwen-2.5-32B)" if reason else "")
    assert found["low"] < found["measured"] < found["high"]
    if wins == -6:
        assert part(lambda n: n.lead(GMR, CHAIN, "math"), run)["outcome"] == FAILS


@pytest.mark.parametrize(("right_of_tree", "outcome"), [(98, UNDECIDED), (70, FAILS)])
def test_the_strongest_baseline_is_whichever_may_be(right_of_tree: int, outcome: str, rng: np.random.Generator) -> None:
    """It costs half of GMR; a second one, a little less accurate, costs twice as much."""
    right = dict.fromkeys(ROWS, first(60, 200)) | {CHAIN: first(100, 200), TREE: first(right_of_tree, 200)}
    costs = dict.fromkeys(ROWS, 9.0) | {GMR: 1.0, CHAIN: 0.5, TREE: 2.0}
    run = run_of(
        {(*row, "math", 0): verdicts for row, verdicts in right.items()},
        cost={(*row, "math", 0): cost * rng.uniform(0.9, 1.1, 200) for row, cost in costs.items()},
    )
    found = part(lambda n: n.of_strongest(lambda row: n.saving(GMR, row, "math"), "math"), run)
    assert (found["outcome"], found["measured"]) == (outcome, pytest.approx(-100, abs=5))
    assert (found["high"] > 0) == (outcome == UNDECIDED)


def test_the_second_of_several_is_above_where_two_are() -> None:
    macnet = [row for row in ROWS if row[0].startswith("macnet_")]
    for ahead, outcome in ((1, UNDECIDED), (2, HOLDS)):
        run = rivals(dict.fromkeys(macnet[:ahead], -20))
        assert part(lambda n: n.at(2, macnet, "math") - n.accuracy(GMR, "math"), run)["outcome"] == outcome


@pytest.mark.parametrize(("wins", "verdict"), [(7, "undecided"), (12, "contradicted")])
def test_a_part_is_against_a_claim_after_correction_for_all_parts(wins: int, verdict: str) -> None:
    """Seven against none is p = 0.016 by itself, and after five tries 0.08."""
    cells: dict[Any, Any] = {}
    for name in BENCHMARKS:
        cells |= pair(first(80, 100), first(80 + wins * (name == "math"), 100), name)
    ahead = claim(lambda n, name: n.lead(GMR, MASROUTER, name), over={"name": BENCHMARKS})
    math_part = next(part for part in judge([ahead], run_of(cells))[0] if part["part"] == "MATH")
    assert (math_part["outcome"], math_part["verdict"]) == (FAILS, verdict)
    assert ("after correction for 5 parts" in math_part.get("reason", "")) == (wins == 7)


@pytest.mark.parametrize(("lost", "is_inside", "agrees"), [(24, False, True), (36, True, True), (-30, False, False)])
def test_a_published_value_is_one_of_another_sample(lost: int, is_inside: bool, agrees: bool) -> None:
    """6.25 points are printed, of 128 questions; here 24 of 600 are lost, an interval that leaves 6.25 out."""
    without = ("gmr_no_memory_gates", "pool")
    right = pair(first(400 + max(0, lost), 600), first(400 + max(0, -lost), 600), "humaneval", without)
    found = part(lambda n: n.lead(GMR, without, "humaneval"), run_of(right), stated=6.25)
    assert ((found["low"] <= 6.25 <= found["high"]), found["agrees_with_published"]) == (is_inside, agrees)
