"""``gmr simulate``: which manners the server is given."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from harness.errors import UserError
from harness.files import ROOT, read
from harness.simulator import server
from harness.simulator.server import Faults, Manners
from workflow.cli import app

ENGINE = object()


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Calls of what would serve until interrupted."""
    calls: list[Any] = []
    calibration = SimpleNamespace(engine=ENGINE)
    endpoint = SimpleNamespace(models=lambda: {"data": []}, calibration=calibration)
    monkeypatch.setattr("harness.runner.setup.simulated_endpoint", lambda preset: endpoint)
    monkeypatch.setattr(server, "serve", lambda *given: calls.append(given[1:]))
    return calls


def simulate(*words: str) -> None:
    CliRunner().invoke(app, ["simulate", "--preset", *words], catch_exceptions=False)


def test_a_server_is_quick_and_faultless_unless_told_otherwise(served: list[Any]) -> None:
    faults = ROOT / "config" / "faults.yaml"
    simulate("smoke")
    simulate("smoke", "--engine", "--faults", str(faults), "--latency", "0.5", "--port", "81", "--host", "::1")
    assert served == [
        ("127.0.0.1", 8000, Manners(None, None, 0.0)),
        ("::1", 81, Manners(ENGINE, read(faults, Faults), 0.5)),  # type: ignore[arg-type]
    ]


def test_what_cannot_be_served_is_refused(served: list[Any], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="preset paper asks real servers"):
        simulate("paper")
    with pytest.raises(UserError, match=r"faults\.yaml: cannot be read"):
        simulate("smoke", "--faults", str(tmp_path / "faults.yaml"))
    assert served == []
