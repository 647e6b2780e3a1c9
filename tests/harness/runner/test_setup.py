"""What confines programs decides which models a runtime is opened for, before any of them is asked."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from harness.benchmarks.prepare import prepare
from harness.errors import UserError
from harness.llm.request import Served
from harness.runner import cell, config, layout
from harness.runner.config import Cell
from harness.runner.plan import Plan, plan
from harness.runner.setup import check_confinement
from harness.sandbox.pool import LEVELS
from tests.fake_encoder import FakeEncoder
from tests.workflow.trained import Backbones

QUESTIONS = 2
REFUSED = r"sandbox level rlimit.*real models write \(qwen-2.5-14B\).*gmr sandbox.*Linux"


class Owned(Backbones):
    """Backbones that say who serves them."""

    def __init__(self, owner: str) -> None:
        super().__init__()
        self._owner = owner

    def served(self, model: str) -> Served:
        return Served(model, self._owner)


@pytest.fixture
def chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """A cell whose questions need no program, to be run where only the weakest level works."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("harness.runner.setup.SentenceEncoder", FakeEncoder)
    monkeypatch.setattr("harness.sandbox.pool.best_level", lambda: "rlimit")
    prepare("gsm_hard", "embedded", "official", layout.items("smoke", "gsm_hard"), layout.manifest("smoke", "gsm_hard"))
    preset = config.preset("smoke", {"limit": {"test": QUESTIONS}})
    return plan(preset, Cell("cot", "gsm_hard", "qwen-2.5-14B", 0))


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if "sandbox level" in record.message]


def serve(owner: str, monkeypatch: pytest.MonkeyPatch) -> Owned:
    endpoint = Owned(owner)
    monkeypatch.setattr("harness.runner.setup.simulated_endpoint", lambda preset: endpoint)
    return endpoint


def test_a_real_model_is_refused_before_it_is_asked(chosen: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = serve("vllm", monkeypatch)
    with pytest.raises(UserError, match=REFUSED) as caught:
        asyncio.run(cell.run(chosen))
    assert "\n" not in str(caught.value)
    assert endpoint.asked == 0
    assert not (chosen.folder / "run.json").exists()


def test_simulated_ones_go_on_with_one_warning(
    chosen: Plan, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint = serve("simulated", monkeypatch)
    with caplog.at_level(logging.WARNING):
        result = asyncio.run(cell.run(chosen))
    assert (endpoint.asked, result["sandbox"]) == (QUESTIONS, "rlimit")
    assert len(warnings(caplog)) == 1


def test_the_weakest_level_refuses_one_real_model_and_every_other_takes_all(caplog: pytest.LogCaptureFixture) -> None:
    pool = {"small": Served("org/small", "simulated"), "large": Served("org/large", "vllm")}
    with pytest.raises(UserError, match=r"\(large\)"):
        check_confinement("rlimit", pool)
    for level in LEVELS[:-1]:
        check_confinement(level, pool)
    assert warnings(caplog) == []
