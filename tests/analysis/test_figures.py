"""Figures: text around the panels, deterministic files, gate entropies and Pareto plots."""

import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from analysis import exhibit
from analysis import figure as drawing
from analysis.figure import on_frontier
from analysis.paper.training import by_epoch
from harness.errors import UserError
from harness.files import ROOT
from harness.runner.results import SIMULATED_WARNING
from tests.analysis.cells import pool_of, verdicts, write
from tests.analysis.reading import gate_entropy, main_table, pareto, words


@pytest.mark.parametrize("simulated", [True, False])
def test_every_format_says_whether_it_is_simulated(simulated: bool, make: Any, tmp_path: Path) -> None:
    figure = gate_entropy(make(updates=[{"entropy_write": 0.5, "entropy_halt": 0.25}], simulated=simulated)).made
    written = exhibit.write(figure, tmp_path, "sub/tiny")
    assert sorted(path.suffix for path in written) == [".csv", ".pdf", ".png", ".svg", ".tex", ".txt"]
    assert {b"SIMULATED" in path.read_bytes() for path in written} == {simulated}
    assert (SIMULATED_WARNING.partition(";")[0] in words(drawing.picture(figure))) is simulated
    assert all(figure.caption in path.read_text() for path in written if path.suffix in (".tex", ".txt"))


def test_no_two_methods_look_alike_and_a_variant_has_the_colour_of_its_base() -> None:
    mine = [f"router_{number}" for number in range(5)]
    others = ["gmr_lambda_10", "gmr_lambda_50", *mine]
    looks = drawing.looks(others, mine)
    assert len(set(looks.values())) == 10 + len(others)
    main = ("single", "cot", "complex_cot", "macnet_chain", "aflow", "puppeteer", "masrouter", "gmr")
    # The palette of eight is one that colour-blind readers tell apart.
    assert {looks[method][0] for method in main} == set(drawing.OKABE_ITO)
    assert looks["gmr_lambda_10"][0] == looks["gmr"][0]
    for own in mine:
        assert not any(part in look for name, look in looks.items() if name != own for part in looks[own]), own


def files(folders: Sequence[Path]) -> bytes:
    """Return the files of a table of all cells, and of a figure of the trained ones."""
    table = main_table(*folders).contents()
    figure = gate_entropy(*(folder for folder in folders if (folder / "training.parquet").exists())).contents()
    return repr((table, figure)).encode()


def test_the_same_bytes_elsewhere_and_whatever_the_order_of_cells(make: Any, write_cell: Any, tmp_path: Path) -> None:
    """In another process, at another time, with other settings of matplotlib and another order of hashes."""
    log = [{"entropy_write": 0.5, "entropy_halt": 0.25}, {"entropy_write": 0.4, "entropy_halt": 0.3}]
    cells = [write_cell(method, benchmark=key) for method in ("cot", "aflow") for key in ("math", "riddles")]
    cells += [make(seed=seed, updates=log) for seed in (0, 1)]
    program = (
        "import sys, time; from pathlib import Path; import matplotlib; from tests.analysis import test_figures;"
        "matplotlib.rcParams['axes.facecolor'] = 'red'; time.time = lambda: 1e9;"
        "sys.stdout.buffer.write(test_figures.files([*map(Path, sys.argv[1:])]))"
    )
    elsewhere = subprocess.run(
        [sys.executable, "-c", program, *map(str, cells[::-1])],
        cwd=ROOT,
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "7", "SOURCE_DATE_EPOCH": "1000000000", "TZ": "Asia/Tokyo"},
    )
    assert elsewhere.stdout == files(cells)
    assert str(tmp_path).encode() not in elsewhere.stdout


def test_one_line_a_gate_its_lowest_value_and_a_gap_where_it_had_nothing_to_decide(make: Any) -> None:
    updates = [
        {"entropy_write": 0.6, "entropy_halt": 0.5, "entropy_retrieval": 0.3},
        {"entropy_write": 0.2, "entropy_halt": 0.5},
        {"entropy_write": 0.5, "entropy_halt": 0.4},
    ]
    figure = gate_entropy(make(updates=updates))
    picture = drawing.picture(figure.made)
    lines = [(line.get_xdata(), line.get_ydata()) for line in picture.axes[0].lines]
    curves = [list(y) for _, y in lines if len(y) > 1]
    assert all(curve in curves for curve in ([0.6, 0.2, 0.5], [0.5, 0.5, 0.4]))
    assert [(x[0], y[0]) for x, y in lines if len(y) == 1 and y[0] != 0.3] == [(2, 0.2), (3, 0.4)]
    labels = ("write, min 0.20", "halt, min 0.40", "retrieve, min 0.30")
    assert all(label in words(picture) for label in labels)
    assert [record["measure"] for record in figure.records].count("entropy_retrieval") == 1
    with pytest.raises(UserError, match="nothing was trained"):
        gate_entropy(make())


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12))
def test_the_frontier_is_what_nothing_beats(points: list[tuple[int, int]]) -> None:
    frame = pd.DataFrame([*points, (1, None)], columns=["cost", "accuracy"])
    expected = [
        not any(one[0] <= cost and one[1] >= accuracy and one != (cost, accuracy) for one in points)
        for cost, accuracy in points
    ]
    *known, missing = on_frontier(frame["cost"], frame["accuracy"])
    assert (known, pd.isna(missing)) == (expected, True)


def test_every_row_has_its_published_point_and_those_run_a_measured_one(make: Any) -> None:
    figure = pareto(make("gmr"), make("masrouter"), make("single", backbone="qwen-2.5-14B"))
    panels = drawing.picture(figure.made).axes[:2]
    markers = [[line for line in panel.lines if line.get_linestyle() == "None"] for panel in panels]
    assert list(map(len, markers)) == [21, 3]
    assert [panel.get_title() for panel in panels] == ["published: GSM-Hard", "measured: GSM-Hard"]
    assert [len(panel.collections) for panel in panels] == [0, 2 * 3]  # error bars of both axes
    assert (panels[0].get_xlim(), panels[0].get_ylim()) == (panels[1].get_xlim(), panels[1].get_ylim())
    assert figure.record(method="aflow", backbone="qwen-2.5-14B")["measured"] == ""
    row = figure.record(method="gmr", backbone="pool")
    expected = {"published_cost_per_query": 0.587 / 1056, "cost_per_query": 0.001, "cost_per_query_all_calls": 0.002}
    assert {name: float(row[name]) for name in expected} == pytest.approx(expected)
    [frontier] = [line for line in panels[1].lines if line.get_drawstyle() == "steps-post"]
    assert (frontier.get_xdata()[0], frontier.get_ydata()[0]) == pytest.approx((10, 75))


def test_of_another_pool_than_the_papers_one_panel_is_drawn_and_few_costs_are_numbers(
    write_cell: Any,
) -> None:
    mine = pool_of({"mine": 1})
    costs = {"gmr": 1e-4, "masrouter": 2e-4}
    figure = pareto(*(write_cell(method, "pool", cost=cost, backbones=mine) for method, cost in costs.items()))
    picture = drawing.picture(figure.made)
    picture.draw_without_rendering()
    [panel] = picture.axes
    costs_shown = [float(label.get_text()) for label in panel.get_xticklabels(which="both") if label.get_text()]
    assert (panel.get_title(), len(costs_shown) > 1) == ("measured: GSM-Hard", True)
    assert "(1e-4 of the paper's unit: 312 tokens" in panel.get_xlabel().replace("\n", " ")
    both = (("single", "mine", 5e-5), ("gmr", "pool", 1e-4))
    singles = [write_cell(method, row, cost=cost, backbones=mine) for method, row, cost in both]
    [panel] = drawing.picture(pareto(*singles).made).axes
    assert panel.get_xlabel() == "cost of a question (1 = a single call of mine)"
    assert {round(line.get_xdata()[0], 9) for line in panel.lines if len(line.get_xdata()) == 1} == {1, 2}


@settings(max_examples=3)
@given(st.lists(st.tuples(st.integers(2, 98), st.floats(1e-5, 1e-3)), min_size=4, max_size=4))
def test_every_method_of_ones_own_is_on_top_and_named_and_no_name_crosses_an_interval(
    tmp_path_factory: pytest.TempPathFactory, points: list[tuple[int, float]]
) -> None:
    folder = tmp_path_factory.mktemp("cells")
    names = ("single", "gmr", "mine", "masrouter")
    cells = [
        write(folder, name, "pool", correct=verdicts(right, 100), cost=[cost, 2 * cost] * 50)
        for name, (right, cost) in zip(names, points, strict=True)
    ]
    picture = drawing.picture(pareto(*cells).made)
    panel = picture.axes[-1]
    texts = [text for text in panel.texts if len(text.get_text()) > 1]
    assert {"The mine", "GMR"} <= {text.get_text() for text in texts}
    bars = [Bbox(panel.transData.transform(path.vertices)) for bar in panel.collections for path in bar.get_paths()]
    boxes = [Text.get_window_extent(text) for text in texts]
    assert not any(box.overlaps(other) for box in boxes for other in bars)
    markers = {line.get_marker(): line.get_zorder() for line in panel.lines if len(line.get_xdata()) == 1}
    assert max(markers, key=lambda marker: markers[marker]) == drawing.looks(["mine"], ["mine"])["mine"][1]


@pytest.mark.parametrize("shown", [0, 1])
def test_what_costs_nothing_is_named_and_not_drawn(shown: int, write_cell: Any) -> None:
    costs = {"gmr": 1e-4 * shown, "single": 0}
    cells = (write_cell(method, "mine", cost=cost, backbones=pool_of({"mine": 1})) for method, cost in costs.items())
    figure = pareto(*cells)
    [panel] = drawing.picture(figure.made).axes
    assert [line.get_marker() for line in panel.lines if len(line.get_xdata()) == 1] == ["*"] * shown
    assert f"of 0: Single LLM (mine){'' if shown else ', GMR (mine)'}." in figure.made.notes[-1]


def test_long_titles_leave_the_panels_their_width_and_stay_in_the_picture(write_cell: Any) -> None:
    titles = ("Debate with a verifier and early stopping", "x" * 87)
    own = [write_cell(f"own_{len(title)}", "pool", method_title=title, cost=1e-4) for title in titles]
    picture = drawing.picture(pareto(write_cell("gmr", "pool", cost=2e-4), *own, write_cell("cot")).made)
    picture.draw_without_rendering()
    assert all(panel.get_position().width > 0.75 for panel in picture.axes)
    names = [text.get_window_extent() for panel in picture.axes[:2] for text in (panel.title, *panel.texts)]
    [key] = picture.legends
    boxes = [*names, key.get_window_extent()]
    assert all(picture.bbox.x0 <= box.x0 and box.x1 <= picture.bbox.x1 for box in boxes)
    assert not any(key.get_window_extent().overlaps(panel.get_tightbbox()) for panel in picture.axes)
    assert "early stopping" in words(picture)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30), st.integers(1, 6))
def test_a_point_is_the_mean_over_the_attempts_of_one_epoch(values: list[float], per_epoch: int) -> None:
    epochs = [values[start : start + per_epoch] for start in range(0, len(values), per_epoch)]
    numbers = np.arange(len(values))
    log = pd.DataFrame({"epoch": numbers // per_epoch, "utility": values, "trajectories": 16.0}, numbers + 1)
    curve = by_epoch(log, "utility")
    assert list(curve) == pytest.approx([statistics.fmean(epoch) for epoch in epochs], abs=1e-12)
    assert list(curve.index) == [per_epoch * place + (len(one) + 1) / 2 for place, one in enumerate(epochs)]
    small = pd.DataFrame({"epoch": 1, "utility": [0.5, 1.0], "trajectories": [96.0, 32.0]})
    assert by_epoch(small, "utility").tolist() == [0.625]
