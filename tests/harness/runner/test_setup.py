"""What confines programs decides which models a runtime is opened for, before any of them is asked."""

import asyncio
import dataclasses
import logging
from pathlib import Path

import pytest

from harness.benchmarks.prepare import prepare
from harness.errors import UserError
from harness.llm.request import Reply, Request, Served
from harness.runner import cell, config, layout
from harness.runner.config import Cell
from harness.runner.plan import Plan, plan
from harness.runner.setup import check_confinement
from harness.sandbox.pool import LEVELS
from tests.cli.backbones import Backbones
from tests.fake_encoder import FakeEncoder

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
    """Return a cell whose questions need no program, to be run where only the weakest level works."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("harness.runner.setup.SentenceEncoder", FakeEncoder)
    monkeypatch.setattr("harness.sandbox.pool.best_level", lambda: "rlimit")
    prepare("gsm_hard", "embedded", "official", layout.items("smoke", "gsm_hard"), layout.manifest("smoke", "gsm_hard"))
    preset = config.preset("smoke", {"benchmarks": ["gsm_hard"], "limit": {"test": QUESTIONS}})
    return plan(preset, Cell("cot", "gsm_hard", "qwen-2.5-14B", 0))


@pytest.mark.parametrize("owner", ["vllm", "simulated"])
def test_the_weakest_level_is_for_simulated_backbones_alone(
    owner: str, chosen: Plan, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint = Owned(owner)
    chosen = dataclasses.replace(chosen, in_process=endpoint)
    if owner == "vllm":
        with pytest.raises(UserError, match=REFUSED):
            asyncio.run(cell.run(chosen))
        assert endpoint.asked == 0
        assert not (chosen.folder / "run.json").exists()
        return
    with caplog.at_level(logging.WARNING):
        result = asyncio.run(cell.run(chosen))
    assert (endpoint.asked, result["sandbox"]) == (QUESTIONS, "rlimit")
    assert sum("sandbox level" in record.message for record in caplog.records) == 1


class Sampled(Owned):
    """Backbones that keep the temperatures they were asked with."""

    def __init__(self) -> None:
        super().__init__("simulated")
        self.temperatures: set[float] = set()

    def complete(self, request: Request) -> Reply:
        self.temperatures.add(request.temperature)
        return super().complete(request)


@pytest.mark.parametrize("method", ["macnet_chain", "macnet_chain_greedy"])
def test_an_entry_may_decode_greedily_under_a_preset_that_does_not(method: str, chosen: Plan) -> None:
    endpoint = Sampled()
    planned = plan(chosen.preset, Cell(method, "gsm_hard", "qwen-2.5-14B", 0))
    asyncio.run(cell.run(dataclasses.replace(planned, in_process=endpoint)))
    assert (endpoint.temperatures == {0.0}) == (method == "macnet_chain_greedy")


def test_one_real_model_is_enough_to_be_refused_and_a_better_level_takes_all() -> None:
    pool = {"small": Served("org/small", "simulated"), "large": Served("org/large", "vllm")}
    with pytest.raises(UserError, match=r"\(large\)"):
        check_confinement("rlimit", pool)
    for level in LEVELS[:-1]:
        check_confinement(level, pool)
