"""Making a world: calibrate to the questions of a run, verify wrong programs, write one file."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from harness.benchmarks import Benchmark
from harness.benchmarks import benchmark as find_benchmark
from harness.benchmarks.items import Item, checksum
from harness.benchmarks.prepare import read
from harness.files import ROOT
from harness.llm.backbones import Backbone
from harness.llm.backbones import load as load_backbones
from harness.runner import layout
from harness.runner.config import Preset
from harness.sandbox import Limits, Sandbox
from harness.simulator import tokens
from harness.simulator.calibrate import calibrate
from harness.simulator.lengths import mean_tokens, quantiles
from harness.simulator.parameters import STYLES, Settings, load_settings
from harness.simulator.programs import Programs, programs_for
from harness.simulator.world import BenchmarkWorld, Pool, SimulatedBackbone, World

logger = logging.getLogger(__name__)

# Questions whose programs are prepared at the same time; the sandbox has its own limit on processes.
_IN_FLIGHT = 8
_LOG_EVERY = 200
# Enough for all variants of a question, each of which has its own, much shorter limit.
_TRIAL_S = 5


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
        changed_world(layout.world(preset.name), pools, settings, backbones, stated)
        return
    async with Sandbox(Limits(cpu_s=_TRIAL_S)) as sandbox:
        await build_world(layout.world(preset.name), pools, settings, backbones, sandbox)


async def build_world(
    path: Path, pools: Mapping[str, Pool], settings: Settings, backbones: Mapping[str, Backbone], sandbox: Sandbox
) -> World:
    """Calibrate a world and write its file; the same input gives the same bytes.

    Args:
        path: Where the file goes.
        pools: The prepared questions by benchmark.
        settings: Parameters and published numbers.
        backbones: The pool to simulate.
        sandbox: Executes candidate wrong programs.

    Raises:
        UserError: The settings lack a number for a benchmark or backbone.
    """
    logger.info("calibrating the simulated backbones; questions that ask for programs take the longest")
    programs = {key: await _programs(pools[key].pool, find_benchmark(key), sandbox) for key in sorted(pools)}
    return _written(path, pools, settings, backbones, programs)


def changed_world(
    path: Path, pools: Mapping[str, Pool], settings: Settings, backbones: Mapping[str, Backbone], stated: World
) -> World:
    """Calibrate a world under other parameters and write its file, with the programs of a world that is there already.

    Args:
        path: Where the file goes.
        pools: The prepared questions by benchmark.
        settings: The parameters as changed.
        backbones: The pool to simulate.
        stated: A world of the same questions.

    Raises:
        UserError: The settings lack a number for a benchmark or backbone.
    """
    programs = {key: _programs_of(stated.benchmarks[key]) for key in pools}
    return _written(path, pools, settings, backbones, programs)


def _written(
    path: Path,
    pools: Mapping[str, Pool],
    settings: Settings,
    backbones: Mapping[str, Backbone],
    programs: Mapping[str, Mapping[str, Programs]],
) -> World:
    worlds = {key: _benchmark_world(key, pools[key], settings, backbones, programs[key]) for key in sorted(pools)}
    known = [
        SimulatedBackbone(key, backbone.model, backbone.parameters_b, backbone.context_length)
        for key, backbone in backbones.items()
    ]
    world = World(settings, known, worlds, {key: pool.pool for key, pool in pools.items()})
    world.save(path)
    return world


def _benchmark_world(
    key: str, pool: Pool, settings: Settings, backbones: Mapping[str, Backbone], programs: Mapping[str, Programs]
) -> BenchmarkWorld:
    calibration = calibrate(key, pool.test, list(backbones), settings)
    right = {id_: found.right for id_, found in programs.items()}
    question_tokens = fmean(tokens.count(item.question) for item in pool.pool)
    logger.info("%s: calibrated on %d test questions", key, len(pool.test))
    return BenchmarkWorld(
        checksum=checksum(pool.pool),
        calibration=calibration,
        tokens={style: mean_tokens(settings, key, style, backbones, question_tokens) for style in STYLES},
        floors=quantiles([_answer_tokens(item, find_benchmark(key), right) for item in pool.test]),
        right=right,
        wrong={id_: found.wrong for id_, found in programs.items()},
    )


def _answer_tokens(item: Item, benchmark: Benchmark, right: Mapping[str, str]) -> int:
    return tokens.count(benchmark.present(item, right.get(item.id, item.gold)))


def _programs_of(world: BenchmarkWorld) -> dict[str, Programs]:
    return {id_: Programs(right, world.wrong[id_]) for id_, right in world.right.items()}


async def _programs(pool: Sequence[Item], benchmark: Benchmark, sandbox: Sandbox) -> dict[str, Programs]:
    """Programs for the questions that ask for one."""
    items = [item for item in pool if item.code is not None]
    slots = asyncio.Semaphore(_IN_FLIGHT)
    done = 0

    async def one(item: Item) -> Programs:
        nonlocal done
        async with slots:
            found = await programs_for(item, benchmark, sandbox)
        done += 1
        if done % _LOG_EVERY == 0:
            logger.info("%s: wrong programs found for %d of %d questions", benchmark.key, done, len(items))
        return found

    made = await asyncio.gather(*map(one, items))
    if items:
        logger.info("%s: wrong programs found for %d of %d questions", benchmark.key, len(items), len(pool))
    return dict(zip([item.id for item in items], made, strict=True))
