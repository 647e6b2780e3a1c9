"""Conclusions under readings, against numbers computed by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.claims.numbers import ROWS
from analysis.exhibit import NOT_RUN
from analysis.registry import artefact
from analysis.statistics import paired
from analysis.tables.specification_table import CONCLUSIONS, TAKEN, SpecificationOptions
from harness.errors import UserError
from harness.runner import config
from tests.analysis.by_hand import averaged
from tests.analysis.cells import WriteCell
from tests.analysis.reading import Artefact, Read

N = 40
BOTH = ("gsm_hard", "humaneval")
DECLARED = SpecificationOptions(**artefact("specification_table").options).readings
table = Artefact("analysis.tables.specification_table")


def readings(**given: dict[str, Any]) -> dict[str, Any]:
    return {"readings": {name.replace("_", " "): reading for name, reading in given.items()}}


def point(made: Read, reading: str, conclusion: str = "masrouter") -> dict[str, Any]:
    return made.record(conclusion=conclusion, reading=reading)


@pytest.fixture
def verdicts() -> dict[tuple[str, str], np.ndarray]:
    rng = np.random.default_rng(3)
    shares = {"gmr": 0.7, "gmr_dot": 0.4, "masrouter": 0.6}
    return {(method, key): rng.random(N) < share for method, share in shares.items() for key in BOTH}


@pytest.fixture
def cells(write_cell: WriteCell, verdicts: dict[tuple[str, str], np.ndarray]) -> list[Path]:
    """Return cells of the pool, of which some calls of GMR are of no step."""
    means = {"gmr": (1e-3, 4e-3), "gmr_dot": (3e-3, 4e-3), "masrouter": (2e-3, 2e-3)}
    uneven = np.tile([0.5, 1.5], N // 2)
    costs = {row: {"cost_steps": uneven * one, "cost_total": uneven[::-1] * all_} for row, (one, all_) in means.items()}
    return [
        write_cell(method, "pool", key, correct=right.tolist(), **costs[method])
        for (method, key), right in verdicts.items()
    ]


def test_a_reading_puts_rows_in_the_place_of_others_on_the_benchmarks_it_names(
    cells: list[Path], verdicts: dict[tuple[str, str], np.ndarray]
) -> None:
    swap = {"of": ["masrouter"], "rows": {"gmr": "gmr_dot"}}
    made = table(*cells, **readings(dot=swap, dot_once={**swap, "benchmarks": ["humaneval"]}))
    for name, rows in ((TAKEN, ("gmr", "gmr")), ("dot", ("gmr_dot", "gmr_dot")), ("dot once", ("gmr", "gmr_dot"))):
        differences = [
            100.0 * (verdicts[row, key].astype(float) - verdicts["masrouter", key])
            for row, key in zip(rows, BOTH, strict=True)
        ]
        record = point(made, name)
        mean, reach, _ = averaged(differences)
        found = [float(record[end]) for end in ("measured", "low", "high")]
        assert found == pytest.approx([mean, mean - reach, mean + reach])
        assert {"gmr", "gmr_dot"} & {part.split("/")[0] for part in record["cells"].split()} == set(rows)
    row = made.row("GMR is ahead of MASRouter, mean of GSM-Hard and HumanEval")
    taken, lowest, highest = row.entries[1:4]
    assert (lowest.below, highest.below) == ("dot", TAKEN)
    assert taken.text == highest.text


def test_costs_verdicts_and_utilities_are_columns_of_the_items(
    cells: list[Path], write_cell: WriteCell, verdicts: dict[tuple[str, str], np.ndarray]
) -> None:
    strict, lenient = [True] * 10 + [False] * 30, [True] * 13 + [False] * 27
    deep = write_cell("gmr_depth_10", "pool", "math", correct=strict, also=[[("math_verify", v)] for v in lenient])
    plain = write_cell(
        "gmr", "pool", "math", correct=strict[::-1], also=[[("math_verify", True)]] * 9 + [[]] * 31, cost_steps=0.005
    )
    made = table(
        *(*cells, deep, plain),
        **readings(
            all_calls={"of": ["cheaper"], "costs": "cost_total"},
            lenient={"of": ["depth"], "verdicts": "math_verify"},
            utility={"of": ["depth", "masrouter"], "cost_weight": 20},
        ),
    )
    saved = [float(point(made, name, "cheaper")["measured"]) for name in (TAKEN, "all calls")]
    assert saved == pytest.approx([50, -100])
    gains = [float(point(made, name, "depth")["measured"]) for name in (TAKEN, "lenient", "utility")]
    # An answer without a second verdict is wrong by it; a step of the deeper row costs 0.125, as cells have it.
    assert gains == pytest.approx([0, 10, 100 * 20 * (0.005 - 0.125)])
    ends = [float(point(made, "lenient", "depth")[end]) for end in ("low", "high")]
    assert ends == pytest.approx([100 * end for end in paired(4, 0, N)])
    lead = np.mean([verdicts["gmr", key].mean() - verdicts["masrouter", key].mean() for key in BOTH])
    assert float(point(made, "utility")["measured"]) == pytest.approx(100 * (lead + 20 * 0.001))


def test_ahead_of_the_strongest_is_ahead_of_every_other_row(write_cell: WriteCell) -> None:
    """Ahead of the best rival by 5 points on the mean, though another is best on HumanEval."""
    right = dict.fromkeys(ROWS, (10, 10)) | {("gmr", "pool"): (30, 20), ("masrouter", "pool"): (26, 20)}
    right |= {("puppeteer", "qwen-2.5-32B"): (12, 30)}
    cells = [
        write_cell(*row, key, correct=[place < count for place in range(N)])
        for row, counts in right.items()
        for key, count in zip(BOTH, counts, strict=True)
    ]
    made = table(*cells, **readings(nothing={"of": ["strongest"], "rows": {"cot": "cot_nowhere"}}))
    record = point(made, TAKEN, "strongest")
    assert float(record["measured"]) == pytest.approx(100 * (4 + 0) / N / 2)
    # Two rows of the paper are of CoT, and none takes their places.
    lost = point(made, "nothing", "strongest")
    assert (lost["measured"], "cot qwen-2.5-14B on gsm_hard" in lost["missing"]) == ("", True)
    assert made.row(CONCLUSIONS["strongest"].says.removesuffix(".")).entries[4:7][1].text == "1"
    assert any(note.startswith("Left out") and note.endswith("depth, nothing.") for note in made.notes)


def test_what_lacks_a_cell_or_a_seed_is_left_out_and_said(cells: list[Path], write_cell: WriteCell) -> None:
    more = write_cell("gmr_dot", "pool", seed=1, correct=[True] * N)
    made = table(*cells, more, **readings(dot={"of": ["masrouter"], "rows": {"gmr": "gmr_dot"}}))
    assert point(made, "dot")["missing"] == "gmr pool on humaneval, seed 1"
    assert made.row(CONCLUSIONS["depth"].says.removesuffix(".")).entries[1].text == NOT_RUN
    [left_out] = [note for note in made.notes if note.startswith("Left out")]
    assert left_out.endswith(": strongest, training, gates, halting, ablations, roles, average, depth, dot.")
    with pytest.raises(UserError, match=r"unknown conclusion 'masroutr'.*named by the reading typo"):
        table(*cells, **readings(typo={"of": ["masroutr"]}))


def test_estimates_of_a_simulated_run_are_judged_by_nothing(write_cell: WriteCell) -> None:
    cells = [
        write_cell(method, "pool", key, correct=[place < right for place in range(N)], simulated=True)
        for method, right in {"gmr": 30, "masrouter": 10}.items()
        for key in BOTH
    ]
    made = table(*cells, **readings(total={"of": ["cheaper"], "costs": "cost_total"}))
    record = point(made, TAKEN)
    assert (float(record["measured"]), record["published"], record["outcome"]) == (50, "", "not judged: simulated")
    row = made.row("GMR is ahead of MASRouter, mean of GSM-Hard and HumanEval")
    assert [entry.text for entry in row.entries] == ["", "+50.00", "+50.00", "+50.00"]
    assert not any("upports" in note or "ontradict" in note for note in made.notes)


def test_every_row_that_a_reading_names_is_run_where_it_is_read() -> None:
    preset = config.preset("paper")
    made = {(cell.method, cell.benchmark) for cell in artefact("specification_table").cells_of(preset)}
    for reading in DECLARED.values():
        assert set(reading.of) <= set(CONCLUSIONS)
        for other in reading.rows.values():
            keys = reading.benchmarks or BOTH
            assert {(other, key) for key in keys} <= made
