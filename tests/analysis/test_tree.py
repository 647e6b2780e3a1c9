"""Tables of enumerations against hand calculations, numpy, and paired comparisons of cells."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, t
from statsmodels.stats.proportion import proportion_confint

from analysis.finished_cells import read
from analysis.paired_tests import compare
from harness.errors import UserError
from harness.files import sha256
from harness.runner import layout
from harness.runner.preset import resolve
from tests.analysis.by_hand import crossed
from tests.analysis.cells import WriteCell, decision, marked, pool_of
from tests.analysis.reading import Read, second_step, tree

#: Verdicts of eight test questions by backbone, role and whether the step is stored; with nothing stored, of any role.
RIGHT = {
    ("small", "Code/A", True): "11100000",
    ("small", "Code/B", True): "11011000",
    ("small", "", False): "10000100",
    ("large", "Code/A", True): "11111000",
    ("large", "Code/B", True): "11100000",
    ("large", "", False): "11000000",
}
COST = {"small": 1.0, "large": 3.0}
#: Verdicts of two seeds.
LEARNED, DRAWN = ("11111100", "11110010"), ("11100000", "10010000")


def nodes() -> pd.DataFrame:
    """Return a row a path and question, whose cost is that of the backbone, twice for role B."""
    rows = []
    for (backbone, only, stored), right in RIGHT.items():
        for role in [only] if only else ["Code/A", "Code/B"]:
            for place, letter in [*enumerate(right), (90, "1")]:
                about = {"item_id": f"item-{place:04d}", "split": "train" if place == 90 else "test", "stored": stored}
                cost = COST[backbone] * (1 + (role == "Code/B"))
                rows.append({**about, "backbone": backbone, "role": role, "correct": letter == "1", "cost_total": cost})
    return pd.DataFrame(rows)


def write_tree(folder: Path, table: pd.DataFrame, **changes: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    table.to_parquet(folder / "nodes.parquet")
    run = {"rule_version": "1", "tables": {"nodes.parquet": sha256(folder / "nodes.parquet")}, **changes}
    (folder / "run.json").write_text(json.dumps(run))


@pytest.fixture
def cells(write_cell: WriteCell, folder: Path) -> list[Path]:
    """Two seeds of a learned, a random and the best fixed choice, and the enumeration of preset open_tree."""
    write_tree(layout.tree("open_tree", "humaneval"), nodes())
    given = {"backbones": pool_of(COST), "updates": ()}
    by_method = {"gmr_one_step": LEARNED, "random_one_step": DRAWN, "fixed_step": [RIGHT["large", "Code/A", True]] * 2}
    taken = [decision("step", "Code/A of large", item=item) for item in range(8)]
    return [
        write_cell(method, "pool", "humaneval", seed=seed, correct=marked(text), decisions=taken, **given)
        for method, seeds in by_method.items()
        for seed, text in enumerate(seeds)
    ]


def build(cells: list[Path]) -> Read:
    return tree(*cells, preset=resolve("open_tree"))


def numbers(record: dict[str, str], *names: str) -> list[float]:
    return [float(record[name]) for name in names]


def test_paths_and_effects(cells: list[Path]) -> None:
    table = build(cells)
    paths = [(record["title"], record["on"], float(record["accuracy"])) for record in table.records[-8:]]
    assert paths == [
        ("random role", "small", 43.75),
        ("random role", "large", 50),
        ("Code/A", "small", 37.5),
        ("Code/B", "small", 50),
        ("Code/A", "large", 62.5),
        ("Code/B", "large", 37.5),
        ("nothing stored", "small", 25),
        ("nothing stored", "large", 25),
    ]
    assert float(table.record(title="nothing stored", on="large")["cost_all_calls"]) == 4.5
    ends = numbers(table.record(title="Code/A", on="small"), "accuracy_low", "accuracy_high")
    assert ends == pytest.approx([100 * end for end in proportion_confint(3, 8, method="wilson")], abs=0.006)
    # Two roles that differ on 3 (1 and 2) and 2 questions (2 and 0): Q is (b - c)^2 / (b + c), one degree of freedom.
    small, large = table.record(title="Role: Code/B − Code/A"), table.record(title="Role: Code/A − Code/B")
    assert (small["on"], large["on"]) == ("small", "large")
    assert numbers(small, "difference", "p") == pytest.approx([12.5, 0.5637029])
    assert numbers(large, "difference", "p") == pytest.approx([25, 0.1572992])
    stored = table.record(title="Step stored − nothing stored", on="small")
    assert float(stored["difference"]) == pytest.approx(100 * (7 / 16 - 2 / 8))
    # On one question half of the roles are right by large alone.
    assert numbers(table.record(title="LLM: large − small"), "difference") == [100 * 0.5 / 8]


def test_methods_are_held_against_the_best_fixed_path_a_random_one_and_the_oracle(cells: list[Path]) -> None:
    table = build(cells)
    learned, drawn, fixed = (table.record(method=name) for name in ("gmr_one_step", "random_one_step", "fixed_step"))
    assert fixed["title"] == "Best fixed role and LLM, one step (Code/A of large)"
    rows = [[read(cell) for cell in cells[start : start + 2]] for start in (0, 2, 4)]
    keys = ("difference", "difference_low", "difference_high", "p")
    for row, record in zip(rows, (learned, drawn), strict=False):
        expected = compare(row, rows[2])
        assert numbers(record, *keys) == pytest.approx([expected[key] for key in keys])
    row, stored, bound = (
        np.array(list(map(marked, each)), float)
        for each in (LEARNED, [right for (_, _, is_stored), right in RIGHT.items() if is_stored], ["11111100"])
    )
    random = stored.mean(axis=0, keepdims=True)
    lead, reach, p_value = crossed(100 * row, 100 * random)
    found = numbers(learned, "above_random", "above_random_low", "above_random_high", "p_random")
    assert found == pytest.approx([lead, lead - reach, lead + reach, p_value])
    assert fixed["difference"] == ""
    # Two seeds with the same answers are one sample.
    path = table.record(title="Code/A", on="large")
    assert all(fixed[f"accuracy{end}"] == path[f"accuracy{end}"] for end in ("", "_low", "_high"))
    # Right by some path: questions 0 to 5, of which the cheapest right path costs 1, 1, 1, 2, 2, 1; else 1.
    oracle = table.record(title="Oracle of the tree")
    assert numbers(oracle, "accuracy", "cost_all_calls", "regret", "gained") == [75, 10 / 8, 0, 1]
    assert (oracle["p"], oracle["p_random"]) == ("", "")
    best = table.record(title="Best path of these questions: Code/A of large")
    assert numbers(best, "accuracy", "regret", "difference") == [62.5, 12.5, 0]
    # (11/16 - 15/32) / (6/8 - 15/32), with its variance by leaving out each question and each seed.
    assert numbers(learned, "gained", "regret") == pytest.approx([7 / 9, 6.25])

    def move(row: Any, random: Any, bound: Any) -> float:
        return float((row.mean() - random.mean()) / (bound.mean() - random.mean())) - 7 / 9

    questions = [move(*(np.delete(each, place, axis=1) for each in (row, random, bound))) for place in range(8)]
    seeds = [move(row[[seed]], random, bound) for seed in (0, 1)]
    variances = [np.square(each).sum() * (len(each) - 1) / len(each) for each in (questions, seeds)]
    degrees = [max(1, np.square(questions).sum() ** 2 / np.power(questions, 4).sum() - 1), 1]
    df = sum(variances) ** 2 / sum(variance**2 / degree for variance, degree in zip(variances, degrees, strict=True))
    low, high = numbers(learned, "gained_low", "gained_high")
    assert (high - low) / 2 == pytest.approx(t.ppf(0.975, df) * np.sqrt(sum(variances)))


def test_the_enumeration_is_that_of_the_preset_else_of_a_recording(cells: list[Path], tmp_path: Path) -> None:
    whole = build(cells)
    layout.tree("open_tree", "humaneval").rename(tmp_path / "away")
    with pytest.raises(UserError, match=r"^neither preset open_tree nor .*`gmr enumerate --preset open_tree --bench"):
        build(cells)
    (tmp_path / "theirs" / "tree").mkdir(parents=True)
    (tmp_path / "away").rename(tmp_path / "theirs" / "tree" / "humaneval")

    class Recording:
        results = tmp_path / "theirs"

    preset = resolve("open_tree").model_copy(update={"recorded": [Recording()]})
    assert tree(*cells, preset=preset).contents() == whole.contents()


@pytest.mark.parametrize(
    ("change", "made", "said"),
    [
        (lambda table: table[table["item_id"] != "item-0003"], {}, "lacks verdicts of the test questions"),
        (lambda table: pd.concat([table, table]), {}, "is damaged"),
        (lambda table: table, {"rule_version": "0"}, "by other rules; make it with `gmr enumerate"),
        (lambda table: table, {"simulated": True}, "not both simulated or both real"),
        (lambda table: table.assign(correct=~table["correct"]), {}, "has other verdicts on Code/A of large than the"),
    ],
)
def test_an_enumeration_that_does_not_fit_is_one_line(cells: list[Path], change: Any, made: Any, said: str) -> None:
    write_tree(layout.tree("open_tree", "humaneval"), change(nodes()), **made)
    with pytest.raises(UserError, match=said):
        build(cells)


SMALL, LARGE = "qwen-coder-0.5B", "qwen-coder-1.5B"
#: Ten test questions and one for training: whether the first program passes what is shown ("-": nothing), and is right.
PASSES = {SMALL: "1100000-001", LARGE: "11100000001"}
RIGHT_1 = {SMALL: "10000001000", LARGE: "11100000001"}
#: Verdicts of second steps of the large model on the failed questions, in their order.
RIGHT_2 = {
    (SMALL, True, 0.0, "first"): "1111100",
    (SMALL, True, 0.0, "none"): "1110000",
    (SMALL, False, 0.0, "first"): "1000000",
    (LARGE, True, 0.0, "first"): "0111100",
    (LARGE, True, 0.0, "none"): "0000000",
    (LARGE, False, 0.7, "first"): "1000000",
}
PAID = {SMALL: 1.0, LARGE: 3.0}


def second_nodes() -> pd.DataFrame:
    shown = {"1": True, "0": False, "-": None}
    opened = pd.DataFrame(
        {
            "item_id": [f"item-{place:04d}" for _ in PAID for place in (*range(10), 90)],
            "split": (["test"] * 10 + ["train"]) * 2,
            "backbone": [key for key in PAID for _ in range(11)],
            "step1_passes": [shown[letter] for key in PAID for letter in PASSES[key]],
            "step1_correct": [right for key in PAID for right in marked(RIGHT_1[key])],
            "tool_output": "first",
        }
    )
    opened["cost_steps"] = opened["backbone"].map(PAID)
    by_large = {"step2_backbone": LARGE, "step2_reads": True, "step2_temperature": 0.0, "step2_correct": False}
    parts = [opened, opened[opened["backbone"] == LARGE].iloc[[2]].assign(**by_large)]
    for (first, reads, temperature, place), right in RIGHT_2.items():
        failed = opened[(opened["backbone"] == first) & opened["step1_passes"].eq(False)]
        step = {"step2_reads": reads, "step2_temperature": temperature, "step2_correct": marked(right)}
        paid = PAID[first] + PAID[LARGE]
        parts.append(failed.assign(tool_output=place, cost_steps=paid, **{**by_large, **step}))
    return pd.concat(parts, ignore_index=True)


def test_comparisons_and_policies_are_those_counted_by_hand(write_cell: WriteCell, folder: Path) -> None:
    write_tree(layout.tree("open_steps", "mbpp"), second_nodes())
    cells = [
        write_cell("single", key, "mbpp", correct=marked("1110000000"), backbones=pool_of({key: cost}))
        for key, cost in PAID.items()
    ]
    rows = {(row["title"], row["on"]): row for row in second_step(*cells, preset=resolve("open_steps")).records}
    reading = rows["Reading − not reading", f"{SMALL}, {LARGE}"]
    assert (reading["n"], reading["first_alone"], reading["second_alone"]) == ("7", "4", "0")
    assert float(reading["p"]) == pytest.approx(binomtest(4, 4).pvalue)
    sample = rows["Reading − another sample", f"{LARGE}, {LARGE}"]
    assert (sample["first_alone"], sample["second_alone"]) == ("4", "1")
    assert float(sample["p_holm"]) == pytest.approx(max(binomtest(4, 5).pvalue, 2 * binomtest(4, 4).pvalue))
    blind = rows["Reading with − without the outcome", f"{SMALL}, {LARGE}"]
    assert (blind["first_alone"], blind["second_alone"], blind["p_holm"]) == ("2", "0", "")
    harmed = rows["Reading what passed − leaving it", f"{LARGE}, {LARGE}"]
    assert (harmed["n"], harmed["first_alone"], harmed["second_alone"]) == ("1", "0", "1")
    policy = rows["If it fails, a second, reading step", f"{SMALL}, {LARGE}"]
    assert [float(policy[name]) for name in ("accuracy", "training", "cost")] == [70, 0, (3 * 1 + 7 * 4) / 10]
    other = rows["If it fails, the other first step", f"{SMALL}, {LARGE}"]
    assert [float(other[name]) for name in ("accuracy", "cost")] == [30, (3 * 1 + 7 * 4) / 10]
    # The best other is right on four: the large model first, then the small one.
    assert float(policy["difference"]) == 100 * (7 - 4) / 10
