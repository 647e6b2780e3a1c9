"""The study of learning where one method has several rows, and for methods that route nothing."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from analysis.learning.files import write
from analysis.learning.markdown import render
from analysis.learning.report import Report, build
from tests.analysis import learned
from tests.analysis.learned import WriteCell, lines, table

SMALL, LARGE = "qwen-2.5-14B", "qwen-2.5-32B"
CONTRASTS = [
    {"name": "training", "asks": "Does it learn?", "a": "gmr", "b": "gmr_untrained"},
    {"name": "against_single", "asks": "Is it better than its backbone?", "a": "gmr", "b": "single"},
    {"name": "against_best", "asks": "Is it better than the best backbone?", "a": "gmr", "b": "best_single"},
]


@pytest.fixture
def make(write_cell: WriteCell) -> functools.partial[Path]:
    return functools.partial(learned.make, write_cell)


@pytest.fixture
def single(write_cell: WriteCell) -> functools.partial[Path]:
    return functools.partial(learned.single, write_cell)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A declaration with what it needs and nothing else."""
    what = {"measures": ["own_utility", "accuracy"], "benchmarks": ["gsm_hard"]}
    document = {"cost_weight": 20, "single": "single", "contrasts": [{**one, **what} for one in CONTRASTS]}
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.fixture
def report(make: Any, single: Any, study: Path) -> Report:
    """Two rows, of which one gains a quarter and the other loses one, and a third that was never left untrained."""
    cells = [
        make("gmr", backbone=SMALL, own=[1.0, 1.0, 0.0, 0.5], correct=[True, True, True, False]),
        make("gmr", backbone=LARGE, own=[0.0] * 4, correct=[True, False, False, False]),
        make("gmr", backbone="llama-3.2-3B"),
        make("gmr_untrained", backbone=SMALL, own=[0.5, 0.0, 0.0, 0.0], correct=[True, True, False, False]),
        make("gmr_untrained", backbone=LARGE, own=[0.25] * 4, correct=[True, True, False, False]),
    ]
    return build([*cells, single(SMALL, 1, 0.001), single(LARGE, 4, 0.002)], study)


def found(report: Report, name: str) -> dict[tuple[str, str], float]:
    return {(one.row.backbone, one.measure): one.mean for one in report.differences if one.contrast.name == name}


def test_a_contrast_of_methods_is_answered_row_by_row(report: Report) -> None:
    assert found(report, "training") == {
        (SMALL, "own_utility"): 0.5,
        (SMALL, "accuracy"): 25,
        (LARGE, "own_utility"): -0.25,
        (LARGE, "accuracy"): -25,
    }


def test_a_row_is_compared_with_its_own_backbone_or_with_the_best(report: Report) -> None:
    assert found(report, "against_single") == {(SMALL, "accuracy"): 50, (LARGE, "accuracy"): -75}
    best = found(report, "against_best")
    assert (best[SMALL, "accuracy"], best[LARGE, "accuracy"]) == (-25, -75)


def test_a_row_without_an_answer_is_named(report: Report) -> None:
    assert report.unanswered == ["training (gsm_hard llama-3.2-3B)", "against_single (gsm_hard llama-3.2-3B)"]


def test_the_report_tells_rows_apart(report: Report) -> None:
    text = render(report)
    assert f"GMR ({SMALL}) minus GMR untrained ({SMALL}) (training)." in text
    assert f"GMR ({SMALL}) minus Single LLM ({SMALL}) (against\\_single)." in text
    assert f"GMR ({LARGE}) minus the best single backbone (against\\_best)." in text
    outcome = table(text, "### Outcome")
    assert outcome[f"GMR ({SMALL})"][0] == "75.0 (75.0)"
    assert outcome[f"GMR ({LARGE})"][0] == "25.0 (25.0)"
    assert lines(text, f"GMR ({LARGE}) minus GMR untrained ({LARGE}) (training).")[2][1:3] == [
        "own utility", "−0.250 (one seed, no interval)",
    ]  # fmt: skip


def test_the_pool_goes_without_saying(make: Any, study: Path) -> None:
    text = render(build([make(own=[1.0] * 4), make("gmr_untrained", own=[0.0] * 4)], study))
    assert "GMR minus GMR untrained (training)." in text
    assert "pool" not in text.split("Provenance")[0]


def test_the_tables_name_the_backbone(report: Report, tmp_path: Path) -> None:
    write(report, tmp_path)
    values = pd.read_csv(tmp_path / "learning.csv", comment="#").query("measure == 'accuracy' and method == 'gmr'")
    assert dict(zip(values["backbone"], values["value"], strict=True)) == {SMALL: 75, LARGE: 25, "llama-3.2-3B": 75}
    answers = pd.read_csv(tmp_path / "learning_contrasts.csv", comment="#")
    mean = answers.query("contrast == 'training' and statistic == 'mean' and measure == 'own_utility'")
    assert dict(zip(mean["backbone"], mean["value"], strict=True)) == {SMALL: 0.5, LARGE: -0.25}


def test_what_a_study_leaves_out_is_not_in_the_report(report: Report, make: Any, tmp_path: Path) -> None:
    text = render(report)
    assert "### Single backbones\n" in text
    assert "Random routers" not in text
    study = tmp_path / "bare.yaml"
    contrast = {**CONTRASTS[0], "measures": ["accuracy"], "benchmarks": ["gsm_hard"]}
    study.write_text(yaml.safe_dump({"cost_weight": 1, "contrasts": [contrast]}))
    bare = build([make(seed=1, updates=[{"entropy_backbone": 0.01, "steps": 1.0}]), make("gmr_untrained", 1)], study)
    assert "collapse" not in bare.columns["gsm_hard"].learned["gmr", "pool"][1].values
    text = render(bare)
    assert not any(part in text for part in ("Single backbones", "single backbone", "dominated", "settled"))


def test_entropies_of_other_policies(make: Any, study: Path) -> None:
    puppeteer = make("puppeteer", backbone=SMALL, updates=[{"entropy": 2.0}] * 4)
    masrouter = make("masrouter", updates=[{"entropy_mode": 1.5, "entropy_backbone": 0.5, "steps": 5.0}] * 4)
    text = render(build([puppeteer, masrouter, make("gmr_untrained")], study))
    assert table(text, "### Entropies") == {
        "Method": ["mode (nats)", "backbone (nats)", "policy (nats)"],
        "---": ["--:"] * 3,
        f"Puppeteer ({SMALL})": ["", "", "2.00 (2.00)"],
        "MASRouter": ["1.50 (1.50)", "0.50 (0.50)", ""],
    }
    assert table(text, "### Training signal")["MASRouter"] == ["4 (4)", "20 (20)"]
    assert table(text, "### Training signal")[f"Puppeteer ({SMALL})"] == ["4 (4)", ""]
