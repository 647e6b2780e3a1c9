"""Granularity of printed percentages: against brute force, against the published table, and as a command."""

from __future__ import annotations

import statistics
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from typer.testing import CliRunner

from analysis import grim_table
from analysis.grim import best_n, explain, fits, printed, scan
from analysis.grim_seeds import triples
from analysis.grim_table import PLAUSIBLE
from analysis.published import Count, Fit, Published, load
from harness.errors import UserError
from harness.files import ROOT
from workflow.commands import grim as command

PAPER = load()
# Which triples of counts give mean and deviation of the seed table and contain the run of the main table
# (docs/grim.md).
SEEDS = {
    ("masrouter", "gsm_hard"): (1056, [686, 688, 697]),
    ("masrouter", "mbpp"): (500, [374, 383, 396]),
    ("masrouter", "humaneval"): (128, [99, 105, 109]),
    ("masrouter", "mmlu_pro"): (880, [515, 587, 590]),
    ("puppeteer", "math"): (416, [300, 329, 334]),
    ("puppeteer", "mbpp"): (496, [371, 374, 392]),
    ("puppeteer", "humaneval"): (128, [109, 110, 114]),
    ("puppeteer", "mmlu_pro"): (880, [600, 604, 617]),
    ("gmr", "gsm_hard"): (1056, [719, 745, 746]),
    ("gmr", "math"): (416, [317, 330, 331]),
    ("gmr", "humaneval"): (128, [112, 113, 115]),
    ("gmr", "mmlu_pro"): (880, [604, 610, 624]),
}


def column(published: Published, benchmark: str) -> list[str]:
    return [f"{row.accuracies[benchmark].percent:.2f}" for row in published.rows]


def shortened(k: int, n: int, places: int) -> dict[str, str]:
    """A share by each rule, by a decimal library."""
    with localcontext(prec=60):
        exact = Decimal(100 * k) / Decimal(n)
        unit = Decimal(1).scaleb(-places)
        rules = {"up": ROUND_HALF_UP, "even": ROUND_HALF_EVEN, "cut": ROUND_DOWN}
        return {name: f"{exact.quantize(unit, rule):f}" for name, rule in rules.items()}


def by_hand(text: str, n: int) -> dict[int, Fit]:
    places = len(text.partition(".")[2])
    found = {}
    for k in range(n + 1):
        texts = shortened(k, n, places)
        if text in (texts["up"], texts["even"]):
            found[k] = Fit.ROUNDED
        elif text == texts["cut"]:
            found[k] = Fit.TRUNCATED
    return found


@given(st.integers(1, 200), st.integers(0, 3), st.data())
def test_fits_are_those_of_every_count_tried(n: int, places: int, data: st.DataObject):
    units = data.draw(st.integers(0, 100 * 10**places))
    text = f"{Decimal(units).scaleb(-places):f}"
    assert {match.count.k: match.fit for match in fits(text, n)} == by_hand(text, n)


def test_a_tie_may_be_rounded_up_or_to_the_even_digit():
    """12.5 of 8: up gives 13, to even 12; 37.5: both give 38, so that 37 is cut off."""
    assert [fits(text, 8)[0].fit for text in ("12", "13", "37", "38")] == [
        Fit.ROUNDED,
        Fit.ROUNDED,
        Fit.TRUNCATED,
        Fit.ROUNDED,
    ]


@given(st.integers(1, 3000), st.data(), st.sampled_from(["up", "even", "cut"]), st.integers(0, 4))
def test_a_share_is_found_again_however_it_was_shortened(n: int, data: st.DataObject, rule: str, places: int):
    k = data.draw(st.integers(0, n))
    matches = {match.count.k: match.fit for match in fits(shortened(k, n, places)[rule], n)}
    assert k in matches
    assert rule == "cut" or matches[k] is Fit.ROUNDED


def test_decimals_are_those_printed():
    assert [match.count.k for match in fits("84.50", 200)] == [169]
    assert [match.count.k for match in fits("84.5", 129)] == [109]
    assert fits("84.500", 129) == []
    assert len(fits("84", 1000)) > 5
    assert printed(" 84.50 % ") == printed("84.50")


@pytest.mark.parametrize("text", ["", "x", "-1.00", "100.01", "101", "1e1", "84,5", "8.", ".5", "nan", "84.5 ± 1"])
def test_what_is_no_percentage_is_refused(text: str):
    with pytest.raises(UserError, match="no printed percentage"):
        printed(text)


@given(st.integers(0, 10_000), st.lists(st.integers(1, 300), min_size=1, max_size=3, unique=True))
def test_the_nearest_count_is_the_nearest_of_all(units: int, candidates: list[int]):
    found = explain(f"{units / 100:.2f}", candidates)
    assume(found.near is not None)
    assert found.near is not None
    every = [Fraction(k, n) for n in candidates for k in range(n + 1)]
    given_share = Fraction(units, 10_000)
    assert abs(Fraction(found.near.k, found.near.n) - given_share) == min(abs(share - given_share) for share in every)


def test_the_published_table_is_explained_as_recorded():
    """The file was made by hand; here it is found again from the printed text alone."""
    for row in PAPER.rows:
        for benchmark, cell in row.accuracies.items():
            found = explain(f"{cell.percent:.2f}", PLAUSIBLE[benchmark])
            assert (found.fit, found.counts, found.near) == (cell.fit, cell.counts, cell.near), (row.method, benchmark)


def test_ten_cells_fit_nothing_and_two_are_cut_off():
    report = grim_table.check_published(PAPER)
    found = [cell.fit for one in report.columns for cell in one.cells if cell]
    assert (found.count(Fit.NONE), found.count(Fit.TRUNCATED), len(found)) == (10, 2, 105)


@pytest.mark.parametrize(
    ("key", "explained"),
    [
        ("math", {416: 20, 520: 7}),
        ("gsm_hard", {1056: 18, 1000: 2, 1040: 2}),
        ("mbpp", {500: 15, 496: 5}),
        ("humaneval", {129: 11, 128: 4, 164: 0, 132: 0}),
        ("mmlu_pro", {880: 17, 400: 4}),
    ],
)
def test_cells_explained_by_each_candidate(key: str, explained: dict[int, int]):
    ranking = best_n(column(PAPER, key), explained)
    assert {one.n: one.rounded for one in ranking} == explained
    assert ranking[0].n == next(iter(explained))


def test_cells_that_are_cut_off_count_apart():
    found = best_n(column(PAPER, "humaneval"), [128])[0]
    assert (found.rounded, found.truncated) == (4, 2)


@pytest.mark.parametrize(
    ("key", "found"), [("math", [416]), ("gsm_hard", [1056]), ("humaneval", [129, 128]), ("mmlu_pro", [880, 400])]
)
def test_a_scan_finds_the_numbers_of_questions(key: str, found: list[int]):
    """Multiples of the number explain as many cells, and some one more; they must not come first."""
    assert scan(column(PAPER, key), range(100, 1200)) == found


def test_a_scan_of_random_digits_finds_nothing():
    for seed in range(8):
        digits = np.random.default_rng(seed).integers(0, 10_000, 21, endpoint=True)
        assert scan([f"{units / 100:.2f}" for units in digits], range(50, 250)) == []


def test_chance_is_that_of_random_digits():
    """A column of every two-decimal value: the share explained is the expected one."""
    every = [f"{units / 100:.2f}" for units in range(10_001)]
    found = best_n(every, [129])[0]
    assert found.rounded == 130
    assert found.expected == pytest.approx(130)


def test_the_tables_of_variants_fit_their_number_of_questions():
    for table in ("ablation", "paradigm", "roles13"):
        for method, benchmarks in PAPER.further[table].items():
            for benchmark, n in (("gsm_hard", 1056), ("humaneval", 128)):
                assert explain(f"{benchmarks[benchmark]['accuracy']:.2f}", [n]).fit is Fit.ROUNDED, (table, method)


@pytest.mark.parametrize(("cell", "expected"), SEEDS.items(), ids=str)
def test_the_seed_table(cell: tuple[str, str], expected: tuple[int, list[int]]):
    method, benchmark = cell
    n, counts = expected
    row = [row for row in PAPER.rows if row.method == method][-1]
    given_ = PAPER.further["seed_variance"][method][benchmark]
    own = f"{row.accuracies[benchmark].percent:.2f}"
    found = triples(f"{given_['mean']:.2f}", f"{given_['sd']:.2f}", n, containing=own)
    assert [[explain(text, [n]).counts[0].k for text in one] for one in found] == [counts]


def test_what_the_seed_table_leaves_open():
    assert triples("66.98", "1.87", 1056, containing="68.75") == []
    assert [[explain(text, [1056]).counts[0].k for text in one] for one in triples("66.98", "1.87", 1056)] == [
        [686, 711, 725],
        [694, 698, 730],
    ]
    # No count gives 74.31; taken as it stands, it goes with two counts.
    assert triples("74.37", "2.28", 416) == []
    assert triples("74.37", "2.28", 416, containing="74.31") == [("72.12", "74.31", "76.68")]
    # A near miss: the deviation would have to be a hundredth away.
    assert triples("80.40", "1.21", 500, containing="79.60") == []
    assert [explain(text, [500]).counts[0].k for text in triples("80.40", "1.22", 500, containing="79.60")[0]] == [
        398,
        399,
        409,
    ]


@given(st.lists(st.integers(0, 40), min_size=3, max_size=3))
def test_three_runs_are_found_again_from_their_mean_and_deviation(counts: list[int]):
    texts = sorted((shortened(k, 40, 2)["up"] for k in counts), key=Decimal)
    values = [Decimal(text) for text in texts]
    with localcontext(prec=60):
        mean, sd = (
            f"{value.quantize(Decimal('0.01'), ROUND_HALF_UP):f}"
            for value in (sum(values) / Decimal(3), statistics.stdev(values))
        )
    found = triples(mean, sd, 40)
    assert tuple(texts) in found
    for one in found:
        own = [float(text) for text in one]
        assert statistics.mean(own) == pytest.approx(float(mean), abs=0.0051)
        assert statistics.stdev(own) == pytest.approx(float(sd), abs=0.0051)


def test_unequal_decimals_are_refused():
    with pytest.raises(UserError, match="same number of decimals"):
        triples("74.37", "2.3", 416)


def run(*words: str | Path) -> str:
    words_ = ["grim", *map(str, words)]
    return CliRunner().invoke(command.app, words_, catch_exceptions=False).stdout


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table in the manner of papers, with a column of words, a hole, a total and seeds."""
    monkeypatch.chdir(ROOT)
    path = tmp_path / "table.csv"
    path.write_text(
        "# a comment\n"
        "method,acc,other,total,seed\n"
        "A,84.50,50.00,1234.5,0\n"
        "B,84.37,–,1.2,1\n"
        "C,85.16%,33.33,2.2,2\n"
        "D,69.79,66.67,3.2,3\n"
    )
    return path


def test_the_command_explains_a_table_of_ones_own(table: Path, tmp_path: Path):
    shown = run(table, "--n", "acc=129,128", "--n", "3,2", "--out", tmp_path / "out.csv")
    assert "84.37 108/128 truncated" in shown
    assert "69.79 none (near 90/129)" in shown
    assert "50.00 1/2" in shown
    assert "7 cells: 5 rounded, 1 truncated, 1 none" in shown
    written = pd.read_csv(tmp_path / "out.csv", dtype=str, keep_default_na=False)
    assert list(written.columns) == ["row", "column", "printed", "fit", "counts", "near"]
    by_cell = written.set_index(["row", "column"])
    assert dict(by_cell.loc[("A", "acc")]) == {"printed": "84.50", "fit": "rounded", "counts": "109/129", "near": ""}
    assert by_cell.loc[("D", "acc"), "near"] == "90/129"
    assert ("B", "other") not in by_cell.index
    assert set(written["column"]) == {"acc", "other"}


def test_the_command_scans(table: Path):
    shown = run(table, "--n", "acc=129,128", "--scan", "2-50")
    assert "other: 3 cells, explained by n = 6\n" in shown
    assert "acc: 4 cells, explained by n = 129, 128" in shown


def test_the_command_says_where_a_scan_finds_nothing(table: Path, tmp_path: Path):
    shown = run(table, "--scan", "100-105", "--out", tmp_path / "out.csv")
    assert "acc: 4 cells, no n does better than chance" in shown
    assert "A   84.50 none  50.00 51/102\n" in shown
    written = pd.read_csv(tmp_path / "out.csv").set_index(["row", "column"])
    assert written.loc[("A", "acc"), "fit"] == "none"
    assert pd.isna(written.loc[("A", "acc"), "near"])


def test_without_a_file_it_is_the_paper(table: Path):
    shown = run()
    assert "105 cells: 93 rounded, 2 truncated, 10 none" in shown
    assert "puppeteer mbpp: 76.41 ± 2.29, with 74.80: 371, 374, 392 of 496" in shown
    assert "gmr mbpp: 80.40 ± 1.21, none with 79.60; without it: none" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "which numbers of items are plausible"),
        (["--n", "ac=416"], "unknown column 'ac'; did you mean 'acc'"),
        (["--n", "method=416"], "column 'method', row 1: 'A' is no printed percentage"),
        (["--n", "total=416"], "column 'total', row 1: '1234.5'"),
        (["--n", "acc=many"], "'many': expected numbers of items"),
        (["--n", "acc=0"], "'0': expected numbers of items"),
        (["--n", "acc="], "'': expected numbers of items"),
        (["--scan", "9-3"], "'9-3': expected the lowest"),
        (["--scan", "3"], "'3': expected the lowest"),
        (["--n", "3", "--scan", "3-9"], "not beside --scan"),
        (["--n", "3", "--n", "4"], "once"),
    ],
)
def test_a_mistake_is_named(table: Path, words: list[str], message: str):
    with pytest.raises(UserError, match=message):
        run(table, *words)


@pytest.mark.parametrize("content", ["", "a,b\nx,y\n", None, "a,b\n1,2,3\n1\n", '"a\n'])
def test_a_file_without_percentages_is_refused(table: Path, content: str | None):
    if content is None:
        table.unlink()
    else:
        table.write_text(content)
    with pytest.raises(UserError):
        run(table, "--n", "416")


def test_options_without_a_file_are_refused(table: Path):
    with pytest.raises(UserError, match="name its file"):
        run("--n", "416")


def test_rows_without_words_have_their_number(tmp_path: Path):
    (tmp_path / "t.csv").write_text("a\n50.00\n25.00\n")
    frame = grim_table.read(tmp_path / "t.csv")
    report = grim_table.check(frame, grim_table.Plausible(named={}, elsewhere=(4,)))
    assert report.rows == ("1", "2")
    assert [cell.counts for cell in report.columns[0].cells if cell] == [(Count(2, 4),), (Count(1, 4),)]
