"""Simulated backbones of a preset: open them in this process, compare them with a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness.benchmarks.prepare import read
from harness.errors import UserError
from harness.llm import endpoints
from harness.llm.backbones import load as load_backbones
from harness.llm.request import Served
from harness.runner import config, layout
from harness.runner.config import Preset

if TYPE_CHECKING:
    from harness.simulator.endpoint import SimulatedEndpoint


def simulated_endpoint(preset: Preset) -> SimulatedEndpoint:
    """Open the simulated backbones of a preset, for all its benchmarks; UserError if one has no stated skill."""
    from harness.simulator import parameters
    from harness.simulator.endpoint import SimulatedEndpoint

    values = parameters.load()
    for key in preset.backbones:
        values.skill(key)
    # All backbones of the project, so that their revision does not depend on those of the preset.
    declared = load_backbones(config.FOLDER / "backbones.yaml")
    backbones = [backbone for key, backbone in declared.items() if key in values.backbones]
    files = {key: (layout.manifest(preset.name, key), layout.items(preset.name, key)) for key in preset.benchmarks}
    questions = {key: read(*paths).pool for key, paths in files.items()}
    return SimulatedEndpoint(values, backbones, questions, preset.length_scale)


def check_simulator(preset: Preset, served: Mapping[str, Served]) -> None:
    """Raise a UserError if a server simulates other questions, by other code or lengths, than this process would."""
    url = endpoints.simulated_url()
    if not preset.simulated or preset.recorded or url is None:
        return
    expected = simulated_endpoint(preset).revision
    for key, model in served.items():
        if model.revision != expected:
            raise UserError(
                f"{url}, named by {endpoints.SIMULATED_URL}, does not serve {key} as preset {preset.name} does (it has "
                f"revision {model.revision}, expected {expected}); start it with `gmr simulate --preset {preset.name}` "
                "and the same --set, in this checkout"
            )
