"""Calibrate the simulated backbones of a preset."""

from __future__ import annotations

from harness.benchmarks.prepare import read
from harness.files import ROOT, write_atomically
from harness.llm.backbones import load as load_backbones
from harness.runner import layout
from harness.runner.config import Preset
from harness.sandbox import Limits, Sandbox
from harness.simulator import Calibration, build
from harness.simulator.parameters import load_settings


async def calibrate(preset: Preset) -> None:
    """Calibrate the simulated backbones to a preset's questions and write ``calibration.json``.

    A preset that changes a parameter takes the wrong programs of the calibration as stated: no parameter affects them,
    and trying them takes nearly all of the time.

    Raises:
        UserError: The questions or the calibration as stated are missing, or the parameters do not cover the questions.
    """
    pools = {key: read(layout.manifest(preset.name, key), layout.items(preset.name, key)) for key in preset.benchmarks}
    settings = load_settings(overrides=preset.simulator)
    # All backbones, not the preset's alone: a backbone more or less in a preset then changes no calibration.
    backbones = load_backbones(ROOT / "config" / "backbones.yaml")
    if preset.simulator:
        stated = Calibration.load(layout.calibration(layout.base(preset.name)), pools)
        calibration = build.calibration_of(pools, settings, backbones, stated.benchmarks)
    else:
        async with Sandbox(Limits(cpu_s=build.TRIAL_S)) as sandbox:
            calibration = await build.build_calibration(pools, settings, backbones, sandbox)
    write_atomically(layout.calibration(preset.name), calibration.content)
