"""Simulated backbones: a chat-completions endpoint that answers from a stated response model.

``docs/simulator.md`` states the model, ``config/simulator.yaml`` holds its parameters. What a run on it says about any
method is a rehearsal, never evidence.
"""

from harness.simulator.calibration import Calibration
from harness.simulator.endpoint import SimulatedEndpoint

__all__ = ["Calibration", "SimulatedEndpoint"]
