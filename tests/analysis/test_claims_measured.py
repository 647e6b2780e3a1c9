"""The side of a run: each number against numpy, intervals against those by hand, and every verdict."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr, t
from statsmodels.stats.proportion import proportion_confint

from analysis import statistics, traces
from analysis.claims.declaration import Claim, Region, claim
from analysis.claims.joint import End
from analysis.claims.judge import BY_CONSTRUCTION, FAILS, HOLDS, NOT_RUN, UNDECIDED, Part, decide, judge
from analysis.claims.measured import Run, seeds_of
from analysis.claims.numbers import GMR, LARGE, MASROUTER, PAPER, ROWS, SINGLE_CALLS, Numbers, Value
from analysis.claims.statements import CLAIMS
from analysis.finished_cells import read, read_all
from analysis.frames import Results
from harness.agents.roles import catalogue
from harness.runner import config
from tests.analysis.cells import decision, trajectory
from tests.analysis.cells import verdicts as first

BENCHMARKS = tuple(PAPER.benchmarks)
ONE, TWO, THREE = (seeds_of(config.preset("embedded", {"seeds": seeds})) for seeds in ([0], [0, 1], [0, 1, 2]))
BY_KEY = {one.key: one for one in CLAIMS}
Quantity = Callable[[Numbers], Value]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def judged(declared: Claim, cells: Sequence[Path], seeds: Any = ONE, timings: Any = None) -> list[Part]:
    rows = Results(read_all(cells)).cells_by_row
    return judge([declared], Run.of([declared], rows, timings or {}, seeds=seeds[0], several=seeds[1]))[0]


def part(quantity: Quantity, cells: Sequence[Path], seeds: Any = ONE, timings: Any = None, **declared: Any) -> Part:
    """Return the only part of a claim, judged against some cells."""
    (found,) = judged(claim("a", "b", "points", **declared)(quantity), cells, seeds, timings)
    return found


def asked(measure: str) -> Quantity:
    return lambda n: n.of(measure, "gmr", "mbpp")


def test_a_difference_and_its_interval(write_cell: Any, rng: np.random.Generator) -> None:
    ours, theirs = rng.random((2, 200)) < [[0.8], [0.6]]
    cells = [write_cell(key, "pool", "mbpp", correct=of.tolist()) for key, of in (("gmr", ours), ("masrouter", theirs))]
    found = part(lambda n: n.lead(GMR, MASROUTER, "mbpp"), cells)
    paired = 100 * (ours.astype(float) - theirs)
    assert found["measured"] == pytest.approx(paired.mean())
    ends = statistics.paired(int((ours > theirs).sum()), int((ours < theirs).sum()), 200)
    assert (found["low"], found["high"]) == pytest.approx([100 * end for end in ends])


def test_methods_share_the_items_that_are_drawn(write_cell: Any, rng: np.random.Generator) -> None:
    """Paired: a constant ratio has no spread, however much the costs themselves vary."""
    costs = rng.random(100) + 0.1
    ours = write_cell("gmr", "pool", "mbpp", correct=[True] * 100, cost=costs)
    theirs = write_cell("masrouter", "pool", "mbpp", correct=[True] * 100, cost=2 * costs)
    alone = part(asked("cost"), [ours, theirs])
    assert alone["high"] - alone["low"] > 0.05
    ratio = part(lambda n: n.ratio("gmr", "masrouter", "mbpp", "cost"), [ours, theirs])
    assert ratio["measured"] == pytest.approx(0.5)
    assert ratio.get("high", 0) - ratio.get("low", 0) < 1e-9


def test_averages_and_seeds_of_all_benchmarks(write_cell: Any, rng: np.random.Generator) -> None:
    right = {(seed, name): rng.random(30) < 0.3 + 0.1 * seed for seed in (0, 1, 2) for name in BENCHMARKS}
    cells = [write_cell("gmr", "pool", name, seed=seed, correct=one.tolist()) for (seed, name), one in right.items()]
    by_seed = [100 * np.mean([np.mean(right[seed, name]) for name in BENCHMARKS]) for seed in (0, 1, 2)]
    expected: list[tuple[Quantity, Any, int]] = [
        (lambda n: n.accuracy("gmr", "average"), np.mean(by_seed), 15),
        (lambda n: n.of("seed_mean", "gmr", "overall"), np.mean(by_seed), 15),
        (asked("seed_mean"), 100 * np.mean([right[seed, "mbpp"] for seed in (0, 1, 2)]), 3),
        (lambda n: n.of("seed_lowest", "gmr", "overall"), min(by_seed), 15),
        (lambda n: n.of("seed_highest", "gmr", "overall"), max(by_seed), 15),
    ]
    for quantity, value, count in expected:
        found = part(quantity, cells, THREE)
        assert found["measured"] == pytest.approx(value)
        assert found["low"] <= value <= found["high"]
        assert len(found["cells"].split()) == count


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
    quantities: list[tuple[Quantity, Any]] = [
        (lambda n: n.lead("gmr", "masrouter", "overall", "seed_mean"), ONE),
        (lambda n: n.accuracy("gmr", "average"), THREE),
        (lambda n: n.of("seed_highest", "gmr", "overall"), ONE),
    ]
    for quantity, seeds in quantities:
        assert part(quantity, list(cells.values()), seeds)["outcome"] != NOT_RUN
        found = part(quantity, left, seeds)
        assert (found["outcome"], found["missing"], "measured" in found) == (NOT_RUN, lost, False)
    assert part(lambda n: n.accuracy("gmr", "average"), left)["outcome"] != NOT_RUN


def test_which_seeds_a_statement_reads(write_cell: Any) -> None:
    """An ablation has the seed of the preset, and so has what it is compared with; one about seeds has several."""
    cells = [
        write_cell("gmr", "pool", "mbpp", seed=seed, correct=first(of, 20)) for seed, of in enumerate((10, 14, 18))
    ]
    cells.append(write_cell("gmr_no_halting", "pool", "mbpp", correct=first(8, 20)))
    cells.append(write_cell("cot", LARGE, "mbpp", correct=first(8, 20)))
    lost = part(lambda n: n.lead(GMR, "gmr_no_halting", "mbpp"), cells)
    assert (lost["measured"], lost["cells"]) == (pytest.approx(10), "gmr/mbpp/pool/0 gmr_no_halting/mbpp/pool/0")
    both = part(lambda n: n.of("seed_mean", "gmr", "mbpp") - n.accuracy("gmr", "mbpp"), cells)
    assert (both["measured"], both["seeds"], len(both["cells"].split())) == (pytest.approx(20), "0 1 2", 4)
    cot: Quantity = lambda n: n.accuracy(("cot", LARGE), "mbpp")  # noqa: E731
    assert part(cot, cells, THREE)["seeds"] == "0"
    small = seeds_of(config.preset("embedded", {"backbones": ["qwen-2.5-14B"]}))
    assert part(cot, cells, small)["missing"] == (f"cot {LARGE} on mbpp, which the preset does not have",)
    timed = part(asked("seconds"), cells, timings={(*GMR, "mbpp"): SimpleNamespace(per_query=1.5, seed=0)})
    assert (timed["measured"], timed["seeds"], "low" in timed) == (1.5, "0", False)
    assert part(asked("seconds"), cells)["missing"] == ("a timing job of gmr pool on mbpp",)


def test_a_seed_is_ranked_against_the_same_seed(write_cell: Any) -> None:
    """The best seed of the lower row is above the worst of the higher one, and yet each seed ranks them alike."""
    cells = [
        write_cell(row, "pool", name, seed=seed, correct=first(share, 20))
        for row, by_seed in {"gmr": (14, 6, 18), "masrouter": (11, 4, 12)}.items()
        for seed, share in enumerate(by_seed)
        for name in BENCHMARKS
    ]
    spread = part(lambda n: n.of("seed_lowest", GMR, "overall") - n.of("seed_highest", MASROUTER, "overall"), cells)
    assert spread["measured"] == pytest.approx(-30)
    assert part(lambda n: n.seed_lead(GMR, MASROUTER), cells)["measured"] == pytest.approx(10)
    uneven = (ONE[0], {GMR: (0, 1), MASROUTER: (1, 2)})
    found = part(lambda n: n.seed_lead(GMR, MASROUTER), cells, uneven)
    assert found["missing"] == ("the same seeds of gmr and masrouter",)


def test_rows_by_place_against_brute_force(write_cell: Any) -> None:
    folders = []
    for place, (method, backbone) in enumerate(ROWS):
        # Every row has an accuracy of its own.
        right = first(10 + place * 8 % 23, 40)
        its = {"correct": right, "cost": 1e-4 * (place + 1)}
        folders.append(write_cell(method, backbone, "humaneval", **its))
    cells = read_all(folders)
    right = {(cell.run.method, cell.run.backbone): 100 * np.mean(cell.items["correct"]) for cell in cells}
    spent = {(cell.run.method, cell.run.backbone): np.mean(cell.items["cost_total"]) for cell in cells}
    others = {row: value for row, value in right.items() if row != GMR}
    found = part(lambda n: n.rival(GMR, "humaneval"), folders)
    assert found["measured"] == pytest.approx(max(others.values()))
    assert len(found["cells"].split()) == 20
    ranked = sorted(others, key=lambda row: -others[row])
    assert part(lambda n: n.rival(ranked[0], "humaneval", ranked[1]), folders)["measured"] == right[ranked[2]]
    assert part(lambda n: n.at(4, ranked[::-1], "humaneval"), folders)["measured"] == right[ranked[3]]
    strongest = next(row for row in ranked if row not in SINGLE_CALLS)
    caption = judged(BY_KEY["humaneval_caption_cost"], folders)[0]["measured"]
    assert caption == pytest.approx(100 * (1 - spent[GMR] / min(spent[strongest], spent[MASROUTER])))
    margins = [max(right[GMR] - right[row], 100 * (spent[row] / spent[GMR] - 1)) for row in others]
    assert judged(BY_KEY["on_the_frontier"], folders)[0]["measured"] == pytest.approx(min(margins))


def test_gates_and_calls(make: Any) -> None:
    drawn = [*trajectory(0, ([], True)), *trajectory(1, ([], True), ([True], False))]
    drawn += trajectory(2, ([], True), ([False], False), ([True], True))
    tokens = {"backbone": "qwen-2.5-14B", "completion_tokens": 10}
    calls = [{"item_id": f"item-{item:04d}", "prompt_tokens": 100 + item, **tokens} for item in range(4)]
    folder = make(benchmark="mbpp", depth=(1, 2, 6, 1), decisions=drawn, calls=calls)
    expected = {"six_steps": 25, "write_rate": 100 * 4 / 6, "retrieved_1": 50, "retrieved_2": 100}
    for measure, value in {**expected, "flops": 2 * 14e9 * 111.5 / 1e15}.items():
        assert part(asked(measure), [folder])["measured"] == pytest.approx(value)
    never = part(asked("retrieved_3"), [folder])
    assert (never["outcome"], never["reason"]) == (UNDECIDED, "nothing was drawn for retrieved_3 of gmr on mbpp")


def test_depth_by_difficulty_against_scipy(write_cell: Any, rng: np.random.Generator) -> None:
    wrong = rng.integers(0, 10, 80)
    depths = [np.clip(wrong // 2 + rng.integers(0, 3, 80), 1, 6) for _ in range(3)]
    # Of the nine single-call rows as many are wrong about a question as its difficulty says.
    cells = [write_cell(*row, "mbpp", correct=(place >= wrong).tolist()) for place, row in enumerate(SINGLE_CALLS)]
    right = [True] * 80
    cells += [
        write_cell("gmr", "pool", "mbpp", seed=seed, correct=right, depth=depth) for seed, depth in enumerate(depths)
    ]
    found = part(asked("depth_by_difficulty"), cells, THREE)
    assert found["measured"] == pytest.approx(np.mean([spearmanr(wrong, depth).statistic for depth in depths]))
    # Of one seed, about two standard errors of a bootstrap over the questions either way.
    single = part(asked("depth_by_difficulty"), cells)
    chosen = rng.integers(80, size=(500, 80))
    by_hand = [spearmanr(wrong[one], depths[0][one]).statistic for one in chosen]
    assert (single["high"] - single["low"]) / 4 == pytest.approx(np.std(by_hand), rel=0.25)
    # Nothing that is missing hides another.
    alone = part(asked("depth_by_difficulty"), cells[1:9])
    assert alone["missing"] == ("gmr pool on mbpp, seed 0", "single llama-3.2-3B on mbpp, seed 0")
    for depth, value in ((wrong, 1), (9 - wrong, -1), (4, 0)):
        write_cell("gmr", "pool", "mbpp", correct=right, depth=depth)
        assert part(asked("depth_by_difficulty"), cells)["measured"] == pytest.approx(value)


def test_hard_questions_are_those_that_half_of_the_single_calls_get_wrong(
    write_cell: Any, rng: np.random.Generator
) -> None:
    wrong = rng.integers(0, 10, 80)
    ours, theirs = rng.random((2, 80)) < [[0.7], [0.4]]
    cells = [write_cell(*row, "mbpp", correct=(place >= wrong).tolist()) for place, row in enumerate(SINGLE_CALLS)]
    for row, right in (("gmr", ours), ("gmr_depth_2", theirs)):
        cells.append(write_cell(row, "pool", "mbpp", correct=right.tolist()))
    found = part(lambda n: n.lead(GMR, "gmr_depth_2", "mbpp", "hard_accuracy"), cells)
    hard = [place for place in range(80) if 2 * wrong[place] >= 9]
    apart = 100 * (ours.astype(float) - theirs)
    assert found["measured"] == pytest.approx(np.mean(apart[hard]))
    # Leaving a hard question out moves the mean by as much; another has no part in it.
    moves = (apart[hard] - np.mean(apart[hard])) / (len(hard) - 1)
    degrees = np.sum(moves**2) ** 2 / np.sum(moves**4) - 1
    reach = t.ppf(0.975, degrees) * math.sqrt(79 / 80 * np.sum(moves**2))
    assert (found["low"], found["high"]) == pytest.approx((np.mean(apart[hard]) - reach, np.mean(apart[hard]) + reach))


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
    assert part(asked("later_prompt"), [folder])["measured"] == pytest.approx(sum(later) / len(later))
    for backbone in backbones:
        share = sum(call["backbone"] == backbone for call in kept) / len(kept)
        assert traces.of_calls(read(folder))[f"calls_{backbone}"].value == pytest.approx(share)
        if backbone == LARGE:
            assert part(asked(f"calls_{LARGE}"), [folder])["measured"] == pytest.approx(100 * share)


def test_redundancy_of_what_is_stored_and_what_is_refused(make: Any, rng: np.random.Generator) -> None:
    """Of a first contribution there is none."""
    drawn, by_choice = [], {"yes": [], "no": []}
    for item, step in ((item, step) for item in range(4) for step in range(1, 6)):
        choice = "yes" if rng.random() < 0.5 else "no"
        drawn.append(decision("write", choice, item=item, step=step))
        if step > 1:
            nearest = float(f"{rng.random():.4f}")
            drawn.append(decision("redundancy", f"{nearest:.4f}", 1.0, item=item, step=step, options=1))
            by_choice[choice].append(nearest)
    folder = make(benchmark="mbpp", decisions=drawn)
    for name, choice in (("stored", "yes"), ("refused", "no")):
        found = part(asked(f"redundancy_{name}"), [folder])
        assert found["measured"] == pytest.approx(np.mean(by_choice[choice]))
        assert found["low"] < found["measured"] < found["high"]
    for none in ([], [decision("write", "yes")]):
        found = part(asked("redundancy_stored"), [make(benchmark="mbpp", decisions=none)])
        assert (found["outcome"], "nothing was drawn" in found["reason"]) == (UNDECIDED, True)


def test_training_logs(write_cell: Any, make: Any) -> None:
    """The second update never asked the retrieval gate."""
    one = {"steps": 30.0, "trajectories": 10.0, "entropy_write": 0.6, "entropy_retrieval": 0.4}
    two = {"steps": 50.0, "trajectories": 10.0, "entropy_write": 0.2}
    cells = [
        make(seed=seed, benchmark="mbpp", updates=updates)
        for seed, updates in enumerate(([one, two], [{**two, "entropy_retrieval": 0.3}, two]))
    ]
    expected = {"training_steps": 90, "training_depth": 4.5, "entropy_write": 0.2, "entropy_retrieval": 0.3}
    for measure, value in expected.items():
        found = part(asked(measure), cells, TWO)
        assert (found["measured"], found["outcome"], "low" in found) == (pytest.approx(value), UNDECIDED, False)
    for holds, outcome in ((Region(4.5, 4.5), BY_CONSTRUCTION), (Region(5, 5), FAILS)):
        assert part(asked("training_depth"), cells, TWO, holds=holds)["outcome"] == outcome
    never_asked = make(benchmark="math", updates=[two])
    cases: list[tuple[Quantity, Path]] = [
        (lambda n: n.of("entropy_retrieval", "gmr", "math"), never_asked),
        (lambda n: n.of("training_steps", "masrouter", "mbpp"), write_cell("masrouter", "pool", "mbpp")),
    ]
    for quantity, folder in cases:
        found = part(quantity, [folder])
        assert (found["outcome"], "in the training of" in found["reason"]) == (UNDECIDED, True)


def test_verdicts(write_cell: Any, rng: np.random.Generator) -> None:
    """A claim fails where any part surely does."""
    shares = {"mbpp": (0.9, 0.3), "math": (0.5, 0.5), "humaneval": (0.3, 0.9)}
    cells = [
        write_cell(row, "pool", name, correct=(rng.random(150) < share).tolist())
        for name, both in shares.items()
        for row, share in zip(("gmr", "masrouter"), both, strict=True)
    ]
    expected = {
        ("mbpp",): ("reproduced", HOLDS),
        ("mbpp", "math"): ("undecided", UNDECIDED),
        ("math", "humaneval"): ("contradicted", FAILS),
        ("humaneval", "gsm_hard"): ("not run", NOT_RUN),
    }
    for names, (verdict, outcome) in expected.items():

        @claim("a", "b", "points", over=[names])
        def ahead(n: Numbers, name: str) -> Value:
            return n.lead(GMR, MASROUTER, name)

        parts = judged(ahead, cells)
        assert parts[-1]["outcome"] == outcome
        assert {(part["verdict"], part["claim_outcome"]) for part in parts} == {(verdict, outcome)}


def test_without_any_spread_nothing_is_decided(write_cell: Any) -> None:
    """Every answer right says something of an accuracy; every cost the same says nothing of a cost."""
    for right in ([True] * 20, [True]):
        cells = [write_cell("gmr", "pool", "mbpp", correct=right, **{f"n{len(right)}": 0})]
        found = part(asked("accuracy"), cells)
        assert found["outcome"] == (UNDECIDED if len(right) == 1 else HOLDS)
        cost = part(asked("cost"), cells)
        assert (cost["outcome"], cost["reason"]) == (UNDECIDED, "no interval: no question moves the value")
        # What is not sampled needs no spread.
        (roles,) = judged(BY_KEY["role_count"], cells)
        assert (roles["verdict"], roles["measured"]) == ("true by construction", len(catalogue()))


def test_an_interval_of_a_share_ends_at_0_and_100_percent(make: Any) -> None:
    """Wilson's of one seed and at either end, otherwise of t."""
    for long, total in ((0, 40), (1, 40), (40, 40), (39, 40)):
        cells = [make(benchmark="mbpp", depth=[6] * long + [2] * (total - long), correct=first(9, total))]
        share = part(asked("six_steps"), cells, is_share=True)
        low, high = proportion_confint(long, total, method="wilson")
        assert (share["measured"], share["low"], share["high"]) == pytest.approx(
            (100 * long / total, 100 * low, 100 * high)
        )
        assert share["outcome"] == (HOLDS if long else UNDECIDED)
    depths = [6, 2, *[2] * 8], [2, 6, *[2] * 8]
    cells = [make(seed=seed, benchmark="mbpp", depth=of, correct=first(9, 10)) for seed, of in enumerate(depths)]
    share = part(asked("six_steps"), cells, TWO, is_share=True)
    assert 0 == share["low"] < share["measured"] == 10 < share["high"] < 100


def test_regions() -> None:
    """An interval that touches the border of a region is on neither side."""
    above, below, within = Region(low=0), Region(high=1), Region(-2, 2)
    holding = [(above, 0.1, 9), (below, -9, 0.9), (within, -1.9, 1.9)]
    failing = [(above, -9, -0.1), (below, 1.1, 9), (within, 2.1, 9), (within, -9, -2.1)]
    open_ = [(above, 0, 9), (above, -9, 0), (below, 0, 1), (below, 1, 9)]
    open_ += [(within, -9, 9), (within, 2, 9), (within, -2, 1), (within, -9, -2)]
    for outcome, cases in ((HOLDS, holding), (FAILS, failing), (UNDECIDED, open_)):
        for region, low, high in cases:
            assert decide(region, End(low), End(high)) == outcome, (region, low, high)


def rivals(write_cell: Any, n: int, right: int, wins: dict[Any, int]) -> list[Path]:
    """GMR right on the first questions of MATH; every other row, too, but for questions that only one of them gets."""
    cells = []
    for row in ROWS:
        verdicts = first(right, n)
        lead = wins.get(row, 0)
        verdicts[right : right + max(0, -lead)] = [True] * max(0, -lead)
        verdicts[: max(0, lead)] = [False] * max(0, lead)
        cells.append(write_cell(*row, "math", correct=verdicts, simulated=False))
    return cells


def test_the_best_of_many_is_compared_with_each_of_them(write_cell: Any) -> None:
    """Of twenty rivals one is ahead by so much that it is by itself, but not as the best of twenty."""
    lead: Quantity = lambda n: n.gain(GMR, "math")  # noqa: E731
    ahead, name = dict.fromkeys(ROWS, 20) | {GMR: 0}, "MacNet-Chain (qwen-2.5-32B)"
    chain = ("macnet_chain", LARGE)
    near, cases = "open because of", [(20, HOLDS, "")]
    cases += [(5, UNDECIDED, near), (-6, UNDECIDED, near), (-14, FAILS, "decided by")]
    for wins, outcome, reason in cases:
        cells = rivals(write_cell, 200, 100, {**ahead, chain: wins})
        found = part(lead, cells)
        assert (found["outcome"], found["measured"]) == (outcome, wins / 2)
        assert found.get("reason", "") == (f"{reason} {name}" if reason else "")
        assert found["low"] < found["measured"] < found["high"]
    pair = part(lambda n: n.lead(GMR, chain, "math"), rivals(write_cell, 200, 100, {**ahead, chain: -6}))
    assert pair["outcome"] == FAILS


def test_the_strongest_baseline_is_whichever_may_be(write_cell: Any) -> None:
    """It costs half of GMR; a second one, a little less accurate, costs twice as much."""
    chain, tree = ("macnet_chain", LARGE), ("macnet_tree", LARGE)
    random, base = np.random.default_rng(8), first(60, 200)

    def strongest(n: Numbers) -> Value:
        return n.of_strongest(lambda row: n.saving(GMR, row, "math"), "math")

    costs = {GMR: 1.0, chain: 0.5, tree: 2.0}
    for of_tree, outcome in ((98, UNDECIDED), (70, FAILS)):
        right = {chain: first(100, 200), tree: first(of_tree, 200)}
        cells = [
            write_cell(
                *row, "math", correct=right.get(row, base), cost=costs.get(row, 9) * random.uniform(0.9, 1.1, 200)
            )
            for row in ROWS
        ]
        found = part(strongest, cells)
        assert (found["outcome"], found["measured"]) == (outcome, pytest.approx(-100, abs=5))
        assert (found["high"] > 0) == (outcome == UNDECIDED)


def test_the_second_of_several_is_above_where_two_are(write_cell: Any) -> None:
    macnet = [row for row in ROWS if row[0].startswith("macnet_")]
    for ahead, outcome in ((1, UNDECIDED), (2, HOLDS)):
        wins = {row: -20 * (place < ahead) for place, row in enumerate(macnet)}
        found = part(lambda n: n.at(2, macnet, "math") - n.accuracy(GMR, "math"), rivals(write_cell, 200, 100, wins))
        assert found["outcome"] == outcome


def test_a_part_is_against_a_claim_after_correction_for_all_parts(write_cell: Any) -> None:
    """Seven against none is p = 0.016 by itself, and after five tries 0.08."""

    @claim("a", "b", "points", over=[BENCHMARKS])
    def ahead(n: Numbers, name: str) -> Value:
        return n.lead(GMR, MASROUTER, name)

    for wins, verdict in ((7, "undecided"), (12, "contradicted")):
        cells = [
            write_cell(
                row,
                "pool",
                name,
                correct=first(80 + wins * (row == "masrouter" and name == "math"), 100),
                simulated=False,
            )
            for name in BENCHMARKS
            for row in ("gmr", "masrouter")
        ]
        parts = {one["part"]: one for one in judged(ahead, cells)}
        assert (parts["MATH"]["outcome"], parts["MATH"]["verdict"]) == (FAILS, verdict)
        assert ("after correction for 5 parts" in parts["MATH"].get("reason", "")) == (wins == 7)


def test_a_published_value_is_one_of_another_sample(write_cell: Any, rng: np.random.Generator) -> None:
    """6.25 points are printed, of 128 questions; here 24 of 600 are lost, an interval that leaves 6.25 out."""
    without = ("gmr_no_memory_gates", "pool")
    for lost, is_inside, agrees in ((24, False, True), (36, True, True), (-30, False, False)):
        ours, theirs = first(400 + max(0, lost), 600), first(400 + max(0, -lost), 600)
        cells = [
            write_cell(*row, "humaneval", correct=of, simulated=False) for row, of in ((GMR, ours), (without, theirs))
        ]
        found = part(lambda n: n.lead(GMR, without, "humaneval"), cells, stated=6.25)
        assert ((found["low"] <= 6.25 <= found["high"]), found["agrees_with_published"]) == (is_inside, agrees)
