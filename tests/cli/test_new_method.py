"""A user's own method: created by a command, run by Snakemake, rerun after changes, bundled; and ``gmr test``."""

import asyncio
import contextlib
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from baselines.cheap import logistic_router
from cli import behaviour
from cli.app import last_run
from cli.bundle import further_files, pack
from harness.agents import roles
from harness.errors import UserError
from harness.files import ROOT
from harness.llm.archive import extract
from harness.runner import config
from harness.runner.layout import Cell
from harness.runner.preset import resolve
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


# What ``gmr test`` finds: the methods of the suite pass, and a broken method fails at the check of what it breaks.

# Few and short rollouts.
SMALL = {"gmr": {"batch": 2, "group": 2, "max_depth": 2}, "masrouter": {"batch": 1}}
METHODS = "single cot macnet_chain aflow puppeteer masrouter gmr self_consistency knn_router logistic_router cascade"
MORE = "random_router macnet_complete gmr_sampled random_matched logistic_router_paths fixed_step cascade_of_roles"


@pytest.mark.parametrize(
    "key", [*METHODS.split(), *(pytest.param(key, marks=pytest.mark.nightly) for key in MORE.split())]
)
@pytest.mark.usefixtures("folder")
def test_every_method_of_the_suite_behaves(key: str) -> None:
    entry = config.methods()[key]
    small: dict[str, Any] = SMALL.get(entry.module.split(".")[-1], {})
    checks = [*behaviour.check(entry.model_copy(update={"config": {**entry.config, **small}}))]
    assert [each for each in checks if each[1]] == []
    assert len(checks) == 6


HEAD = """
import random, socket
from pathlib import Path
from harness.benchmarks.prepare import load_items
from harness.files import Declaration
from harness.training.loop import Learned

class Config(Declaration): pass

def build(setting, config): return Router(setting)

class Router:
    def __init__(self, setting): self.pool, self.seen = list(setting.pool), 0
    async def solve(self, item, context): return await context.ask_question(self.pool[0])
    utility = lambda self, answered: float(answered.verdict.correct)
    async def fit(self, training): return await training.outcomes()
"""
SOLVE = "    async def solve(self, item, context):\n        "
ASK = "return await context.ask_question(self.pool"
ASKS = "ask_question(self.pool[0])"
FIT, ENDS = "    async def fit(self, training):\n        ", "        return Learned({}, {})\n"
BROKEN = {
    "asks outside": (f"{SOLVE}socket.create_connection(('127.0.0.1', 9), 1)\n", "opens a connection"),
    "writes elsewhere": (f"{SOLVE}Path('seen').write_text('')\n        {ASK}[0])", "it writes /.*seen"),
    "keeps state": (f"{SOLVE}self.seen += 1\n        {ASK}[self.seen % 2])", "without one question, others get"),
    "random": (f"{SOLVE}{ASK}[random.random() > 0.5])", "draw random numbers with context.uniform"),
    "reads tests": (f"{FIT}self.known = load_items('gsm_hard', 'embedded')\n{ENDS}", "it reads .*gsm_hard.jsonl;"),
    "reads gold": (f"{SOLVE}{ASK}[float(item.gold) > 100])", "do not read item.gold"),
    "crashes on an empty reply": (
        f"{SOLVE}text = await context.ask_question(self.pool[0])\n        return text.splitlines()[0]",
        r"cut off or long .*: IndexError: list index out of range \(broken.py, line \d+\)",
    ),
    "does not charge": (f"{FIT}await training.runtime.context(training.items[0]).{ASKS}\n{ENDS}", "1 calls are in no "),
    "learns nothing": (f"{FIT}pass", "fit of broken returned a NoneType; return Learned"),
    "is no coroutine": ("    def solve(self, item, context): return ''", "is no coroutine; define it with `async def`"),
    "returns no text": (f"{SOLVE}return 5", "solve of broken returned a int; expected the answer's text"),
    "names another backbone": (f"{SOLVE}return await context.ask_question('lama')", "unknown backbone 'lama'"),
}  # fmt: skip


@pytest.fixture
def broken(folder: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """Write a module with a broken method, and its entry."""
    monkeypatch.setattr(behaviour, "_TEMPORARY", "/nowhere")
    Path("broken.py").write_text(HEAD + BROKEN[request.param][0])
    trained = str("fit" in BROKEN[request.param][0]).lower()
    Path("methods.yaml").write_text(f"broken: {{module: broken, title: B, rows: pool, trained: {trained}}}")
    monkeypatch.setattr(sys, "path", [*sys.path])
    sys.modules.pop("broken", None)  # that of another case
    return folder / "methods.yaml"


@pytest.mark.parametrize(("broken", "said"), [(key, said) for key, (_, said) in BROKEN.items()], indirect=["broken"])
def test_a_broken_method_is_caught(broken: Path, said: str) -> None:
    ended = gmr("test", str(broken))
    assert ended.exit_code == 1
    failed = [line for line in ended.output.splitlines() if not line.endswith(": passed")]
    assert re.search(said, failed[0]), ended.output


ROLE = """
roles:
  Math/Surveyor: {description: You measure., instruction: Measure twice., sees: plain, output: answer, tool: none,
    second_call: null}
surveyor: {extends: gmr, title: S, config: {roles: [Math/Surveyor], epochs: {default: 0}, max_depth: 1}}
"""


def test_roles_of_a_file_are_used_by_its_methods_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roles, "FURTHER", {})
    Path("mine.yaml").write_text(ROLE)
    assert gmr("test", "mine.yaml").exit_code == 0
    run = resolve("smoke", {"extra": "mine.yaml"})
    of_own, of_shipped = (run.cell(Cell(key, "gsm_hard", "pool", 0)).settings for key in ("surveyor", "gmr"))
    assert (list(of_own["roles"]), "roles" in of_shipped) == (["Math/Surveyor"], False)
    assert len(roles.catalogue()) == 26
