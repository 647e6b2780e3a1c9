"""The training curves: fifths and running means against values computed independently, the table, the picture."""

from __future__ import annotations

import functools
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from scipy import stats

from analysis import figure
from analysis.learning.measures import by_epoch, parts
from analysis.learning.report import picture, render, write
from analysis.learning.results import Report, build
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


def panels(drawn: Figure) -> dict[tuple[int, int], Any]:
    """The panels that show something, by line and column."""
    places = {panel: panel.get_subplotspec() for panel in drawn.axes if panel.axison}
    return {(place.rowspan.start, place.colspan.start): panel for panel, place in places.items()}


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40))
def test_an_update_belongs_to_the_fifth_in_which_it_begins(values: list[float]) -> None:
    found = parts(log_of(values), "x")
    assert set(found) <= set(range(5))
    for part, mean in found.items():
        begun = [value for place, value in enumerate(values) if part / 5 <= place / len(values) < (part + 1) / 5]
        assert mean == pytest.approx(statistics.fmean(begun), abs=1e-12)
    if len(values) % 5 == 0:
        assert list(found.values()) == pytest.approx(np.reshape(values, (5, -1)).mean(axis=1), abs=1e-12)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30), st.integers(1, 6))
def test_a_point_is_the_mean_over_one_epoch(values: list[float], per_epoch: int) -> None:
    found = by_epoch(log_of(values, per_epoch), "x")
    epochs = [values[start : start + per_epoch] for start in range(0, len(values), per_epoch)]
    assert list(found) == pytest.approx([statistics.fmean(epoch) for epoch in epochs], abs=1e-12)
    starts = [per_epoch * number for number in range(len(epochs))]
    assert list(found.index) == [start + (len(one) + 1) / 2 for start, one in zip(starts, epochs, strict=True)]


def test_an_attempt_counts_the_same_in_a_small_update() -> None:
    log = log_of([0.5, 1.0]).assign(trajectories=[96.0, 32.0])
    assert by_epoch(log, "x").tolist() == [0.625]
    log = log_of([0.0, 0.0, 0.5, 1.0] + [0.0] * 6).assign(trajectories=[96.0, 32.0] * 5)
    assert parts(log, "x")[1] == 0.625


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


def test_a_panel_has_a_thin_line_a_seed_and_a_thick_mean(report: Report) -> None:
    drawn = figure.picture(picture(report))
    assert set(panels(drawn)) == {(0, 0), (1, 1)}
    *seeds, mean = panels(drawn)[0, 0].lines
    assert drawn.axes[0].get_title() == "GMR"
    for line, values in zip(seeds, (FIRST, SECOND), strict=True):
        assert line.get_ydata() == pytest.approx(np.reshape(values, (5, 2)).mean(axis=1))
        assert line.get_xdata() == pytest.approx([1.5, 3.5, 5.5, 7.5, 9.5])
    assert mean.get_ydata() == pytest.approx(np.mean([line.get_ydata() for line in seeds], axis=0))
    assert mean.get_linewidth() > 2 * max(line.get_linewidth() for line in seeds)


@pytest.mark.parametrize("updates", [1, 2, 3])
def test_updates_are_whole_numbers_on_the_axis(make: Any, updates: int) -> None:
    (panel,) = panels(figure.picture(picture(build([make(updates=updates_of([0.5] * updates), per_epoch=9)])))).values()
    low, high = panel.get_xlim()
    ticks = [tick for tick in panel.get_xticks() if low <= tick <= high]
    assert ticks
    assert all(tick == round(tick) for tick in ticks)
