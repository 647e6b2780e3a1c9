"""The world of the simulated backbones of a preset."""

from __future__ import annotations

from harness.benchmarks.prepare import read
from harness.files import ROOT, write_atomically
from harness.llm.backbones import load as load_backbones
from harness.runner import layout
from harness.runner.config import Preset
from harness.sandbox import Limits, Sandbox
from harness.simulator import World, build
from harness.simulator.parameters import load_settings


async def build_world_file(preset: Preset) -> None:
    """Calibrate the simulated backbones to a preset's questions and write its world file.

    A preset that changes a parameter takes the wrong programs of the world it changes: no parameter bears on them, and
    trying them is what takes time.

    Raises:
        UserError: The questions or the world to change are missing, or the parameters do not cover the questions.
    """
    pools = {key: read(layout.manifest(preset.name, key), layout.items(preset.name, key)) for key in preset.benchmarks}
    settings = load_settings(overrides=preset.simulator)
    # Every backbone there is: with the preset's own alone, a narrower choice would change the others' world.
    backbones = load_backbones(ROOT / "config" / "backbones.yaml")
    if preset.simulator:
        stated = World.load(layout.world(layout.base(preset.name)), pools)
        world = build.world_of(pools, settings, backbones, build.programs_in(stated))
    else:
        async with Sandbox(Limits(cpu_s=build.TRIAL_S)) as sandbox:
            world = await build.build_world(pools, settings, backbones, sandbox)
    write_atomically(layout.world(preset.name), world.content)
