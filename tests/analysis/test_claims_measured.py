"""Comparisons in a run: numbers against numpy, and intervals against hand calculations."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import t
from statsmodels.stats.proportion import proportion_confint

from analysis.finished_cells import by_key, read_all
from analysis.paper.claims.measured import SINGLE_CALLS, Record, Run
from analysis.paper.claims.report import HOLDS, UNDECIDED, judge
from analysis.paper.claims.statements import LARGE, PAPER
from tests.analysis.cells import claim, decision, pool_of, run_of, timed, trajectory
from tests.analysis.cells import verdicts as first

BENCHMARKS = tuple(PAPER.benchmarks)
GMR, MASROUTER = ("gmr", "pool"), ("masrouter", "pool")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def found(run: Run, measure: str = "accuracy", than: Any = (), benchmark: str = "mbpp", **part: Any) -> Record:
    """Return the comparison of GMR, which holds above 0."""
    part = {"row": "gmr", "than": than, "benchmark": benchmark, "measure": measure, "at_least": 0, **part}
    [record] = judge([claim(part)], run)[0].records
    return record


def pair(ours: Any, theirs: Any, benchmark: str = "mbpp") -> dict[Any, Any]:
    return {(*GMR, benchmark, 0): ours, (*MASROUTER, benchmark, 0): theirs}


def of_cells(measure: str, *cells: Path, **part: Any) -> Record:
    every = by_key(read_all(cells))
    seeds = {key[:2]: [cell.run.seed for cell in group] for key, group in every.items()}
    return found(Run(every, seeds), measure, **part)


def test_rows_share_the_items_that_are_drawn(rng: np.random.Generator) -> None:
    """Paired: a constant ratio has no spread, however much the costs themselves vary."""
    costs = rng.random(100) + 0.1
    run = run_of(pair([True] * 100, [True] * 100), cost=pair(costs, 2 * costs))
    alone = found(run, "cost")
    assert alone["high"] - alone["low"] > 0.05
    ratio = found(run, "cost", "masrouter")
    assert ratio["measured"] == pytest.approx(-50)
    assert ratio.get("high", 0) - ratio.get("low", 0) < 1e-9


def test_averages_and_seeds_of_all_benchmarks(rng: np.random.Generator) -> None:
    right = {(*GMR, name, seed): rng.random(30) < 0.3 + 0.1 * seed for seed in (0, 1, 2) for name in BENCHMARKS}
    by_seed = [100 * np.mean([right[*GMR, name, seed] for name in BENCHMARKS]) for seed in (0, 1, 2)]
    expected: list[tuple[str, str, Any, int]] = [
        ("accuracy", "average", np.mean(by_seed), 15),
        ("seed_mean", "overall", np.mean(by_seed), 15),
        ("seed_mean", "mbpp", 100 * np.mean([right[*GMR, "mbpp", seed] for seed in (0, 1, 2)]), 3),
        ("seed_1", "overall", by_seed[1], 5),
        ("seed_lowest", "overall", min(by_seed), 5),
        ("seed_highest", "overall", max(by_seed), 5),
    ]
    for measure, benchmark, value, count in expected:
        record = found(run_of(right), measure, benchmark=benchmark)
        assert record["measured"] == pytest.approx(value)
        assert record["low"] <= value <= record["high"]
        assert len(record["cells"].split()) == count


@pytest.mark.parametrize("measure", ["accuracy", "seed_mean", "seed_2", "seed_lowest", "seed_highest"])
def test_a_missing_seed_is_never_averaged_away(measure: str) -> None:
    """Gone from every benchmark, so that what is left looks complete."""
    cells = {(*row, name, seed): first(5, 9) for row in (GMR, MASROUTER) for name in BENCHMARKS for seed in (0, 1, 2)}
    left = {cell: right for cell, right in cells.items() if (cell[0], cell[-1]) != ("gmr", 2)}
    seeds = {GMR: (0, 1, 2), MASROUTER: (0, 1, 2)}
    assert "measured" in found(run_of(cells, seeds), measure, "masrouter", "overall")
    record = found(run_of(left, seeds), measure, "masrouter", "overall")
    assert record["missing"] == [f"gmr pool on {name}, seed 2" for name in BENCHMARKS]
    assert "measured" not in record
    assert "measured" in found(run_of(left, {GMR: (0,)}), benchmark="average")


def test_which_seeds_a_statement_reads() -> None:
    """The usual ones are those of the preset; a statement about seeds has three."""
    cells = {(*GMR, "mbpp", seed): first(right, 20) for seed, right in enumerate((10, 14, 18))}
    cells["gmr_no_halting", "pool", "mbpp", 0] = first(8, 20)
    run = run_of(cells, {GMR: (0,), ("gmr_no_halting", "pool"): (0,)})
    lost = found(run, than="gmr_no_halting")
    assert (lost["measured"], lost["cells"]) == (pytest.approx(10), "gmr/mbpp/pool/0 gmr_no_halting/mbpp/pool/0")
    assert found(run, "seed_mean")["seeds"] == "0 1 2"
    assert "no value" in found(run, "seconds")["reason"]


def test_gates_calls_and_seconds(make: Any) -> None:
    drawn = [*trajectory(0, ([], True)), *trajectory(1, ([], True), ([True], False))]
    drawn += trajectory(2, ([], True), ([False], False), ([True], True))
    tokens = {"backbone": "qwen-2.5-14B", "completion_tokens": 10}
    calls = [{"item_id": f"item-{item:04d}", "prompt_tokens": 100 + item, **tokens} for item in range(4)]
    folder = make(benchmark="mbpp", depth=(1, 2, 6, 1), decisions=drawn, calls=calls)
    expected = {"six_steps": 25, "write_rate": 100 * 4 / 6, "retrieved_1": 50, "retrieved_2": 100}
    for measure, value in {**expected, "flops": 2 * 14e9 * 111.5 / 1e15, "seconds": 1.5}.items():
        record = of_cells(measure, timed(folder))
        assert (record["measured"], "low" in record) == (pytest.approx(value), measure != "seconds")
    assert of_cells("retrieved_1", folder, than="gmr", than_measure="retrieved_2")["measured"] == pytest.approx(-50)
    never = of_cells("retrieved_3", folder)
    assert (never["outcome"], "nothing was drawn" in never["reason"]) == (UNDECIDED, True)


def singles(wrong: np.ndarray) -> dict[Any, Any]:
    """Return answers of the nine single-call rows, of which as many are wrong about a question as its difficulty."""
    return {(*row, "mbpp", 0): number >= wrong for number, row in enumerate(SINGLE_CALLS)}


def test_hard_questions_are_those_that_half_of_the_single_calls_get_wrong(rng: np.random.Generator) -> None:
    wrong, depths, right = rng.integers(0, 10, 80), rng.integers(1, 7, 80), rng.random(80) < 0.6
    run = run_of(singles(wrong) | {(*GMR, "mbpp", 0): right}, depth={(*GMR, "mbpp", 0): depths})
    assert found(run, "accuracy_hard")["measured"] == pytest.approx(100 * right[2 * wrong >= 9].mean())
    record = found(run, "depth_hard", "gmr", than_measure="depth_easy")
    hard, means = 2 * wrong >= 9, [depths[2 * wrong >= 9].mean(), depths[2 * wrong < 9].mean()]
    assert record["measured"] == pytest.approx(means[0] - means[1])
    # Leaving a question out moves the mean of its own group.
    moves = np.where(hard, (depths - means[0]) / (hard.sum() - 1), (means[1] - depths) / (80 - hard.sum() - 1))
    degrees = np.sum(moves**2) ** 2 / np.sum(moves**4) - 1
    reach = t.ppf(0.975, degrees) * math.sqrt(79 / 80 * np.sum(moves**2))
    assert (record["low"], record["high"]) == pytest.approx((means[0] - means[1] - reach, means[0] - means[1] + reach))
    lacking = run_of(dict(list(singles(wrong).items())[1:]), {GMR: (0,), **dict.fromkeys(SINGLE_CALLS, (0,))})
    missing = ["gmr pool on mbpp, seed 0", "single llama-3.2-3B on mbpp, seed 0"]
    assert found(lacking, "depth_hard")["missing"] == missing


def test_prompts_and_backbones_of_steps(make: Any) -> None:
    """The final call is no step, and a call without a reply has no prompt that anybody read."""
    asked = [(0, 1, LARGE, 5, None), (0, 2, LARGE, 30, None), (0, 2, "qwen-2.5-14B", 40, None)]
    asked += [(1, 2, "qwen-2.5-14B", 50, None), (1, 2, LARGE, 999, "gone"), (1, 3, LARGE, 700, None)]
    calls = [
        {"item_id": f"item-000{item}", "step": step, "is_step": step < 3, "backbone": backbone}
        | {"prompt_tokens": tokens, "error": error}
        for item, step, backbone, tokens, error in asked
    ]
    folder = make(benchmark="mbpp", calls=calls, backbones=pool_of({LARGE: 32, "qwen-2.5-14B": 14}))
    for measure, value in {"later_prompt": (30 + 40 + 50) / 3, f"calls_{LARGE}": 100 * 2 / 4}.items():
        assert of_cells(measure, folder)["measured"] == pytest.approx(value)


def test_redundancy_of_what_is_stored_and_what_is_refused(make: Any) -> None:
    """Of a first contribution there is none."""
    drawn = [decision("write", "yes", item=item) for item in range(4)]
    later = [(0, 2, "yes", "0.1"), (1, 2, "yes", "0.3"), (1, 3, "no", "0.6"), (2, 2, "no", "0.8"), (3, 2, "no", "0.5")]
    for item, step, choice, nearest in later:
        drawn.append(decision("write", choice, item=item, step=step))
        drawn.append(decision("redundancy", nearest, 1.0, item=item, step=step, options=1))
    folder, stored, refused = make(benchmark="mbpp", decisions=drawn), (0.1 + 0.3) / 2, (0.6 + 0.8 + 0.5) / 3
    for name, value in {"stored": stored, "refused": refused}.items():
        record = of_cells(f"redundancy_{name}", folder)
        assert record["measured"] == pytest.approx(value)
        assert record["low"] < value < record["high"]
    record = of_cells("redundancy_refused", folder, than="gmr", than_measure="redundancy_stored")
    assert record["measured"] == pytest.approx(refused - stored)


def test_training_logs(write_cell: Any, make: Any) -> None:
    """The second update never asked the retrieval gate."""
    one = {"steps": 30.0, "trajectories": 10.0, "entropy_write": 0.6, "entropy_retrieval": 0.4}
    two = {"steps": 50.0, "trajectories": 10.0, "entropy_write": 0.2}
    logs = [one, two], [{**two, "entropy_retrieval": 0.3}, two]
    cells = [make(seed=seed, benchmark="mbpp", updates=updates) for seed, updates in enumerate(logs)]
    for measure, value in {"training_steps": 90, "entropy_write": 0.2, "entropy_retrieval": 0.3}.items():
        record = of_cells(measure, *cells)
        assert (record["measured"], record["outcome"], "low" in record) == (pytest.approx(value), UNDECIDED, False)
    never = of_cells("entropy_retrieval", make(benchmark="math", updates=[two]), benchmark="math")
    untrained = of_cells("training_steps", write_cell("masrouter", "pool", "mbpp"), row="masrouter")
    for record in (never, untrained):
        assert (record["outcome"], "logged" in record["reason"], "measured" in record) == (UNDECIDED, True, False)


@pytest.mark.parametrize("n", [20, 1])
def test_without_any_spread_nothing_is_decided(n: int) -> None:
    """Every answer right says something of an accuracy; every cost the same says nothing of a cost."""
    run = run_of(pair([True] * n, [True] * n), cost=pair(0.125, 0.125))
    assert found(run)["outcome"] == (UNDECIDED if n == 1 else HOLDS)
    for record in (found(run, "cost"), found(run, "cost", "masrouter", at_least=40)):
        assert (record["outcome"], record["reason"]) == (UNDECIDED, "no interval: no question moves the value")


def test_an_interval_of_a_share_ends_at_0_and_100_percent() -> None:
    """Wilson's of one seed and at either end, otherwise of t."""

    def share(*depths: list[int]) -> Record:
        long = {(*GMR, "mbpp", seed): depth for seed, depth in enumerate(depths)}
        return found(run_of(dict.fromkeys(long, first(9, len(depths[0]))), depth=long), "six_steps")

    for long, total in ((0, 40), (1, 40), (40, 40), (39, 40)):
        record = share([6] * long + [2] * (total - long))
        expected = 100 * np.array([long / total, *proportion_confint(long, total, method="wilson")])
        assert (record["measured"], record["low"], record["high"]) == pytest.approx(tuple(expected))
        assert record["outcome"] == (HOLDS if long else UNDECIDED)
    record = share([6, 2, *[2] * 8], [2, 6, *[2] * 8])
    assert 0 == record["low"] < record["measured"] == 10 < record["high"] < 100
