"""``gmr simulate``: the behaviour the server is given."""

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.errors import UserError
from harness.files import ROOT, read
from harness.simulator.server import Faults, ServerBehaviour
from tests.command import gmr

FAULTS = ROOT / "config" / "faults.yaml"


def test_a_server_is_quick_and_faultless_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    served: list[Any] = []
    engine: Any = object()
    endpoint = SimpleNamespace(models=lambda: {"data": []}, calibration=SimpleNamespace(engine=engine))
    monkeypatch.setattr("harness.runner.simulation.simulated_endpoint", lambda preset: endpoint)
    monkeypatch.setattr("harness.simulator.server.serve", lambda *given: served.append(given[1:]))

    simulate = partial(gmr, "simulate", "--preset")
    simulate("smoke")
    simulate("smoke", "--engine", "--faults", str(FAULTS), "--latency", "0.5", "--port", "81", "--host", "::1")
    assert served == [
        ("127.0.0.1", 8000, ServerBehaviour(None, None, 0.0)),
        ("::1", 81, ServerBehaviour(engine, read(FAULTS, Faults), 0.5)),
    ]
    assert "65535" in simulate("smoke", "--port", "99999999").output
    with pytest.raises(UserError, match="preset paper asks real servers"):
        simulate("paper")
    with pytest.raises(UserError, match=r"faults\.yaml: cannot be read"):
        simulate("smoke", "--faults", str(tmp_path / "faults.yaml"))
