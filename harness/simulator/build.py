"""Making a world: calibrate to the questions of a run, verify wrong programs, write one file.

Wrong programs are mutants of a reference program that the sandbox has seen fail. Many mutants are tried in a single
confined process: the reference is known to be harmless, and nothing that a model wrote is ever tried here.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from harness.benchmarks import Benchmark
from harness.benchmarks import benchmark as find_benchmark
from harness.benchmarks.code_grading import canonical, task_of
from harness.benchmarks.items import CodeTask, Item, checksum
from harness.benchmarks.prepare import Prepared, read
from harness.errors import UserError
from harness.files import ROOT
from harness.llm.backbones import Backbone
from harness.llm.backbones import load as load_backbones
from harness.runner import layout
from harness.runner.config import Preset
from harness.sandbox import Limits, Outcome, Program, Sandbox
from harness.simulator import tokens
from harness.simulator.calibration import calibrate, mean_tokens, quantiles
from harness.simulator.contributions import POOL_SIZE, WrongProgram
from harness.simulator.parameters import STYLES, Settings, load_settings
from harness.simulator.world import BenchmarkWorld, SimulatedBackbone, World

logger = logging.getLogger(__name__)

# Questions whose programs are prepared at the same time; the sandbox has its own limit on processes.
_IN_FLIGHT = 8
_LOG_EVERY = 200
# Enough for all variants of a question, each of which has its own, much shorter limit.
_TRIAL_S = 5
# Processor seconds for one variant. A wrong program is graded again with every reply that holds it, so it must fail
# fast; the limit of the process has to leave room for all variants of a question.
_VARIANT_S = 0.2
_MARK = "-- results --"
_TRIAL = f"""
import contextlib, io, json, signal

class OutOfTime(BaseException):
    pass

def give_up(signum, frame):
    raise OutOfTime

def attempt(*sources):
    names = {{"__name__": "solution"}}
    signal.setitimer(signal.ITIMER_VIRTUAL, {_VARIANT_S})
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            for source in sources:
                exec(compile(source, "<variant>", "exec"), names)
        return "passed"
    except OutOfTime:
        return "slow"
    except BaseException:
        return "failed"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)

signal.signal(signal.SIGVTALRM, give_up)
results = [[attempt(setup, source, checks), attempt(setup, source, visible)] for source in sources]
print({_MARK!r} + json.dumps(results))
"""


class Programs(NamedTuple):
    """The programs that replies to one question hold."""

    right: str  # the reference program, without comments and docstrings where it passes without them too
    wrong: Sequence[WrongProgram]  # one to four that fail quickly, most plausible first


class _Attempt(NamedTuple):
    checks: str  # passed, failed or slow
    passes_visible: bool


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
        known = {key: _known_programs(stated.benchmarks[key]) for key in pools}
        world_of(pools, settings, backbones, known).save(layout.world(preset.name))
        return
    async with Sandbox(Limits(cpu_s=_TRIAL_S)) as sandbox:
        await build_world(layout.world(preset.name), pools, settings, backbones, sandbox)


async def build_world(
    path: Path, pools: Mapping[str, Prepared], settings: Settings, backbones: Mapping[str, Backbone], sandbox: Sandbox
) -> World:
    """Calibrate a world to the prepared questions and write its file; the same input gives the same bytes.

    Raises:
        UserError: The settings lack a number for a benchmark or backbone.
    """
    logger.info("calibrating the simulated backbones; questions that ask for programs take the longest")
    programs = {key: await _tried_programs(key, pools[key].pool, sandbox) for key in sorted(pools)}
    world = world_of(pools, settings, backbones, programs)
    world.save(path)
    return world


def world_of(
    pools: Mapping[str, Prepared],
    settings: Settings,
    backbones: Mapping[str, Backbone],
    programs: Mapping[str, Mapping[str, Programs]],
) -> World:
    """The world of prepared questions and known programs, by benchmark and item id.

    Raises:
        UserError: The settings lack a number for a benchmark or backbone.
    """
    known = [SimulatedBackbone(key, one.model, one.parameters_b, one.context_length) for key, one in backbones.items()]
    worlds = {}
    for key in sorted(pools):
        pool, benchmark = pools[key], find_benchmark(key)
        right = {id_: found.right for id_, found in programs[key].items()}
        question_tokens = fmean(tokens.count(item.question) for item in pool.pool)
        answers = (benchmark.present(item, right.get(item.id, item.gold)) for item in pool.test)
        worlds[key] = BenchmarkWorld(
            checksum=checksum(pool.pool),
            calibration=calibrate(key, pool.test, list(backbones), settings),
            tokens={style: mean_tokens(settings, key, style, backbones, question_tokens) for style in STYLES},
            floors=quantiles([tokens.count(answer) for answer in answers]),
            right=right,
            wrong={id_: found.wrong for id_, found in programs[key].items()},
        )
        logger.info("%s: calibrated on %d test questions", key, len(pool.test))
    return World(settings, known, worlds, {key: pool.pool for key, pool in pools.items()})


def _known_programs(world: BenchmarkWorld) -> dict[str, Programs]:
    return {id_: Programs(right, world.wrong[id_]) for id_, right in world.right.items()}


async def _tried_programs(key: str, pool: Sequence[Item], sandbox: Sandbox) -> dict[str, Programs]:
    """Programs for the questions that ask for one."""
    items = [item for item in pool if item.code is not None]
    slots = asyncio.Semaphore(_IN_FLIGHT)
    done = 0

    async def one(item: Item) -> Programs:
        nonlocal done
        async with slots:
            found = await programs_for(item, find_benchmark(key), sandbox)
        done += 1
        if done % _LOG_EVERY == 0 or done == len(items):
            logger.info("%s: wrong programs found for %d of %d questions", key, done, len(items))
        return found

    made = await asyncio.gather(*map(one, items))
    return dict(zip([item.id for item in items], made, strict=True))


async def programs_for(item: Item, benchmark: Benchmark, sandbox: Sandbox) -> Programs:
    """Try the reference program of a question and its mutants.

    Raises:
        UserError: The sandbox cannot try programs now.
    """
    task = task_of(item)
    bare = canonical(item.gold)
    hollow = f"def {task.entry_point}(*args, **kwargs):\n    return None"
    mutants = dict.fromkeys(canonical(mutant) for mutant in benchmark.wrong_answers(item))
    sources = list(dict.fromkeys([bare, *mutants, hollow]))
    attempts = await _tried(sources, task, sandbox)
    if attempts is None:  # one of them took the process down
        alone = await asyncio.gather(*(_tried([source], task, sandbox) for source in sources))
        attempts = [_Attempt("slow", False) if attempts is None else attempts[0] for attempts in alone]
    results = dict(zip(sources, attempts, strict=True))
    failing = [
        WrongProgram(source, attempt.passes_visible)
        for source, attempt in results.items()
        if attempt.checks == "failed" and source != bare
    ]
    right = bare if results[bare].checks == "passed" else item.gold
    # Nothing satisfies checks that even the empty function passes; it is the wrong answer all the same.
    return Programs(right, _chosen(failing) or [WrongProgram(hollow, passes_visible=False)])


def _chosen(failing: Sequence[WrongProgram]) -> list[WrongProgram]:
    """The first few; a later one that passes the visible examples takes the last place if none of them does."""
    first, later = list(failing[:POOL_SIZE]), failing[POOL_SIZE:]
    deceptive = next((program for program in later if program.passes_visible), None)
    if deceptive is not None and not any(program.passes_visible for program in first):
        first[-1] = deceptive
    return first


async def _tried(sources: Sequence[str], task: CodeTask, sandbox: Sandbox) -> list[_Attempt] | None:
    """How each program did; ``None`` where the trial did not come to its end."""
    visible = "\n".join(task.visible)
    values = {"sources": list(sources), "setup": task.setup, "checks": task.checks, "visible": visible}
    trial = Program("".join(f"{name} = {value!r}\n" for name, value in values.items()) + _TRIAL)
    execution = await sandbox.run(trial)
    if execution.outcome in (Outcome.SANDBOX_ERROR, Outcome.WALL_LIMIT):
        raise UserError(
            f"the sandbox cannot try programs now ({execution.outcome}: {execution.detail}); mend the cause or "
            "give the machine some rest, then give the same command again"
        )
    _, mark, results = execution.stdout.rpartition(_MARK)
    if execution.outcome is not Outcome.PASSED or not mark:
        return None
    return [_Attempt(checks, bool(visible) and shown == "passed") for checks, shown in json.loads(results)]
