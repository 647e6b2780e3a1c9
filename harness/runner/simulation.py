"""Simulated backbones of a preset: calibrate them, open them in this process, compare them with a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness.benchmarks.prepare import Prepared, read
from harness.errors import UserError
from harness.files import digest, write_atomically
from harness.fingerprint import fingerprint_of
from harness.llm import endpoints
from harness.llm.backbones import load as load_backbones
from harness.llm.request import Served
from harness.runner import config, config_hash, layout
from harness.runner.config import Preset

if TYPE_CHECKING:
    from harness.simulator import SimulatedEndpoint

# Files that decide the calibration, besides questions and published numbers.
CODE = (
    "harness/benchmarks",
    "harness/agents/rng.py",
    "harness/llm/backbones.py",
    "harness/llm/encoder.py",
    "harness/runner/simulation.py",
    "harness/sandbox",
    "harness/simulator",
    "config/backbones.yaml",
    "config/encoder.yaml",
    "config/simulator.yaml",
)


def _pools(preset: Preset) -> dict[str, Prepared]:
    return {key: read(layout.manifest(preset.name, key), layout.items(preset.name, key)) for key in preset.benchmarks}


async def calibrate(preset: Preset) -> None:
    """Calibrate the simulated backbones to a preset's questions and write ``calibration.json``.

    Raises:
        UserError: if the questions are missing or do not fit.
    """
    from harness.sandbox import Limits, Sandbox
    from harness.simulator import build
    from harness.simulator.parameters import load_settings

    pools, settings = _pools(preset), load_settings()
    # All backbones of the project, so that the calibration does not depend on those of the preset.
    backbones = load_backbones(config.FOLDER / "backbones.yaml")
    async with Sandbox(Limits(cpu_s=build.TRIAL_S)) as sandbox:
        calibration = await build.build_calibration(pools, settings, backbones, sandbox)
    write_atomically(layout.calibration(preset.name), calibration.content)
    config_hash.note_made_of(layout.made_of(preset.name, "calibration"), made_of())


def made_of() -> str:
    """Return the digest of all that decides a calibration besides the questions."""
    from harness.simulator.parameters import load_settings

    settings = load_settings()
    # Other published numbers do not change the calibration.
    targets = [settings.accuracy, {key: cost.model_dump() for key, cost in settings.cost.items()}]
    return digest([targets, fingerprint_of(*CODE)])


def simulated_endpoint(preset: Preset) -> SimulatedEndpoint:
    """Open the simulated backbones of a preset, for all its benchmarks."""
    from harness.simulator import Calibration, SimulatedEndpoint

    calibration = Calibration.load(layout.calibration(preset.name), _pools(preset))
    return SimulatedEndpoint(calibration, length_scale=preset.length_scale)


def check_calibration(preset: Preset, served: Mapping[str, Served]) -> None:
    """Raise a UserError if a server simulates with another calibration, code or length than this process would."""
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
