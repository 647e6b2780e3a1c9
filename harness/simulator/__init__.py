"""Simulated backbones (docs/simulator.md): a run on them is a rehearsal, never evidence."""

from harness.simulator.calibration import Calibration
from harness.simulator.endpoint import SimulatedEndpoint

__all__ = ["Calibration", "SimulatedEndpoint"]
