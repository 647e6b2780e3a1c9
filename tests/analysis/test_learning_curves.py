"""The training curves: fifths and running means against values worked out beside them, the table, the picture."""

from __future__ import annotations

import functools
import io
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.text import Text
from scipy import stats

from analysis.learning import curves, figure
from analysis.learning.files import write
from analysis.learning.markdown import render
from analysis.learning.report import Report, build
from analysis.provenance import short, table_run_id
from harness.files import ROOT
from tests.analysis import learned
from tests.analysis.learned import WriteCell, lines

SMALL = "qwen-2.5-14B"
FIRST, SECOND = [0.0, 0.1, 0.5, 0.3, 0.2, 0.6, 0.4, 0.8, 1.0, 0.9], [0.4, 0.2, 0.1, 0.7, 0.3, 0.3, 0.5, 0.6, 0.2, 0.2]


def updates_of(utilities: list[float]) -> list[dict[str, float]]:
    return [{"utility": one, "accuracy": one / 2, "steps": 9.0, "loss": 1.0, "entropy": 2.0} for one in utilities]


def log_of(values: list[float], per_epoch: int = 2) -> pd.DataFrame:
    numbers = range(1, len(values) + 1)
    columns = {"epoch": [1 + place // per_epoch for place in range(len(values))], "x": values, "trajectories": 16.0}
    return pd.DataFrame(columns, index=numbers)


@pytest.fixture
def make(write_cell: WriteCell) -> functools.partial[Path]:
    return functools.partial(learned.make, write_cell)


@pytest.fixture
def report(make: Any) -> Report:
    """Two seeds of ten updates in five epochs, one row of another method, and one router left as initialised."""
    trained = [make(seed=seed, updates=updates_of(one), per_epoch=2) for seed, one in enumerate((FIRST, SECOND))]
    other = make("puppeteer", backbone=SMALL, benchmark="humaneval", updates=updates_of([0.5] * 4), per_epoch=1)
    return build([*trained, other, make("gmr_untrained")])


def panels(picture: Figure) -> dict[tuple[int, int], Any]:
    """The panels that show something, by line and column."""
    places = {panel: panel.get_subplotspec() for panel in picture.axes if panel.axison}
    return {(place.rowspan.start, place.colspan.start): panel for panel, place in places.items()}


def words(picture: Figure) -> str:
    return " ".join(" ".join(text.get_text().split()) for text in picture.findobj(Text))


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40))
def test_an_update_belongs_to_the_fifth_in_which_it_begins(values: list[float]) -> None:
    found = curves.parts(log_of(values), "x")
    assert set(found) <= set(range(5))
    for part, mean in found.items():
        begun = [value for place, value in enumerate(values) if part / 5 <= place / len(values) < (part + 1) / 5]
        assert mean == pytest.approx(statistics.fmean(begun), abs=1e-12)
    if len(values) % 5 == 0:
        assert list(found.values()) == pytest.approx(np.reshape(values, (5, -1)).mean(axis=1), abs=1e-12)


def test_fewer_than_five_updates_leave_fifths_blank(make: Any) -> None:
    text = render(build([make(updates=updates_of([0.1, 0.2, 0.6]))]))
    row = lines(text, "### Curves")[3]
    assert row == ["GMR", "own utility", "0.100", "0.200", "–", "0.600", "–", "–"]


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30), st.integers(1, 6))
def test_a_point_is_the_mean_over_one_epoch(values: list[float], per_epoch: int) -> None:
    found = curves.by_epoch(log_of(values, per_epoch), "x")
    epochs = [values[start : start + per_epoch] for start in range(0, len(values), per_epoch)]
    assert list(found) == pytest.approx([statistics.fmean(epoch) for epoch in epochs], abs=1e-12)
    starts = [per_epoch * number for number in range(len(epochs))]
    assert list(found.index) == [start + (len(one) + 1) / 2 for start, one in zip(starts, epochs, strict=True)]


def test_an_attempt_counts_the_same_in_a_small_update() -> None:
    log = log_of([0.5, 1.0]).assign(trajectories=[96.0, 32.0])
    assert curves.by_epoch(log, "x").tolist() == [0.625]
    log = log_of([0.0, 0.0, 0.5, 1.0] + [0.0] * 6).assign(trajectories=[96.0, 32.0] * 5)
    assert curves.parts(log, "x")[1] == 0.625


def test_the_table_of_curves_is_means_over_seeds(report: Report) -> None:
    accuracy, utility = lines(render(report), "### Curves")[2:4]
    fifths = [np.reshape(one, (5, 2)).mean(axis=1) for one in (FIRST, SECOND)]
    means = np.mean(fifths, axis=0)
    assert utility[:7] == ["GMR", "own utility", *(f"{value:.3f}" for value in means)]
    assert accuracy[:7] == ["GMR", "accuracy (%)", *(f"{50 * value:.1f}" for value in means)]
    gains = [one[4] - one[0] for one in fifths]
    expected = stats.ttest_1samp(gains, 0).confidence_interval(0.95)
    low, high = (f"{value:+.3f}".replace("-", "−") for value in expected)
    assert utility[7] == f"{np.mean(gains):+.3f} [{low}, {high}]"


def test_a_router_left_as_initialised_has_no_curve(report: Report) -> None:
    assert {row[0] for row in lines(render(report), "### Curves")[2:]} == {"GMR"}


def test_the_csv_holds_the_log_as_it_is(report: Report, tmp_path: Path) -> None:
    write(report, tmp_path)
    path = tmp_path / "learning_curves.csv"
    assert "as logged" in path.read_text().splitlines()[1]
    found = pd.read_csv(path, comment="#")
    assert list(found.columns) == ["benchmark", "method", "backbone", "seed", "update", "measure", "value"]
    assert set(found["measure"]) == {"accuracy", "utility", "entropy"}
    own = found.query("measure == 'utility' and method == 'gmr' and seed == 1")
    assert own["update"].tolist() == list(range(1, 11))
    assert own["value"].tolist() == SECOND
    assert set(found.query("method == 'puppeteer'")["backbone"]) == {SMALL}


@pytest.mark.parametrize(
    ("measure", "is_shown"),
    [("accuracy", True), ("depth", True), ("entropy_mode", True), ("entropyless", False), ("loss", False)],
)
def test_which_measures_are_curves(measure: str, is_shown: bool) -> None:
    assert curves.is_curve(measure) == is_shown


def test_a_panel_has_a_thin_line_a_seed_and_a_thick_mean(report: Report) -> None:
    picture = figure.draw(report)
    assert set(panels(picture)) == {(0, 0), (1, 1)}
    *seeds, mean = panels(picture)[0, 0].lines
    assert picture.axes[0].get_title() == "GMR"
    for line, values in zip(seeds, (FIRST, SECOND), strict=True):
        assert line.get_ydata() == pytest.approx(np.reshape(values, (5, 2)).mean(axis=1))
        assert line.get_xdata() == pytest.approx([1.5, 3.5, 5.5, 7.5, 9.5])
    assert mean.get_ydata() == pytest.approx(np.mean([line.get_ydata() for line in seeds], axis=0))
    assert mean.get_linewidth() > 2 * max(line.get_linewidth() for line in seeds)


def test_lines_differ_in_lightness_and_have_no_hue(report: Report) -> None:
    from matplotlib.colors import to_rgb

    colours = {to_rgb(line.get_color()) for line in panels(figure.draw(report))[0, 0].lines}
    assert all(len(set(colour)) == 1 for colour in colours)
    assert max(colours)[0] - min(colours)[0] > 0.4


def test_the_picture_names_its_parts_and_its_run(report: Report, make: Any) -> None:
    said = words(figure.draw(report))
    for part in ("SIMULATED", "GSM-Hard", "HumanEval", "GMR", f"({SMALL})", short(table_run_id(report.cells))):
        assert part in said
    real = build([make(simulated=False, updates=updates_of(FIRST))])
    assert "SIMULATED" not in words(figure.draw(real))


def test_a_training_of_one_epoch_is_a_point(make: Any) -> None:
    picture = figure.draw(build([make(updates=updates_of([0.1, 0.2]), per_epoch=2)]))
    assert {line.get_marker() for line in panels(picture)[0, 0].lines} == {"o"}


def test_nothing_trained_is_a_picture_that_says_so(make: Any) -> None:
    picture = figure.draw(build([make("gmr_untrained")]))
    assert picture.axes == []
    assert "Nothing was trained" in words(picture)


def test_no_text_leaves_the_picture_or_lies_over_a_panel(report: Report) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    picture = figure.draw(report)
    FigureCanvasAgg(picture).draw()
    inside = picture.bbox
    for panel in panels(picture).values():
        for text in (panel.title, panel.xaxis.label, panel.yaxis.label):
            box = text.get_window_extent()
            assert not text.get_text() or (inside.x0 <= box.x0 and box.x1 <= inside.x1)
            assert not text.get_text() or not box.overlaps(panel.bbox)


def test_the_same_report_gives_the_same_bytes_in_another_process_at_another_time(report: Report) -> None:
    here = figure.files(report)
    folders = [str(cell.folder) for cell in report.cells]
    program = (
        "import sys, time; from pathlib import Path; import matplotlib; matplotlib.rcParams['axes.facecolor'] = 'red';"
        "from analysis.learning import figure, report; time.time = lambda: 1e9;"
        "files = figure.files(report.build(map(Path, sys.argv[1:])));"
        "sys.stdout.buffer.write(files['png'] + files['pdf'])"
    )
    made = subprocess.run(
        [sys.executable, "-c", program, *folders],
        cwd=ROOT,
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "7", "SOURCE_DATE_EPOCH": "1000000000", "TZ": "Asia/Tokyo"},
    )
    assert made.stdout == here["png"] + here["pdf"]
    assert here["png"].startswith(b"\x89PNG")
    assert here["pdf"].startswith(b"%PDF")
    assert b"CreationDate" not in here["pdf"]


def test_the_picture_is_a_real_one(report: Report) -> None:
    from matplotlib.image import imread

    pixels = imread(io.BytesIO(figure.files(report)["png"]))
    assert pixels.shape[0] > 300
    assert pixels.std() > 0.05
