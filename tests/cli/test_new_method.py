"""A user's own method: created by a command, run by Snakemake, rerun after changes, bundled."""

import asyncio
import contextlib
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import AsyncMock

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from baselines.cheap import logistic_router
from cli.app import last_run
from cli.bundle import further_files, pack
from harness.errors import UserError
from harness.files import ROOT
from harness.llm.archive import extract
from harness.runner import config
from harness.scripted import setting
from harness.training.loop import Learned
from tests.command import gmr, program, snakemake
from tests.fixtures import learned
from tests.planning import Plans, checkout, planner

TABLE = "reports/smoke/main_table.md"
POOL = ["llama-3.2-3B", "qwen-2.5-14B"]
RUN = ["extra=my/methods.yaml", "methods=[second, first]", "benchmarks=[gsm_hard]", "limit={train: 12, test: 3}"]
WORDS = [TABLE, "--config", *RUN, f"backbones=[{', '.join(POOL)}]"]


@pytest.fixture(scope="module")
def plan(place: Path) -> Iterator[Plans]:
    with planner(place) as plan:
        yield plan


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, graphs: Path) -> Iterator[Path]:
    folder = checkout(tmp_path_factory.mktemp("new") / "place")
    with contextlib.chdir(folder):
        for name, *more in (("first",), ("second", "--trained")):
            assert f"gmr test my/methods.yaml --method {name}\n" in gmr("new", "method", name, *more).output
            Path("my/methods.yaml").write_text(Path("my/methods.yaml").read_text().rstrip())  # as an editor may
            config.methods.cache_clear()
        for name in ("first", "gmr", "json"):
            with pytest.raises(UserError, match="choose another name"):
                gmr("new", "method", name)
        config.methods.cache_clear()  # The file has changed since it was read.
        (folder / "printed").write_text(snakemake("-p", *WORDS, folder=folder, GMR_CACHE_DIR=str(graphs)))
    before = [*sys.path]
    yield folder
    sys.path[:] = before
    config.methods.cache_clear()


def test_its_rows_have_flags_and_the_order_of_the_run(place: Path) -> None:
    rows = [line.split(" | ") for line in (place / TABLE).read_text().splitlines() if line.startswith("| ")]
    assert [row[:4] for row in rows[2:]] == [[f"| {name}", "LLM Pool", "○", "●"] for name in ("second", "first")]


def test_a_router_that_learns_does_so_as_scikit_learn_does(place: Path) -> None:
    folder = place / "results/smoke/cells/second/gsm_hard/pool/seed0"
    tensors = learned(folder).tensors
    outcomes = [tensors[name] for name in ("embeddings", "correct", "costs")]
    embeddings, correct, costs = outcomes
    assert (len(correct), {*correct.sum(axis=0)} & {0, 12}) == (12, set()), "else there is nothing to fit"
    router = logistic_router.build(setting("pool"), logistic_router.Config())
    training = AsyncMock()
    training.outcomes.return_value = Learned(dict(zip(("embeddings", "correct", "costs"), outcomes, strict=True)), {})
    asyncio.run(router.fit(training))
    fitted = [LogisticRegression().fit(embeddings, column).predict_proba(embeddings)[:, 1] for column in correct.T]
    chances = router.layer(torch.tensor(embeddings).double()).sigmoid().detach().numpy()
    assert np.allclose(chances, np.transpose(fitted), atol=2e-3)
    assert np.allclose(router.costs, costs.mean(axis=0))
    chosen, asked = (pd.read_parquet(folder / f"{name}.parquet") for name in ("decisions", "calls"))
    assert chosen["choice"].tolist() == asked["backbone"].tolist()
    assert {*chosen["choice"]} <= {*POOL}


def test_it_alone_is_run_again_where_its_code_changed_and_only_then(place: Path, plan: Plans) -> None:
    module = place / "my" / "first.py"
    text = module.read_text()
    module.write_text(text.replace("len(self._pool)", "len(self._pool[:1])"))
    ((_, changed),) = plan([WORDS])
    module.write_text(text)
    ((_, unchanged),) = plan([WORDS])
    rerun = ["cell first gsm_hard pool seed 0: Updated input files"]
    assert [line for line in changed.splitlines() if " seed " in line] == rerun
    assert "Nothing to be done" in unchanged


LOADED = "import sys\nfrom cli.main import main\ntry:\n    main()\nfinally:\n    print(*sys.modules)"


def test_a_printed_command_repeats_its_job_from_a_bare_shell_and_loads_no_more_than_it_needs(place: Path) -> None:
    (command,) = re.findall(r"^gmr --log .* cell .* --method first .*$", (place / "printed").read_text(), re.MULTILINE)
    run = place / "results/smoke/cells/first/gsm_hard/pool/seed0/run.json"
    first = run.read_bytes()
    shutil.rmtree(run.parent)
    bare = {"HOME": str(Path.home()), "PATH": os.defpath, "PYTHONPATH": str(ROOT)}
    words = ["env", "-i", *map("=".join, bare.items()), sys.executable, "-c", LOADED, *shlex.split(command)[1:]]
    loaded = {*program(*words, folder=place).split()}
    assert run.read_bytes() == first
    # A cell of simulated backbones loads no client and nothing that learning or reports need.
    assert {"openai", "aiohttp", "httpx2", "tenacity", "torch", "onnxruntime", "scipy", "matplotlib"} & {
        *loaded
    } == set()


def test_a_bundle_has_its_program(place: Path, tmp_path: Path) -> None:
    with contextlib.chdir(place):
        assert "of 3 right" in gmr("show", "first", "gsm_hard", "--preset", "smoke").output
        pack("smoke", tmp_path / "run.zip")
    crate = extract(tmp_path / "run.zip", tmp_path / "unpacked", "my/methods.yaml")
    assert "programs of its maker: my/first.py, my/methods.yaml, my/second.py" in crate["./"]["description"]
    with contextlib.chdir(place):
        further = "\nbenchmarks: {more: {module: harness.benchmarks.gsm_hard, title: More, questions: more.parquet}}\n"
        (place / "my" / "methods.yaml").open("a").write(further)
        (place / "my" / "more.parquet").touch()
        config.methods.cache_clear()
        assert "my/more.parquet" in further_files(last_run("smoke"), set())
        assert "my/more.parquet" not in further_files(last_run("smoke"), {"more"})
        with pytest.raises(UserError, match=r"^mine.yaml is in .* whose whole content would be packed; move"):
            further_files(last_run("smoke").model_copy(update={"extra": "mine.yaml"}), set())
