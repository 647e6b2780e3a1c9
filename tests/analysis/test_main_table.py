"""The main table: every place holds what the cells and the paper say, and nothing else."""

from __future__ import annotations

import re

import numpy as np
import pytest

from analysis.published import load
from analysis.source import Source
from analysis.statistics import wilson
from analysis.table import DAGGER, NOT_RUN, Entry
from harness.runner.config import preset
from tests.analysis.reading import Read as Table
from tests.analysis.reading import main_table, paired
from tests.analysis.spending import record_of

FIVE = ("math", "gsm_hard", "mbpp", "humaneval", "mmlu_pro")


def place(table: Table, method: str, backbone: str, group: str) -> tuple[Entry, Entry]:
    """The published and the measured entry of one row."""
    row = next(row for row in table.rows if row.labels[:2] == (method, backbone))
    column = 2 * [group.title for group in table.groups].index(group)
    return row.entries[column], row.entries[column + 1]


def test_a_measured_place(write_cell, verdicts):
    table = main_table.build(Source.of([write_cell("cot", "qwen-2.5-14B", "mbpp", correct=verdicts(36, 50))]))
    published, measured = place(table, "CoT", "qwen-2.5-14B", "MBPP")
    low, high = wilson(36, 50)
    assert published.text == "70.80"
    interval = f"{100 * low:.1f}–{100 * high:.1f}"
    assert measured == Entry("72.00", beside="+1.20", below=interval)


def test_all_published_rows_stand_there_and_only_the_columns_of_the_run(write_cell):
    table = main_table.build(Source.of([write_cell(benchmark="mbpp"), write_cell(benchmark="math", correct=[True])]))
    assert [(group.title, group.detail) for group in table.groups] == [("MATH", "n = 1"), ("MBPP", "n = 4")]
    assert len(table.rows) == 21
    assert all(len(row.entries) == 4 for row in table.rows)
    assert [row.entries[0].text for row in table.rows] == [
        f"{row.accuracies['math'].percent:.2f}" for row in load().rows
    ]


def test_rows_that_a_choice_of_methods_leaves_out_are_not_shown(write_cell):
    cells = (write_cell("single"), write_cell("masrouter", "pool"), write_cell("my_router", "pool"))
    chosen = preset("smoke", {"methods": ["single", "masrouter"]})
    source = Source(cells, chosen)
    assert len(main_table.build(source).rows) == 3
    assert [row.labels[0] for row in paired.build(source).rows] == ["Single LLM", "MASRouter"]
    assert len(main_table.build(Source(cells, preset("smoke"))).rows) == 22
    assert len(main_table.build(Source(cells[:1], chosen)).rows) == 21


def test_a_calibrated_place_has_a_dagger_and_no_difference(write_cell):
    cells = [write_cell("single", calibrated=True), write_cell("cot")]
    table = main_table.build(Source.of(cells))
    _, fitted = place(table, "Single LLM", "qwen-2.5-14B", "GSM-Hard")
    _, free = place(table, "CoT", "qwen-2.5-14B", "GSM-Hard")
    assert (fitted.sign, fitted.beside) == (DAGGER, "")
    assert (free.sign, free.beside) == ("", "+7.48")
    assert any(note.startswith(DAGGER) for note in table.notes)
    assert record_of(table, method="single", backbone="qwen-2.5-14B")["difference"] == ""
    assert not any(note.startswith(DAGGER) for note in main_table.build(Source.of(cells[1:])).notes)


def test_the_average_needs_all_five(write_cell):
    cells = [write_cell("cot", benchmark=key) for key in FIVE]
    partial = [write_cell("single", benchmark=key) for key in FIVE[:4]]
    table = main_table.build(Source.of([*cells, *partial]))
    published, measured = place(table, "CoT", "qwen-2.5-14B", "Avg.")
    assert (published.text, measured.text, measured.beside) == ("72.11", "75.00", "+2.89")
    assert place(table, "Single LLM", "qwen-2.5-14B", "Avg.")[1].text == NOT_RUN
    assert "Avg." not in [group.title for group in main_table.build(Source.of(partial)).groups]


def test_the_average_weighs_benchmarks_not_items(write_cell, verdicts):
    sizes = dict(zip(FIVE, (1, 2, 4, 10, 100), strict=True))
    cells = [write_cell("cot", benchmark=key, correct=verdicts(key == "math", n)) for key, n in sizes.items()]
    assert place(main_table.build(Source.of(cells)), "CoT", "qwen-2.5-14B", "Avg.")[1].text == "20.00"


def test_a_row_the_paper_does_not_have_follows_at_the_end(write_cell):
    cells = [write_cell("cot", "my-7B"), write_cell("a_new_one", "qwen-2.5-14B"), write_cell("cot")]
    table = main_table.build(Source.of(cells))
    assert [row.labels[:2] for row in table.rows[21:]] == [("The a_new_one", "qwen-2.5-14B"), ("CoT", "my-7B")]
    for row in table.rows[21:]:
        assert (row.entries[0].text, row.entries[1].text, row.entries[1].beside) == ("", "75.00", "")
    assert any("blank published column" in note for note in table.notes)


def test_several_seeds_are_averaged(write_cell, verdicts):
    rights = {2: 36, 0: 20, 1: 28}
    cells = [write_cell("cot", seed=seed, correct=verdicts(right, 40)) for seed, right in rights.items()]
    table = main_table.build(Source.of(cells))
    _, measured = place(table, "CoT", "qwen-2.5-14B", "GSM-Hard")
    answers = np.array([verdicts(right, 40) for right in rights.values()], dtype=float)
    random = np.random.default_rng(5)
    drawn = [answers[np.ix_(random.integers(0, 3, 3), random.integers(0, 40, 40))].mean() for _ in range(4000)]
    low, high, alone = map(float, re.fullmatch(r"([\d.]+)–([\d.]+); seed 0: ([\d.]+)", measured.below).groups())
    assert measured.text == "70.00"
    assert (low, high) == pytest.approx(tuple(100 * np.percentile(drawn, [2.5, 97.5])), abs=1.5)
    assert alone == 50
    line = record_of(table, method="cot", backbone="qwen-2.5-14B")
    assert (line["seeds"], line["n"], line["seed0"]) == ("0 1 2", "40", "50.00")
    assert len(line["run_id"].split()) == 3
    assert any("mean over several seeds" in note for note in table.notes)


def test_a_missing_seed_leaves_no_average(write_cell):
    """Nor is the value of the benchmark it is missing from passed off as one of as many seeds."""
    cells = [
        write_cell("gmr", "pool", key, seed=seed) for key in FIVE for seed in (0, 1, 2) if (key, seed) != ("mbpp", 1)
    ]
    table = main_table.build(Source.of(cells))
    assert place(table, "GMR", "LLM Pool", "Avg.")[1].text == NOT_RUN
    assert place(table, "GMR", "LLM Pool", "MBPP")[1].text == "75.00"
    assert "No average over benchmarks with different seeds: GMR (LLM Pool)." in table.notes
    assert "Seeds of the learned rows: 0/1/2, except GMR (LLM Pool) on MBPP: 0/2." in table.notes


def test_answers_without_a_verdict_are_reported(write_cell, verdicts):
    statuses = ["graded", "unparsable", "call_failed", "sandbox_error", "empty", "truncated", "graded", "graded"]
    table = main_table.build(
        Source.of([write_cell("cot", correct=verdicts(1, 8), statuses=statuses), write_cell(correct=[True] * 8)])
    )
    line = record_of(table, method="cot", backbone="qwen-2.5-14B")
    shares = [line[key] for key in ("unparsable", "empty", "truncated", "call_failed", "sandbox_error", "measured")]
    assert shares == ["12.50"] * 6
    (note,) = [note for note in table.notes if "without a full verdict" in note]
    assert "call failed 12.5 %" in note
    clean = main_table.build(Source.of([write_cell("aflow")]))
    assert not any("without a full verdict" in note for note in clean.notes)


def test_the_second_grader_of_mathematics(write_cell):
    cells = [
        write_cell("cot", benchmark="math", math_verify=[True, True, True, True]),
        write_cell("single", benchmark="math", math_verify=[True, True, None, False]),
        write_cell("aflow", benchmark="mbpp"),
    ]
    table = main_table.build(Source.of(cells))
    math_rows = {
        one["method"]: one["math_verify"] for one in table.records if one["measured"] and one["benchmark"] == "math"
    }
    assert math_rows == {"single": "50.00", "cot": "100.00"}
    assert record_of(table, method="aflow", backbone="qwen-2.5-14B", benchmark="mbpp")["math_verify"] == ""
    (note,) = [note for note in table.notes if "Math-Verify" in note]
    assert "between −25.00 and +25.00 points" in note


def test_the_caption_names_the_conditions_of_a_run_and_how_many_cells_they_concern(write_cell):
    cells = [
        write_cell("cot", notes=["length_scale 0.2"]),
        write_cell(notes=["length_scale 0.2", "limit: 4 test items"]),
    ]
    caption = main_table.build(Source.of(cells)).caption
    assert caption.endswith(
        " Settings of this run: length_scale 0.2; limit: 4 test items (only Single LLM (qwen-2.5-14B))."
    )
    assert "Conditions" not in main_table.build(Source.of([write_cell("complex_cot")])).caption


def test_the_average_has_records_of_its_own(write_cell, verdicts):
    """Two seeds with 1 and 3 of 10 right on every benchmark; variances of five test sets add."""
    cells = [
        write_cell("gmr", "pool", key, seed=seed, correct=verdicts(1 + 2 * seed, 10)) for key in FIVE for seed in (0, 1)
    ]
    table = main_table.build(Source.of([*cells, write_cell("cot", correct=verdicts(5, 10))]))
    line = record_of(table, method="gmr", benchmark="average")
    shown = place(table, "GMR", "LLM Pool", "Avg.")[1]
    assert (line["published"], line["measured"], line["seed0"]) == ("77.73", "20.00", "10.00")
    assert float(line["difference"]) == pytest.approx(20 - 77.73)
    assert shown.below.startswith(f"{float(line['low']):.1f}–{float(line['high']):.1f}")
    assert len(line["run_id"].split()) == 10
    assert (line["seeds"], line["n"], line["calibrated"]) == ("0 1", "", "false")
    assert record_of(table, method="cot", backbone="qwen-2.5-14B", benchmark="average")["measured"] == ""
    assert len({tuple(one) for one in table.records}) == 1
    assert not any(one["benchmark"] == "average" for one in main_table.build(Source.of(cells[:2])).records)
