"""The study of learning on cells made by hand, each value against one computed independently."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analysis.learning.report import render, write
from analysis.learning.results import Report, at_depth, build, interval
from analysis.learning.study import FOLDER, PATH, load
from harness.agents.results import DECISIONS
from harness.errors import UserError
from harness.runner import config
from harness.runner.config import POOL
from tests.analysis import learned
from tests.analysis.learned import WriteCell, lines, table

Draw = tuple[int, str, int, str, int, float]
MakeCell = Callable[..., Path]
LN2 = math.log(2)
PICTURES = (".png", ".pdf", ".svg")


def decisions(question: int, *rows: Draw) -> list[dict[str, Any]]:
    """Rows of step, name, slot, choice, options and log-probability."""
    return [{"item_id": f"item-{question:04d}", **dict(zip(DECISIONS.names[1:], row, strict=True))} for row in rows]


def chosen(name: str, choice: str, log_prob: float = -0.5, step: int = 1) -> Draw:
    return (step, name, 0, choice, 5, log_prob)


def gate(name: str, is_open: bool, step: int = 1, slot: int = 0) -> Draw:
    return (step, name, slot, "yes" if is_open else "no", 2, -LN2)


@pytest.fixture
def make(write_cell: WriteCell) -> MakeCell:
    return functools.partial(learned.make, write_cell)


@pytest.fixture
def single(write_cell: WriteCell) -> MakeCell:
    return functools.partial(learned.single, write_cell)


def measured(report: Report, method: str = "gmr", seed: int = 0, benchmark: str = "gsm_hard") -> Mapping[str, float]:
    found: dict[str, float] = report.learned.loc[benchmark, method, POOL, seed].dropna().to_dict()
    return found


def answers(report: Report, name: str) -> dict[str, Any]:
    return {one.measure: one for one in report.differences if one.contrast.name == name}


def refusal(call: Callable[[], Any]) -> str:
    with pytest.raises(UserError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_outcome(make: MakeCell) -> None:
    other = make(benchmark="humaneval", correct=[False] * 4)
    report = build([make(steps=0.001, total=0.0025, depth=[1, 2, 3, 4]), make("gmr_lambda_2000"), other])
    found = measured(report)
    assert found["accuracy"] == 75
    assert found["utility"] == pytest.approx(75 - 100 * 20 * 0.001)
    assert found["cost_total"] == pytest.approx(0.0025)
    assert found["depth"] == 2.5
    # One cost weight, whatever a row was trained with; benchmarks stay apart.
    assert measured(report, "gmr_lambda_2000")["utility"] == found["utility"]
    assert measured(report, benchmark="humaneval")["accuracy"] == 0
    assert "## HumanEval (n = 4)" in render(report)


def test_own_utility_is_the_mean_of_what_the_method_maximises(make: MakeCell) -> None:
    report = build([make(own=[1.0, 0.5, -0.25, -1.0]), make("gmr_untrained")])
    assert measured(report)["own_utility"] == pytest.approx(0.0625)
    assert "own_utility" not in measured(report, "gmr_untrained")
    assert table(render(report), "### Outcome")["GMR"][2] == "0.062 (0.062)"
    assert "λ\\_c that the row was trained with" in render(report)
    assert "itself maximises" not in render(build([make("gmr_cosine")]))


def test_memory(make: MakeCell) -> None:
    made = [
        *decisions(0, gate("write", True, 1), gate("retrieve", True, 2), gate("write", True, 2)),
        *decisions(0, gate("retrieve", True, 3, 0), gate("retrieve", False, 3, 1), gate("write", False, 3)),
        *decisions(1, gate("write", False, 1), gate("write", True, 2)),
        *decisions(1, gate("retrieve", False, 3)),
        *decisions(2, gate("write", True, 1)),
        *decisions(3, gate("write", False, 1), gate("write", False, 2)),
    ]
    found = measured(build([make(made=made)]))
    assert found["write_rate"] == 50
    assert found["empty_memory"] == 25
    assert found["retrieved"] == 50
    assert found["retrieved_1"] == 100
    assert found["retrieved_2"] == pytest.approx(100 / 3)
    assert "retrieved_3" not in found


def test_choices(make: MakeCell) -> None:
    made = [
        *decisions(0, chosen("backbone", "a"), chosen("role", "x/one"), chosen("backbone", "b", step=2)),
        *decisions(1, chosen("backbone", "b"), chosen("role", "x/two")),
        *decisions(2, chosen("backbone", "b"), chosen("role", "x/one")),
    ]
    report = build([make(made=made)])
    assert measured(report)["top_backbone"] == 75
    assert measured(report)["top_role"] == pytest.approx(100 * 2 / 3)
    assert report.shares("gsm_hard", "gmr")[0].to_dict() == {"b": 75, "a": 25}


def test_a_module_that_is_off_leaves_its_measures_blank(make: MakeCell) -> None:
    uniform = [chosen("role", "x/one", -math.log(5)), chosen("backbone", "a", -math.log(5))]
    report = build([make("random_2", made=[row for question in range(4) for row in decisions(question, *uniform)])])
    assert set(measured(report, "random_2")) == {"accuracy", "utility", "cost_total", "depth"}
    assert report.shares("gsm_hard", "random_2") == {}
    text = render(report)
    assert "### Outcome" in text
    assert not any(f"### {part}" in text for part in ("Memory", "Choices", "Entropies", "Training", "Most used"))


def updates_of(backbone: Sequence[float]) -> list[dict[str, float]]:
    return [
        {
            "entropy_backbone": entropy,
            "entropy_role": 3.0 - number,
            "equal_reward_groups": number / 10,
            "zero_advantage_groups": 0.0,
            "steps": 100.0 + number,
        }
        for number, entropy in enumerate(backbone)
    ]


def test_training(make: MakeCell) -> None:
    found = measured(build([make(updates=updates_of([1.6, 0.5, 0.09, 0.2, 0.05]))]))
    assert found["updates"] == 5
    assert found["steps"] == 510
    assert found["collapse"] == 3
    # A quarter of five updates, rounded up, is two.
    assert found["final_entropy_backbone"] == pytest.approx((0.2 + 0.05) / 2)
    assert found["final_entropy_role"] == pytest.approx((0.0 - 1.0) / 2)
    assert found["equal_reward_first"] == pytest.approx(10)
    assert found["equal_reward_last"] == pytest.approx(35)
    assert found["zero_advantage_last"] == 0
    assert "final_entropy_write" not in found
    # A gate had nothing to decide in all updates but the last.
    rare = [*updates_of([1.0] * 7), {**updates_of([1.0])[0], "entropy_retrieval": 0.25}]
    assert measured(build([make(seed=1, updates=rare)]), seed=1)["final_entropy_retrieval"] == 0.25


def test_a_choice_that_never_settles_says_so(make: MakeCell) -> None:
    report = build([make(updates=updates_of([1.6, 0.5])), make(seed=1, updates=updates_of([1.6, 0.01]))])
    assert measured(report)["collapse"] == math.inf
    assert table(render(report), "### Entropies")["GMR"][-1] == "(never 2)"


def test_mean_deviation_and_every_seed_stand_together(make: MakeCell) -> None:
    rights = {0: 4, 1: 0, 3: 4}
    cells = [make(seed=seed, correct=[place < n for place in range(4)]) for seed, n in rights.items()]
    text = render(build([*cells, make("gmr_untrained", 2)]))
    mean, sd = 200 / 3, math.sqrt(((100 / 3) ** 2 * 2 + (200 / 3) ** 2) / 2)
    assert table(text, "### Outcome")["GMR"][0] == f"{mean:.1f} ± {sd:.1f} (100.0 0.0 – 100.0)"
    assert table(text, "### Outcome")["GMR untrained"][0] == "75.0 (– – 75.0 –)"


@given(st.lists(st.floats(-100, 100).map(lambda value: round(value, 3)), min_size=2, max_size=8))
def test_the_interval_is_that_of_a_t_test(sample: list[float]) -> None:
    reach = interval(sample)
    assert reach is not None
    if len(set(sample)) == 1:
        assert reach == pytest.approx(0, abs=1e-9)
        return
    expected = stats.ttest_1samp(sample, 0).confidence_interval(0.95)
    assert (expected.high - expected.low) / 2 == pytest.approx(reach, rel=1e-6)


def test_a_contrast_is_paired_by_seed(make: MakeCell) -> None:
    trained = [make(seed=seed, correct=[place < right for place in range(4)]) for seed, right in enumerate((4, 3, 2))]
    before = [make("gmr_untrained", seed, correct=[place < 1 for place in range(4)]) for seed in (0, 2)]
    found = answers(build([*trained, *before]), "training")["accuracy"]
    assert found.seeds == {0: 75, 2: 25}
    assert found.mean == 50
    assert found.reach == pytest.approx(stats.t.ppf(0.975, 1) * (50 / math.sqrt(2)) / math.sqrt(2))


def test_the_best_single_backbone_is_the_most_accurate_and_of_equals_the_cheaper(
    make: MakeCell, single: Callable[..., Path]
) -> None:
    singles = [single("weak", 1, 0.001), single("dear", 3, 0.009), single("good", 3, 0.004)]
    report = build([make(seed=seed, correct=[True] * 4, total=0.006) for seed in (0, 1)] + singles)
    assert report.singles_of("gsm_hard").index[0] == "good"
    found = answers(report, "best_single")
    assert found["accuracy"].seeds == {0: 25, 1: 25}
    assert found["cost_total"].mean == pytest.approx(0.002)


def test_dominated_backbones_are_marked_where_they_are_used(make: MakeCell, single: Callable[..., Path]) -> None:
    singles = [single("weak", 1, 0.001), single("dear", 3, 0.009), single("good", 3, 0.004), single("top", 4, 0.02)]
    used = {"gmr_untrained": ("weak", "dear"), "gmr": ("dear", "good")}
    cells = [
        make(method, seed, made=decisions(0, chosen("backbone", backbone)))
        for method, backbones in used.items()
        for seed, backbone in enumerate(backbones)
    ]
    report = build([*singles, *cells])
    assert {key: report.dominator("gsm_hard", key) for key in report.singles_of("gsm_hard").index} == {
        "weak": None, "dear": "good", "good": None, "top": None,
    }  # fmt: skip
    text = render(report)
    assert table(text, "### Most used backbone")["GMR"] == ["dear ▽", "good", "1 of 2"]
    rows = table(text, "### Single backbones, and their shares in the router")
    assert list(rows)[2:] == ["weak", "good", "dear ▽", "top"]
    assert rows["dear ▽"] == ["75.0", "90.00", "57.0", "good", "50.0 ± 70.7 (0.0 100.0)", "50.0 ± 70.7 (100.0 0.0)"]


def test_a_random_router_is_taken_at_the_depth_of_each_seed(make: MakeCell) -> None:
    right = {"random_1": (1, 0), "random_2": (2, 2), "random_4": (3, 4)}
    randoms = [
        make(method, seed, correct=[place < n for place in range(4)], depth=[int(method[-1])] * 4)
        for method, counts in right.items()
        for seed, n in enumerate(counts)
    ]
    depths = {0: [1, 1, 2, 2], 1: [3, 3, 3, 3], 2: [2, 2, 2, 2]}
    trained = [make(seed=seed, correct=[True] * 4, depth=depth) for seed, depth in depths.items()]
    found = answers(build([*randoms, *trained]), "random")["accuracy"]
    # Seed 0 halfway between depths 1 and 2, seed 1 halfway between 2 and 4; no random router has seed 2.
    assert found.seeds == {0: pytest.approx(100 - 37.5), 1: pytest.approx(100 - 75)}


@given(st.floats(1, 6), st.floats(-3, 3), st.floats(-10, 10))
def test_between_depths_a_straight_line_is_followed(depth: float, slope: float, start: float) -> None:
    points = [(float(known), slope * known + start) for known in (6, 1, 4, 2)]
    assert at_depth(points, depth) == pytest.approx(slope * depth + start, abs=1e-9)
    # Beyond the random routers nothing is guessed.
    assert at_depth(points, 0.99) is at_depth(points, 6.01) is at_depth([], 2) is None


def test_simulated_cells_say_so_first_and_in_the_caption(make: MakeCell, tmp_path: Path) -> None:
    for path in write(build([make(), make("gmr_untrained")]), tmp_path / "simulated"):
        content = path.read_bytes()
        assert b"SIMULATED" in (content if path.suffix in PICTURES else content.splitlines()[0])
    assert "INCOMPLETE" not in (tmp_path / "simulated" / "learning.md").read_text()
    assert "INCOMPLETE: 2 cells" in render(build([make(seed=1), tmp_path / "one", tmp_path / "two"]))
    for path in write(build([make(simulated=False), make("gmr_untrained", simulated=False)]), tmp_path / "real"):
        assert b"SIMULATED" not in path.read_bytes()


def test_the_tables_hold_what_the_report_says(make: MakeCell, single: Callable[..., Path], tmp_path: Path) -> None:
    made = decisions(0, chosen("backbone", "a"), chosen("backbone", "b", step=2))
    cells = [make(seed=seed, made=made, updates=updates_of([1.0])) for seed in (0, 1)]
    cells += [make("gmr_untrained", seed, correct=[seed > 0] * 4) for seed in (0, 1)]
    write(build([*cells, single("good", 3, 0.004)]), tmp_path)
    rows = pd.read_csv(tmp_path / "learning.csv", comment="#")
    assert list(rows.columns) == ["benchmark", "method", "backbone", "seed", "measure", "value"]
    by = rows.set_index(["method", "backbone", "measure"]).sort_index()["value"]
    assert by["gmr", "pool", "accuracy"].tolist() == [75, 75]
    assert by["gmr", "b", "backbone_share"].tolist() == [50, 50]
    assert by["gmr", "pool", "collapse"].tolist() == [math.inf, math.inf]
    assert by["single", "good", "utility"].item() == pytest.approx(67)
    contrasts = pd.read_csv(tmp_path / "learning_contrasts.csv", comment="#").query("contrast == 'training'")
    assert set(contrasts["backbone"]) == {"pool"}
    found = contrasts[contrasts["measure"] == "accuracy"].set_index("statistic")["value"]
    assert found["difference"].tolist() == [75, -25]
    expected = stats.ttest_1samp([75, -25], 0).confidence_interval(0.95)
    assert found.drop("difference").to_dict() == pytest.approx(
        {"mean": 25, "low": expected.low, "high": expected.high, "n": 2}
    )


def test_nothing_learned_is_nothing_to_report(make: MakeCell, single: Callable[..., Path], tmp_path: Path) -> None:
    cell = single("good", 3, 0.1)
    assert "learns" in refusal(lambda: build([cell]))
    assert "no results" in refusal(lambda: build([tmp_path / "nowhere"]))
    for name in ("decisions", "training"):
        folder = make(seed=len(name))
        (folder / f"{name}.parquet").write_bytes(b"PAR1 torn")
        assert f"{name}.parquet" in refusal(lambda folder=folder: build([folder]))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"trained": "gmrr"}, "'gmrr'"),
        ({"b": "best_singel"}, "'best_single'"),
        ({"measures": ["acuracy"]}, "'accuracy'"),
        ({"name": "training"}, "twice"),
        ({"single": None}, "'best_single' needs `single`"),
        ({"collapsed_entropy": None, "measures": ["collapse"]}, "'best_single' needs `collapsed_entropy`"),
    ],
)
def test_a_slip_in_the_declaration(tmp_path: Path, change: Mapping[str, Any], named: str) -> None:
    document = yaml.safe_load(PATH.read_text())
    entry = document["contrasts"][1]
    for key, value in change.items():
        (entry if key in entry else document)[key] = value
    path = tmp_path / "learning.yaml"
    path.write_text(yaml.safe_dump({key: value for key, value in document.items() if value is not None}))
    assert named in refusal(lambda: load(path))


@pytest.mark.parametrize("path", sorted(FOLDER.glob("learning*.yaml")), ids=lambda path: path.stem)
def test_the_preset_runs_whatever_its_study_compares(path: Path) -> None:
    study, preset = load(path), config.preset(path.stem)
    sides = {side for one in study.contrasts for side in (one.a, one.b)} - {"best_single", "random_same_depth"}
    named = {study.single, study.trained, study.untrained, *study.random, *sides} - {None}
    assert named == set(preset.methods)
    assert {key for one in study.contrasts for key in one.benchmarks} == set(preset.benchmarks)


SMALL, LARGE = "qwen-2.5-14B", "qwen-2.5-32B"
CONTRASTS = [
    {"name": "training", "asks": "Does it learn?", "a": "gmr", "b": "gmr_untrained"},
    {"name": "against_single", "asks": "Is it better than its backbone?", "a": "gmr", "b": "single"},
    {"name": "against_best", "asks": "Is it better than the best backbone?", "a": "gmr", "b": "best_single"},
]


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A declaration with what it needs and nothing else."""
    what = {"measures": ["own_utility", "accuracy"], "benchmarks": ["gsm_hard"]}
    document = {"cost_weight": 20, "single": "single", "contrasts": [{**one, **what} for one in CONTRASTS]}
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.fixture
def rows(make: Any, single: Any, study: Path) -> Report:
    """Two rows, of which one gains a quarter and the other loses one, and a third that was never left untrained."""
    cells = [
        make("gmr", backbone=SMALL, own=[1.0, 1.0, 0.0, 0.5], correct=[True, True, True, False]),
        make("gmr", backbone=LARGE, own=[0.0] * 4, correct=[True, False, False, False]),
        make("gmr", backbone="llama-3.2-3B"),
        make("gmr_untrained", backbone=SMALL, own=[0.5, 0.0, 0.0, 0.0], correct=[True, True, False, False]),
        make("gmr_untrained", backbone=LARGE, own=[0.25] * 4, correct=[True, True, False, False]),
    ]
    return build([*cells, single(SMALL, 1, 0.001), single(LARGE, 4, 0.002)], study)


def test_a_method_of_several_rows_is_compared_row_by_row(rows: Report) -> None:
    def found(name: str) -> dict[tuple[str, str], float]:
        return {(one.row.backbone, one.measure): one.mean for one in rows.differences if one.contrast.name == name}

    accuracy, own = "accuracy", "own_utility"
    answers = {(SMALL, own): 0.5, (SMALL, accuracy): 25, (LARGE, own): -0.25, (LARGE, accuracy): -25}
    assert found("training") == answers
    assert found("against_single") == {(SMALL, accuracy): 50, (LARGE, accuracy): -75}
    assert found("against_best").items() >= {((SMALL, accuracy), -25), ((LARGE, accuracy), -75)}
    assert rows.unanswered == ["training (gsm_hard llama-3.2-3B)", "against_single (gsm_hard llama-3.2-3B)"]
    text = render(rows)
    assert f"GMR ({SMALL}) minus Single LLM ({SMALL}) (against\\_single)." in text
    assert f"GMR ({LARGE}) minus the best single backbone (against\\_best)." in text
    assert table(text, "### Outcome")[f"GMR ({LARGE})"][0] == "25.0 (25.0)"
    told = lines(text, f"GMR ({LARGE}) minus GMR untrained ({LARGE}) (training).")[2]
    assert told[1:3] == ["own utility", "−0.250 (one seed, no interval)"]
