"""``gmr test``: the methods of the suite pass, and a broken method fails at the check of what it breaks."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from cli import behaviour
from harness.agents import roles
from harness.runner import config
from harness.runner.layout import Cell
from harness.runner.preset import resolve
from tests.command import gmr

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
