"""End to end with a real model: every method runs on a local SmolLM2, is reported and replayed.

Skipped unless GMR_LLAMA_CPP names llama.cpp's server and GMR_SMOLLM2 the model's GGUF file (docs/own-models.md). The
model answers at chance level, so these tests do not check accuracy.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import orjson
import pandas as pd
import pytest

from harness.runner.preset import resolve
from tests.command import gmr_process, snakemake
from tests.planning import checkout
from tests.serving.scripts import running

SERVER, WEIGHTS = os.environ.get("GMR_LLAMA_CPP"), os.environ.get("GMR_SMOLLM2")
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not (SERVER and WEIGHTS), reason="GMR_LLAMA_CPP and GMR_SMOLLM2 name no server and no weights"),
]

METHODS = resolve("embedded").methods
# Two names of one model, which routers have to tell apart by their words alone.
NAMES = ("smollm2-quick", "smollm2-slow")
POOL = {
    name: {
        "model": f"smollm2/{name}",
        "parameters_b": size,
        "max_tokens": 192,
        "generation": {"temperature": 0.7, "top_p": 0.95, "repetition_penalty": 1.1},
        "description": description,
        "licence": "Apache-2.0",
        "attribution": "SmolLM2 135M Instruct: Hugging Face",
    }
    for name, size, description in zip(NAMES, (0.1, 0.2), ("A tiny model, cheap.", "The same, dearer."), strict=True)
}
KEYS = {
    "preset": "open_tree",
    "data": "embedded",
    "splits": "official",
    "seeds": [0],
    "reference": "gmr",
    "benchmarks": ["mbpp"],
    "methods": list(METHODS),
    "backbones": list(NAMES),
    "large": NAMES[1:],
    "pool": POOL,
    "limit": {"train": 1, "test": 2, "epochs": 2},
    "max_error_share": 0.5,
}
SETTINGS = [f"{key}={json.dumps(value) if key != 'preset' else value}" for key, value in KEYS.items()]
REPORTS = [f"reports/open_tree/{name}.md" for name in ("main_table", "costs")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a checkout whose pool is served by llama.cpp while the tests run."""
    folder = checkout(tmp_path_factory.mktemp("words") / "run")
    (folder / "results").mkdir()
    named = [f"{name}={WEIGHTS}" for name in NAMES]
    with pytest.MonkeyPatch.context() as patch, running("llama-cpp", *named, folder=folder) as (_, line):
        patch.setenv(*line.removeprefix("export ").split("=", 1))
        yield folder


@pytest.fixture(scope="module")
def finished(folder: Path) -> Path:
    snakemake(*REPORTS, "--quiet", "all", "--config", *SETTINGS, folder=folder, timeout_s=None)
    return folder


def test_every_method_is_trained_asked_and_reported(finished: Path) -> None:
    cells = sorted((finished / "results/open_tree/cells").glob("*/*/*/seed0/run.json"))
    found = [orjson.loads(path.read_bytes()) for path in cells]
    assert {run["method"] for run in found} == set(METHODS)
    assert not any(run["simulated"] for run in found)
    assert {key for run in found for key in run["backbones"]} == set(NAMES)
    assert all(any("reported by its server" in note for note in run["notes"]) for run in found), "weights of fewer bits"
    words = pd.concat([pd.read_parquet(path.with_name("calls.parquet")) for path in cells])
    assert words["completion_tokens"].between(0, 192).all()
    assert words["completion_tokens"].mean() > 10
    # Two epochs are two rounds of a search, of which the second has a proposal in the model's words.
    assert "Cost of the search" in (finished / REPORTS[2]).read_text()
    table = (finished / REPORTS[0]).read_text()
    assert "SIMULATED" not in table
    assert not re.search(r"69\.32|74\.27", table), "a published value of another pool"


def test_servers_page_and_trajectories(finished: Path) -> None:
    for words in (["check", "servers"], ["report", "page"], ["report", "inspect"]):
        gmr_process(*words, "--preset", "open_tree", folder=finished)
    assert (finished / "reports/open_tree/index.html").stat().st_size > 10_000
    logs = [path for path in (finished / "reports/open_tree/inspect").rglob("*") if path.is_file()]
    assert len(logs) > len(METHODS), "one a cell, and Single LLM has two"


def test_a_bundle_replays_to_the_same_bytes_without_a_server(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gmr_process("bundle", "--preset", "open_tree", "run.zip", folder=finished)
    monkeypatch.delenv("GMR_ENDPOINTS")
    gmr_process("replay", "run.zip", folder=finished)
    assert (finished / "reports/replayed/open_tree/main_table.md").read_bytes() == (finished / REPORTS[0]).read_bytes()
