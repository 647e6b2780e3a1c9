"""The side of a run: each function against numpy, intervals against a bootstrap by hand, and every verdict."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from harness.errors import UserError
from paper.claims.declared import load as load_claims
from paper.claims.intervals import Interval
from paper.claims.judge import Finding, Judged, Run, judge
from paper.claims.readings import by_key
from paper.claims.report import build
from paper.claims.verdicts import Consistency, Outcome, Region, Verdict, consistency, outcome, verdict
from paper.comparable import read_comparable
from paper.measures import Key
from paper.published import load

PUBLISHED = load()
BENCHMARKS = tuple(PUBLISHED.benchmarks)
RNG = np.random.default_rng(5)
Judge = Callable[..., Judged]


@pytest.fixture
def judged(tmp_path: Path) -> Judge:
    """Judge one claim against some cells."""

    def run(quantity: str, cells: Sequence[Path], timings: dict[Key, float] | None = None, **entry: Any) -> Judged:
        path = tmp_path / "claim.yaml"
        claim = {
            "section": "a",
            "place": "b",
            "says": "c",
            "unit": "points",
            "quantity": quantity,
            "holds": {"above": 0},
        }
        path.write_text(yaml.safe_dump({"one": {**claim, **entry}}))
        found = read_comparable(cells) if cells else ()
        simulated = any(cell.run.simulated for cell in found)
        return judge(load_claims(path)[0], PUBLISHED, Run(by_key(found), timings or {}, simulated))

    return run


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


def test_a_difference_and_its_interval(write_cell: Any, judged: Judge) -> None:
    ours, theirs = draws(0.8, 200), draws(0.6, 200)
    cells = [write_cell("gmr", "pool", "mbpp", correct=ours), write_cell("masrouter", "pool", "mbpp", correct=theirs)]
    found = finding(judged("accuracy('gmr', 'mbpp') - accuracy('masrouter', 'mbpp')", cells))
    paired = 100 * (np.array(ours, dtype=float) - theirs)
    assert found.value == pytest.approx(paired.mean())
    chosen = np.random.default_rng(1).integers(200, size=(20000, 200))
    by_hand = np.percentile(paired[chosen].mean(axis=1), [2.5, 97.5])
    assert found.interval == pytest.approx(by_hand, abs=1.0)


def test_methods_share_the_items_that_are_drawn(write_cell: Any, judged: Judge) -> None:
    """Paired: a constant lead has no spread, however much the accuracies themselves vary."""
    right = draws(0.5, 100)
    costs = RNG.random(100) + 0.1
    ours = edit(write_cell("gmr", "pool", "mbpp", correct=right), cost_total=costs)
    theirs = edit(write_cell("masrouter", "pool", "mbpp", correct=right), cost_total=2 * costs)
    alone = finding(judged("accuracy('gmr', 'mbpp')", [ours, theirs]))
    assert alone.interval is not None
    assert alone.interval.high - alone.interval.low > 10
    ratio = finding(
        judged("cost('gmr', 'mbpp') / cost('masrouter', 'mbpp') + 0 * accuracy('gmr', 'mbpp')", [ours, theirs])
    )
    assert ratio.interval is None or ratio.interval.high - ratio.interval.low < 1e-9
    assert ratio.value == pytest.approx(0.5)


def test_seeds_are_averaged_and_drawn(write_cell: Any, judged: Judge) -> None:
    """Seeds that disagree widen the interval beyond that of items."""
    rates = (0.5, 0.7, 0.9)
    right = [[place < 100 * rate for place in range(100)] for rate in rates]
    cells = [write_cell("gmr", "pool", "mbpp", seed=seed, correct=one) for seed, one in enumerate(right)]
    several = finding(judged("accuracy('gmr', 'mbpp')", cells))
    assert several.value == pytest.approx(70)
    assert several.interval is not None
    by_item = 100 * np.mean(right, axis=0)
    chosen = np.random.default_rng(1).integers(100, size=(20000, 100))
    of_items = np.percentile(by_item[chosen].mean(axis=1), [2.5, 97.5])
    assert several.interval.low < of_items[0] - 5
    assert several.interval.high > of_items[1] + 5


def test_averages_and_seeds_of_all_benchmarks(write_cell: Any, judged: Judge) -> None:
    right = {(seed, name): draws(0.3 + 0.1 * seed, 30) for seed in (0, 1) for name in BENCHMARKS}
    cells = [write_cell("gmr", "pool", name, seed=seed, correct=one) for (seed, name), one in right.items()]
    by_seed = [100 * np.mean([np.mean(right[seed, name]) for name in BENCHMARKS]) for seed in (0, 1)]
    expected = {
        "accuracy('gmr', 'average')": np.mean(by_seed),
        "seed_mean('gmr', 'overall')": np.mean(by_seed),
        "seed_mean('gmr', 'mbpp')": 100 * np.mean([right[seed, "mbpp"] for seed in (0, 1)]),
        "seed_lowest('gmr')": min(by_seed),
        "seed_highest('gmr')": max(by_seed),
    }
    for quantity, value in expected.items():
        found = finding(judged(quantity, cells))
        assert found.value == pytest.approx(value), quantity
        assert found.interval is not None
        assert found.interval.low <= value <= found.interval.high
        assert len(found.cells) == (2 if "mbpp" in quantity else 10)


def test_one_seed_has_no_spread_between_seeds(write_cell: Any, judged: Judge) -> None:
    cells = [write_cell("gmr", "pool", name, correct=draws(0.5, 9)) for name in BENCHMARKS]
    assert finding(judged("accuracy('gmr', 'average')", cells)).value is not None
    for quantity in ("seed_mean('gmr', 'overall')", "seed_lowest('gmr')"):
        found = judged(quantity, cells)
        assert found.verdict is Verdict.NOT_RUN
        assert "another seed of gmr pool on math" in finding(found).missing


def test_seeds_that_differ_between_benchmarks_are_not_averaged(write_cell: Any, judged: Judge) -> None:
    cells = [
        write_cell("gmr", "pool", name, seed=seed, correct=draws(0.5, 9)) for name in BENCHMARKS for seed in (0, 1)
    ]
    left_out = cells[:-1]
    assert judged("accuracy('gmr', 'average')", cells).outcome is not Outcome.NOT_RUN
    for quantity in ("accuracy('gmr', 'average')", "seed_highest('gmr')"):
        found = judged(quantity, left_out)
        assert found.outcome is Outcome.NOT_RUN
        assert "gmr pool: the same seeds on every benchmark" in finding(found).missing


def test_the_rival_is_the_best_other_row(full_run: list[Path], judged: Judge) -> None:
    found = finding(judged("accuracy('gmr', 'mbpp') - rival('gmr', 'mbpp')", full_run))
    cells = [cell for cell in read_comparable(full_run) if cell.run.benchmark == "mbpp"]
    values = {(cell.run.method, cell.run.backbone): 100 * np.mean(cell.items.correct) for cell in cells}
    own = values.pop(("gmr", "pool"))
    assert found.value == pytest.approx(own - max(values.values()))
    assert found.calibrated
    assert len(found.cells) == 21


def test_the_frontier_against_brute_force(full_run: list[Path], judged: Judge) -> None:
    """All cells cost the same there, so that whoever is most accurate dominates the rest."""
    found = finding(judged("undominated('gsm_hard')", full_run))
    cells = [cell for cell in read_comparable(full_run) if cell.run.benchmark == "gsm_hard"]
    values = {(cell.run.method, cell.run.backbone): 100 * np.mean(cell.items.correct) for cell in cells}
    own = values.pop(("gmr", "pool"))
    assert found.value == pytest.approx(min(max(own - other, 0.0) for other in values.values()))


def test_gates(write_cell: Any, judged: Judge) -> None:
    folder = edit(write_cell("gmr", "pool", "mbpp", correct=[True] * 3), depth=[1, 2, 3])
    drawn = [(0, 1, "write", "yes"), (1, 1, "write", "yes"), (1, 2, "retrieve", "yes"), (1, 2, "write", "no")]
    drawn += [(2, 1, "write", "yes"), (2, 2, "retrieve", "no"), (2, 2, "write", "no"), (2, 3, "retrieve", "yes")]
    drawn += [(2, 3, "write", "yes")]
    rows = [
        {"item_id": f"item-{item:04d}", "step": step, "name": name, "choice": choice}
        for item, step, name, choice in drawn
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "decisions.parquet")
    expected = {"depth('gmr', 'mbpp')": 2, "steps_share('gmr', 'mbpp', 3)": 100 / 3, "write_rate('mbpp')": 100 * 4 / 6}
    expected |= {"retrieved('mbpp', 1)": 50, "retrieved('mbpp', 2)": 100}
    for quantity, value in expected.items():
        assert finding(judged(quantity, [folder])).value == pytest.approx(value), quantity
    assert judged("retrieved('mbpp', 3)", [folder]).outcome is Outcome.UNDECIDED


def test_training_logs(write_cell: Any, judged: Judge) -> None:
    first = {"steps": 30.0, "trajectories": 10.0, "entropy_write": 0.6}
    second = {"steps": 50.0, "trajectories": 10.0, "entropy_write": 0.2}
    cells = [
        log(write_cell("gmr", "pool", "mbpp", seed=0), [first, second]),
        log(write_cell("gmr", "pool", "mbpp", seed=1), [second, second]),
    ]
    expected = {"training_steps('gmr', 'mbpp')": 90, "training_depth('gmr', 'mbpp')": 4.5}
    expected |= {"lowest_entropy('mbpp', 'write')": 0.2}
    for quantity, value in expected.items():
        found = judged(quantity, cells)
        assert finding(found).value == pytest.approx(value)
        assert finding(found).interval is None
        assert found.outcome is Outcome.UNDECIDED
    assert (
        judged("training_depth('gmr', 'mbpp')", cells, holds={"between": [4.5, 4.5]}, exact=True).outcome
        is Outcome.HOLDS
    )
    assert judged("training_depth('gmr', 'mbpp')", cells, holds={"above": 5}, exact=True).outcome is Outcome.FAILS
    assert "entropy_halt" in finding(judged("lowest_entropy('mbpp', 'halt')", cells)).reason
    untrained = judged("training_steps('masrouter', 'mbpp')", [write_cell("masrouter", "pool", "mbpp")])
    assert (untrained.outcome, finding(untrained).value) == (Outcome.UNDECIDED, None)


def test_flops_and_seconds(write_cell: Any, judged: Judge) -> None:
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
    found = finding(judged("flops('gmr', 'mbpp')", [folder]))
    assert found.value == pytest.approx(2 * 14e9 * 110.5 / 1e15)
    assert found.interval is not None
    timed = judged("seconds('gmr', 'mbpp')", [folder], {Key("gmr", "pool", "mbpp"): 1.5})
    assert finding(timed).value == 1.5
    assert timed.outcome is Outcome.UNDECIDED
    assert finding(judged("seconds('gmr', 'mbpp')", [folder])).missing == ("a timing job of gmr pool on mbpp",)


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
    write_cell: Any, judged: Judge, ours: float, theirs: float, simulated: bool, expected: Verdict, shown: Outcome
) -> None:
    rates = {"gmr": ours, "masrouter": theirs}
    cells = [
        write_cell(key, "pool", "mbpp", correct=draws(rate, 150), simulated=simulated) for key, rate in rates.items()
    ]
    found = judged("accuracy('gmr', 'mbpp') - accuracy('masrouter', 'mbpp')", cells)
    assert (found.verdict, found.outcome) == (expected, shown)


def test_a_missing_cell_is_named(write_cell: Any, judged: Judge) -> None:
    found = judged("accuracy('gmr', 'mbpp') - accuracy('masrouter', 'mbpp')", [write_cell("gmr", "pool", "mbpp")])
    assert found.verdict is Verdict.NOT_RUN
    assert finding(found).missing == ("masrouter pool on mbpp",)
    assert finding(found).value is None


def test_without_any_spread_nothing_is_decided(write_cell: Any, judged: Judge) -> None:
    """Every answer right, or a single question: a bootstrap would pretend to certainty."""
    for right in ([True] * 20, [True]):
        found = judged(
            "accuracy('gmr', 'mbpp')", [write_cell("gmr", "pool", "mbpp", correct=right, notes=["x"] * len(right))]
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
        (Region(low=0), 0.1, 9, Outcome.HOLDS),
        (Region(low=0), 0, 9, Outcome.UNDECIDED),
        (Region(low=0), -9, 0, Outcome.FAILS),
        (Region(high=1), -9, 0.9, Outcome.HOLDS),
        (Region(high=1), 1, 9, Outcome.FAILS),
        (Region(-2, 2, closed=True), -2, 2, Outcome.HOLDS),
        (Region(-2, 2, closed=True), -3, 2, Outcome.UNDECIDED),
        (Region(-2, 2, closed=True), -9, 9, Outcome.UNDECIDED),
        (Region(-2, 2, closed=True), 2.1, 9, Outcome.FAILS),
        (Region(-2, 2, closed=True), -9, -2.1, Outcome.FAILS),
        (Region(-2, 2, closed=True), 2, 9, Outcome.UNDECIDED),
    ],
)
def test_regions(region: Region, low: float, high: float, expected: Outcome) -> None:
    assert region.decide(Interval(low, high)) is expected
    assert region.decide(None) is Outcome.UNDECIDED


def test_cells_that_do_not_go_together_are_refused(write_cell: Any) -> None:
    cells = [write_cell("gmr", "pool", "mbpp"), write_cell("masrouter", "pool", "mbpp", simulated=False)]
    with pytest.raises(UserError, match="different kinds of backbones"):
        build(cells)


def test_a_cell_of_another_schema_is_refused(write_cell: Any) -> None:
    folder = write_cell("gmr", "pool", "mbpp")
    document = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**document, "schema": 0}))
    with pytest.raises(UserError, match="result schema 0"):
        build([folder])
