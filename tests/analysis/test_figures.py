"""Figures as files: what stands around the panels, and the same bytes every time."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure as Picture

from analysis import figure as drawing
from analysis import table
from analysis.figure import Figure
from analysis.provenance import SIMULATED_WARNING
from analysis.source import Source
from harness.files import ROOT
from tests.analysis.reading import words


def draw(picture: Picture) -> None:
    axes = picture.subplots()
    axes.plot([0, 1], [0, 1])
    axes.set_xlabel("across")


@pytest.fixture
def figure() -> Figure:
    return Figure(
        label="tiny",
        caption="What it shows, in words that take more than one line of a picture as small as this one is here.",
        simulated=True,
        draw=draw,
        inches=(4, 3),
        provenance={"run": "abc123", "preset": "embedded", "seeds": "0, 1", "code": "def"},
        frame=pd.DataFrame({"x": [1, 3], "y": [2, 4]}),
    )


def test_every_format_says_that_it_is_simulated(figure: Figure, tmp_path: Path) -> None:
    written = table.write(figure, tmp_path, "sub/tiny")
    assert sorted(path.suffix for path in written) == [".csv", ".pdf", ".png", ".svg"]
    for path in written:
        assert b"SIMULATED" in path.read_bytes()
    assert SIMULATED_WARNING in words(drawing.picture(figure))
    real = dataclasses.replace(figure, simulated=False)
    assert not any(b"SIMULATED" in path.read_bytes() for path in table.write(real, tmp_path, "real"))
    assert "SIMULATED" not in words(drawing.picture(real))


def files(module: str, folders: Iterable[Path]) -> bytes:
    """Every file of a figure, one after the other."""
    figure = import_module(module).build(Source.of(list(folders)))
    made = drawing.pictures(figure)
    return made["png"] + made["pdf"] + made["svg"] + table.csv(figure.frame, figure.warning).encode()


def test_the_same_bytes_elsewhere_and_whatever_the_order_of_cells(make: Callable[..., Path]) -> None:
    """In another process, at another time, with other settings of matplotlib and another order of hashes."""
    log = [{"entropy_write": 0.5, "entropy_halt": 0.25}, {"entropy_write": 0.4, "entropy_halt": 0.3}]
    module, cells = "analysis.figures.gate_entropy", [make(updates=log), make(seed=1, updates=log)]
    program = (
        "import sys, time; from pathlib import Path; import matplotlib; from tests.analysis import test_figures;"
        "matplotlib.rcParams['axes.facecolor'] = 'red'; time.time = lambda: 1e9;"
        "sys.stdout.buffer.write(test_figures.files(sys.argv[1], map(Path, sys.argv[2:])))"
    )
    elsewhere = subprocess.run(
        [sys.executable, "-c", program, module, *map(str, cells[::-1])],
        cwd=ROOT,
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "7", "SOURCE_DATE_EPOCH": "1000000000", "TZ": "Asia/Tokyo"},
    )
    assert elsewhere.stdout == files(module, cells)
