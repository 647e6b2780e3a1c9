"""The tables of learning on cells made by hand, each value against one computed independently."""

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analysis.figures.training_curves import by_epoch
from analysis.finished_cells import mean_of_updates
from analysis.learning_measures import MEASURES
from analysis.published import load as published
from analysis.registry import artefact
from analysis.source import Source
from analysis.tables import learning_contrasts
from analysis.tables.learning import Study, read_study
from harness.errors import UserError
from harness.runner import config
from harness.runner.config import POOL
from tests.analysis import reading
from tests.analysis.cells import decision, verdicts
from tests.analysis.test_training_tables import DEPTH, MADE

MakeCell = Callable[..., Path]
# Own utility of ten updates in five epochs, of two seeds.
FIRST, SECOND = [0.0, 0.1, 0.5, 0.3, 0.2, 0.6, 0.4, 0.8, 1.0, 0.9], [0.4, 0.2, 0.1, 0.7, 0.3, 0.3, 0.5, 0.6, 0.2, 0.2]


OPTIONS = artefact("learning").options


def build(*folders: Path) -> Study:
    return read_study(Source(tuple(folders), options=OPTIONS))


def chosen(item: int, name: str, choice: str, step: int = 1) -> dict[str, Any]:
    return decision(name, choice, item=item, step=step, options=5)


@pytest.fixture
def single(write_cell: MakeCell) -> MakeCell:
    """Write the cell of a single backbone: how many of four are right, and the cost of a question."""
    return lambda backbone, right, cost: write_cell("single", backbone, correct=verdicts(right, 4), cost=cost)


def measured(study: Study, method: str = "gmr", seed: int = 0, benchmark: str = "gsm_hard") -> dict[str, float]:
    values: dict[str, float] = study.learned.loc[benchmark, method, POOL, seed].dropna().to_dict()
    return values


def answers(study: Study, name: str) -> dict[str, dict[Any, float]]:
    """Return the difference of each seed, by measure."""
    frame = learning_contrasts.differences(study).query("contrast == @name")
    return {key: rows.set_index("seed")["value"].to_dict() for key, rows in frame.groupby("measure")}


def fields(study: Study, measure: str, method: str) -> list[str]:
    """Return what the table prints of a measure and a row: mean, then each seed."""
    row = reading.learning(*(cell.folder for cell in study.results.cells), **OPTIONS).row(measure, method)
    return [entry.text + entry.sign for entry in row.entries]


def test_outcome(make: MakeCell) -> None:
    other = make(benchmark="humaneval", correct=[False] * 4)
    trained = make(cost_steps=0.001, cost_total=0.0025, depth=[1, 2, 3, 4], utility=[1.0, 0.5, -0.25, -1.0])
    study = build(trained, make("gmr_lambda_2000"), other)
    values = measured(study)
    expected = {"accuracy": 75, "utility": 75 - 100 * 20 * 0.001, "cost_total": 0.0025, "own_utility": 0.0625}
    assert values == pytest.approx({**expected, "depth": 2.5})
    # One cost weight, whatever a row was trained with; benchmarks stay apart.
    assert measured(study, "gmr_lambda_2000")["utility"] == values["utility"]
    assert "own_utility" not in measured(study, "gmr_lambda_2000")
    assert measured(study, benchmark="humaneval")["accuracy"] == 0


def test_memory(make: MakeCell) -> None:
    values = measured(build(make(decisions=MADE, depth=DEPTH)))
    expected = {"write_rate": 400 / 9, "empty_memory": 25, "retrieved": 50, "retrieved_1": 100, "retrieved_2": 100 / 3}
    assert {name: values[name] for name in expected} == pytest.approx(expected)
    assert not {"retrieved_3", "retrieved_mean_1"} & set(values)


def test_choices_and_a_module_that_is_off(make: MakeCell) -> None:
    decisions = [
        *(chosen(0, "backbone", "a"), chosen(0, "role", "x/one"), chosen(0, "backbone", "b", step=2)),
        *(chosen(1, "backbone", "b"), chosen(1, "role", "x/two")),
        *(chosen(2, "backbone", "b"), chosen(2, "role", "x/one")),
    ]
    values = measured(build(make(decisions=decisions)))
    assert (values["top_backbone"], values["top_role"]) == (75, pytest.approx(100 * 2 / 3))
    # The pool of the run is in its identity, whether it was used or not.
    shares = {key: value for key, value in values.items() if key.startswith("share_")}
    assert shares == {"share_a": 25, "share_b": 75, **{f"share_{key}": 0 for key in published().prices}}
    uniform = [decision(name, "a", 1 / 5, item=item, options=5) for item in range(4) for name in ("role", "backbone")]
    values = measured(build(make("random_2", decisions=uniform)), "random_2")
    assert set(values) == {"accuracy", "utility", "cost_total", "depth"}


def updates_of(backbone: Sequence[float]) -> list[dict[str, float]]:
    numbers = np.arange(len(backbone))
    entropies = {"entropy_backbone": backbone, "entropy_role": 3.0 - numbers}
    groups = {"equal_reward_groups": numbers / 10, "zero_advantage_groups": 0.0}
    return pd.DataFrame({**entropies, **groups, "steps": 100.0 + numbers}).to_dict("records")


def test_training(make: MakeCell) -> None:
    values = measured(build(make(updates=updates_of([1.6, 0.5, 0.09, 0.2, 0.05]))))
    # A quarter of five updates, rounded up, is two.
    last = {"final_entropy_backbone": (0.2 + 0.05) / 2, "final_entropy_role": (0.0 - 1.0) / 2, "equal_reward_last": 35}
    expected = {"updates": 5, "steps": 510, "collapse": 3, "equal_reward_first": 10, "zero_advantage_last": 0, **last}
    assert {name: values[name] for name in expected} == pytest.approx(expected)
    assert "final_entropy_write" not in values
    # A gate had nothing to decide in all updates but the last.
    rare = [*updates_of([1.0] * 7), {**updates_of([1.0])[0], "entropy_retrieval": 0.25}]
    assert measured(build(make(seed=1, updates=rare)), seed=1)["final_entropy_retrieval"] == 0.25


def test_a_contrast_is_paired_by_seed(make: MakeCell) -> None:
    trained = [make(seed=seed, correct=verdicts(right, 4)) for seed, right in enumerate((4, 3, 2))]
    cells = [*trained, *(make("gmr_untrained", seed, correct=verdicts(1, 4)) for seed in (0, 2))]
    study = build(*cells)
    assert answers(study, "training")["accuracy"] == {0: 75, 2: 25}
    lacking = learning_contrasts.unanswered(study, learning_contrasts.differences(study))
    assert "random (gsm_hard)" in lacking
    # Neither what is answered nor what asks about a method that the run does not have.
    assert not any(name.startswith(("training ", "dot", "masrouter")) for name in lacking)
    expected = stats.ttest_1samp([75, 25], 0).confidence_interval(0.95)
    row = next(row for row in reading.learning_contrasts(*cells, **OPTIONS).rows if row.section == "training")
    interval = f"+50.0 [{expected.low:+.1f}, {expected.high:+.1f}]".replace("-", "−")
    assert [entry.text for entry in row.entries] == [interval, "2", "+75.0", "–", "+25.0"]


def test_the_best_single_backbone_and_those_it_dominates(make: MakeCell, single: Callable[..., Path]) -> None:
    singles = [single("weak", 1, 0.001), single("dear", 3, 0.009), single("good", 3, 0.004), single("top", 2, 0.02)]
    used = {"gmr_untrained": ("weak", "dear"), "gmr": ("dear", "good")}
    pool = {name: {"model": name} for name in ("weak", "dear", "good", "top")}
    given: dict[str, Any] = {"correct": [True] * 4, "cost_total": 0.006, "backbones": pool}
    cells = [
        make(method, seed, decisions=[chosen(0, "backbone", backbone)], **given)
        for method, backbones in used.items()
        for seed, backbone in enumerate(backbones)
    ]
    study = build(*singles, *cells)
    # The most accurate, of equals the cheaper.
    differences = answers(study, "best_single")
    assert differences["accuracy"] == {0: 25, 1: 25}
    assert differences["cost_total"] == pytest.approx({0: 0.002, 1: 0.002})
    dominated = study.singles["dominated"].droplevel("benchmark").to_dict()
    assert dominated == {"good": "", "dear": "good", "top": "good", "weak": ""}
    assert fields(study, "most used backbone", "GMR") == ["1 of 2 dominated", "dear†", "good"]
    assert fields(study, "cost a question (1e-4)", "Single LLM (dear), dominated by good") == ["90.00", "", ""]
    assert fields(study, "share of dear (%)", "GMR untrained") == ["50.0 ± 70.7", "0.0", "100.0"]


def test_a_random_router_is_taken_at_the_depth_of_each_seed(make: MakeCell) -> None:
    right = {"random_1": (1, 0), "random_2": (2, 2), "random_4": (3, 4)}
    randoms = [
        make(method, seed, correct=verdicts(n, 4), depth=int(method[-1]))
        for method, counts in right.items()
        for seed, n in enumerate(counts)
    ]
    depths = [[1, 1, 2, 2], 3, 2, [4, 4, 4, 5]]
    trained = [make(seed=seed, correct=[True] * 4, depth=depth) for seed, depth in enumerate(depths)]
    # Seed 0 halfway between depths 1 and 2, seed 1 halfway between 2 and 4; no random router has seed 2, and seed 3 is
    # deeper than any, where nothing is guessed.
    differences = answers(build(*randoms, make("random_4", 3, depth=4), *trained), "random")["accuracy"]
    assert differences == {0: pytest.approx(100 - 37.5), 1: pytest.approx(100 - 75)}


def utilities(values: Sequence[float]) -> list[dict[str, float]]:
    return [{"utility": one, "accuracy": one / 2, "steps": 9.0, "loss": 1.0, "entropy": 2.0} for one in values]


@pytest.fixture
def curves(make: MakeCell) -> Study:
    """Two seeds of ten updates in five epochs, one row of another method, and one router left as initialised."""
    trained = [make(seed=seed, updates=utilities(one), per_epoch=2) for seed, one in enumerate((FIRST, SECOND))]
    other = make("puppeteer", backbone="small", benchmark="humaneval", updates=utilities([0.5] * 4), per_epoch=1)
    return build(*trained, other, make("gmr_untrained"))


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30), st.integers(1, 6))
def test_a_point_is_the_mean_over_the_attempts_of_one_epoch(values: list[float], per_epoch: int) -> None:
    epochs = [values[start : start + per_epoch] for start in range(0, len(values), per_epoch)]
    numbers = np.arange(len(values))
    log = pd.DataFrame({"epoch": numbers // per_epoch, "utility": values, "trajectories": 16.0}, numbers + 1)
    curve = by_epoch(log)
    assert list(curve) == pytest.approx([statistics.fmean(epoch) for epoch in epochs], abs=1e-12)
    assert list(curve.index) == [per_epoch * place + (len(one) + 1) / 2 for place, one in enumerate(epochs)]
    small = pd.DataFrame({"x": [0.5, 1.0], "trajectories": [96.0, 32.0]})
    assert mean_of_updates(small, "x", [1, 1]).tolist() == [0.625]


def test_fifths_of_a_training(make: MakeCell, curves: Study) -> None:
    fifths = [np.reshape(one, (5, 2)).mean(axis=1) for one in (FIRST, SECOND)]
    values = measured(curves, seed=1)
    assert [values[f"training_utility_{part}"] for part in range(1, 6)] == pytest.approx(fifths[1])
    assert values["training_accuracy_2"] == pytest.approx(fifths[1][1] / 2)
    gains = [one[4] - one[0] for one in fifths]
    low, high = stats.ttest_1samp(gains, 0).confidence_interval(0.95)
    interval = f"{np.mean(gains):+.3f} [{low:+.3f}, {high:+.3f}]".replace("-", "−")
    assert fields(curves, MEASURES["training_utility_gain"].title, "GMR")[0] == interval
    # An update belongs to the fifth in which it begins.
    short = measured(build(make(seed=2, updates=utilities([0.5, 1.0]))), seed=2)
    assert {key[-1]: short[key] for key in short if key.startswith("training_utility")} == {"1": 0.5, "3": 1.0}


def test_what_cannot_be_reported_is_refused(make: MakeCell, single: Callable[..., Path]) -> None:
    with pytest.raises(UserError, match="no cell of a method that learns"):
        build(single("good", 3, 0.1))
    with pytest.raises(UserError, match="no results"):
        build()
    with pytest.raises(UserError, match="cost_wait"):
        read_study(Source((make(),), options={**OPTIONS, "cost_wait": 20}))
    for name in ("decisions", "training"):
        folder = make(seed=len(name))
        (folder / f"{name}.parquet").write_bytes(b"PAR1 torn")
        with pytest.raises(UserError, match=rf"{name}\.parquet"):
            build(folder)


def test_the_presets_run_whatever_a_contrast_compares() -> None:
    presets = [config.preset(name) for name in ("learning", "learning_baselines")]
    contrasts = OPTIONS["contrasts"].values()
    sides = {side for contrast in contrasts for side in (contrast["a"], contrast["b"])}
    methods = {OPTIONS["single"], *OPTIONS["random"], *sides - {"best_single", "random_same_depth"}}
    assert methods == {method for preset in presets for method in preset.methods}
    assert {measure for contrast in contrasts for measure in contrast["measures"]} <= set(MEASURES)
