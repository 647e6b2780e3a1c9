"""The table of paired comparisons: every place says what the cells and the paper say, and nothing else."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from analysis.frames import Results
from analysis.paired import compare, holm
from analysis.published import load
from analysis.results import read_all
from analysis.source import Source
from analysis.table import BEST, NOT_RUN, Entry
from harness.errors import UserError
from tests.analysis.reading import Read as Table
from tests.analysis.reading import paired
from tests.analysis.spending import record_of, spend


def place(table: Table, method: str, backbone: str, group: str) -> dict[str, Entry]:
    """The entries of one row below one heading."""
    row = next(row for row in table.rows if row.labels == (method, backbone))
    entries = iter(row.entries)
    for one in table.groups:
        found = [(title, next(entries)) for title in one.columns]
        if one.title == group:
            return dict(found)
    raise AssertionError(group)


def counts(both: int, first: int, second: int, neither: int) -> tuple[list[bool], list[bool]]:
    """The verdicts of two methods with these counts of questions."""
    here = [True] * (both + first) + [False] * (second + neither)
    there = [True] * both + [False] * first + [True] * second + [False] * neither
    return here, there


def test_a_pair(write_cell):
    ours, theirs = counts(60, 15, 5, 20)
    cells = [
        spend(write_cell("gmr", "pool", correct=ours), [0.3] * 50 + [0.5] * 50),
        spend(write_cell("masrouter", "pool", correct=theirs), [0.5] * 100),
    ]
    table = paired.build(Source.of(cells))
    found = place(table, "MASRouter", "LLM Pool", "GSM-Hard")
    assert (found["Publ. diff."].text, found["Publ. cost ×"].text) == ("+4.55", "0.58")
    assert (found["Diff."].text, found["Diff."].sign) == ("+10.00", "")
    low, high = (float(end.replace("−", "-")) for end in found["Diff."].below.split(", "))
    assert (low, high) == pytest.approx((10 - 8.5, 10 + 8.5), abs=1.1)
    assert (found["p"].text, found["p"].below, found["p"].mark) == ("0.041", "0.041", BEST)
    assert (found["Cost ×"].text, found["Cost ×"].sign) == ("0.80", "")
    line = record_of(table, method="masrouter")
    assert (line["reference_right_alone"], line["row_right_alone"]) == ("15", "5")
    assert (line["reference_accuracy"], line["accuracy"], line["n"]) == ("75.00", "65.00", "100")
    assert (float(line["odds_ratio"]), float(line["cohens_g"])) == (3, 0.25)
    assert float(line["p_exact"]) == pytest.approx(2 * 21700 / 2**20)
    assert float(line["cost_difference"]) == pytest.approx(-0.1)
    assert float(line["detectable_difference"]) == pytest.approx(100 * 2.83 * math.sqrt(0.2 / 100), rel=0.01)
    assert line["published_difference"] == "+4.55"


def test_the_reference_is_no_row_and_every_other_row_stands_there(write_cell):
    table = paired.build(Source.of([write_cell("gmr", "pool"), write_cell("cot", "my-7B")]))
    assert [row.labels for row in table.rows[-2:]] == [("MASRouter", "LLM Pool"), ("CoT", "my-7B")]
    assert len(table.rows) == len(load().rows) - 1 + 1
    assert place(table, "CoT", "my-7B", "GSM-Hard")["Publ. diff."].text == ""
    assert place(table, "AFlow", "qwen-2.5-14B", "GSM-Hard")["Diff."].text == NOT_RUN
    assert any("not both were run" in note for note in table.notes)
    assert len(table.records) == len(table.rows)
    assert len({tuple(one) for one in table.records}) == 1
    assert record_of(table, method="aflow", backbone="qwen-2.5-14B")["difference"] == ""


def test_p_is_adjusted_over_the_benchmarks_of_a_row(write_cell):
    sizes = {"math": (60, 15, 5, 20), "mbpp": (50, 20, 4, 26), "humaneval": (50, 9, 8, 33)}
    cells = []
    for benchmark, size in sizes.items():
        ours, theirs = counts(*size)
        cells += [
            write_cell("gmr", "pool", benchmark, correct=ours),
            write_cell("cot", benchmark=benchmark, correct=theirs),
        ]
    cells.append(write_cell("gmr", "pool", "gsm_hard"))
    table = paired.build(Source.of(cells))
    measured = Results(read_all(cells)).trainings
    raw = [compare(measured["gmr", "pool", key], measured["cot", "qwen-2.5-14B", key])["p_exact"] for key in sizes]
    lines = [record_of(table, method="cot", backbone="qwen-2.5-14B", benchmark=key) for key in sizes]
    assert [float(line["p_exact"]) for line in lines] == pytest.approx(raw)
    assert [float(line["p_holm"]) for line in lines] == pytest.approx(list(holm(pd.Series(raw))))
    assert place(table, "CoT", "qwen-2.5-14B", "MATH")["p"].mark == ""
    assert place(table, "CoT", "qwen-2.5-14B", "MBPP")["p"].mark == BEST
    assert place(table, "CoT", "qwen-2.5-14B", "GSM-Hard")["Diff."].text == NOT_RUN


def test_a_p_is_of_the_first_seed_and_a_difference_of_all(write_cell):
    ours, theirs = counts(20, 10, 0, 10)
    cells = [
        write_cell("gmr", "pool", correct=ours),
        write_cell("gmr", "pool", seed=1, correct=theirs),
        write_cell("masrouter", "pool", correct=theirs),
    ]
    table = paired.build(Source.of(cells))
    found = place(table, "MASRouter", "LLM Pool", "GSM-Hard")
    assert (found["Diff."].text, found["Diff."].mark) == ("+12.50", "")
    assert (found["p"].text, found["p"].mark) == ("0.002", BEST)
    line = record_of(table, method="masrouter")
    assert (float(line["difference"]), float(line["difference_first_seed"])) == (12.5, 25)


def test_another_reference(write_cell):
    cells = [write_cell("gmr", "pool"), write_cell("puppeteer", "qwen-2.5-32B")]
    table = paired.build(Source.of(cells, reference="puppeteer"))
    assert table.caption.startswith("Puppeteer (qwen-2.5-32B) against")
    assert place(table, "GMR", "LLM Pool", "GSM-Hard")["Publ. diff."].text == "−1.80"
    assert place(table, "Puppeteer", "qwen-2.5-14B", "GSM-Hard")["Diff."].text == NOT_RUN
    with pytest.raises(UserError, match="reference 'gmx' is no row of this table; expected one of single, cot"):
        paired.build(Source.of(cells, reference="gmx"))


def test_the_average_is_the_mean_of_the_differences_and_their_variances_add(write_cell):
    """Against the normal interval of five paired means, written out."""
    sizes = {
        "math": (60, 15, 5, 20), "gsm_hard": (50, 20, 4, 26), "mbpp": (50, 9, 8, 33), "humaneval": (40, 5, 25, 30),
        "mmlu_pro": (30, 10, 10, 50),
    }  # fmt: skip
    cells, means, variances = [], [], []
    for benchmark, size in sizes.items():
        ours, theirs = counts(*size)
        cells += [
            write_cell("gmr", "pool", benchmark, correct=ours),
            write_cell("cot", "my-7B", benchmark, correct=theirs),
        ]
        differences = np.array(ours, dtype=float) - np.array(theirs, dtype=float)
        means.append(differences.mean())
        variances.append(differences.var() / len(differences))
    mean, reach = 100 * np.mean(means), 196 * math.sqrt(sum(variances)) / 5
    table = paired.build(Source.of([*cells, write_cell("masrouter", "pool", correct=counts(*sizes["gsm_hard"])[0])]))
    found = place(table, "CoT", "my-7B", "Avg.")
    assert (found["Diff."].text, found["Diff."].sign, found["Publ. diff."].text) == (f"+{mean:.2f}", "", "")
    low, high = (float(end.replace("−", "-")) for end in found["Diff."].below.split(", "))
    assert (low, high) == pytest.approx((mean - reach, mean + reach), abs=0.2)
    line = record_of(table, method="cot", backbone="my-7B", benchmark="average")
    assert float(line["difference"]) == pytest.approx(mean)
    assert (float(line["difference_low"]), float(line["difference_high"])) == pytest.approx((low, high), abs=0.06)
    assert len(line["run_id"].split()) == len(line["reference_run_id"].split()) == 5
    assert (line["p_exact"], line["published_difference"]) == ("", "")
    some = place(table, "MASRouter", "LLM Pool", "Avg.")
    assert (some["Diff."].text, some["Publ. diff."].text) == (NOT_RUN, "+3.46")
    assert any("of the average normal" in note for note in table.notes)
