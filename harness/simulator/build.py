"""Calibrate the simulated backbones to the questions of a run, and find wrong programs.

Wrong programs are mutants of a reference program that failed in the sandbox. One confined process tries many of them:
the reference is known to be harmless, and no model wrote any.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np

from harness.benchmarks import Benchmark
from harness.benchmarks import benchmark as find_benchmark
from harness.benchmarks.code_grading import canonical, task_of
from harness.benchmarks.items import CodeTask, Item, checksum
from harness.benchmarks.prepare import Prepared
from harness.concurrency import gather
from harness.errors import UserError
from harness.llm.backbones import Backbone
from harness.sandbox import Outcome, Program, Sandbox
from harness.simulator import tokens
from harness.simulator.calibration import BenchmarkCalibration, Calibration, CalibrationFile, Fit, SimulatedBackbone
from harness.simulator.contributions import POOL_SIZE, WrongProgram
from harness.simulator.parameters import STYLES, Settings, Style
from harness.simulator.response_model import affinity, difficulty, solve

logger = logging.getLogger(__name__)

# Questions whose programs are tried at the same time; the sandbox has its own limit on processes.
_IN_FLIGHT = 8
_LOG_EVERY = 200
# Processor seconds for all variants of a question, each of which has its own, much shorter limit.
TRIAL_S = 5
# For one variant. A wrong program is graded again with every reply that holds it, so it has to fail fast.
_VARIANT_S = 0.2
# Leaves two letters for every variant, the outcomes of all its checks and of the visible ones: p for passed, f for
# failed, s for slow.
_TRIAL = f"""
import contextlib, io, signal

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
        return "p"
    except OutOfTime:
        return "s"
    except BaseException:
        return "f"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)

signal.signal(signal.SIGVTALRM, give_up)
results = "".join(attempt(setup, source, checks) + attempt(setup, source, visible) for source in sources)
"""


class Programs(NamedTuple):
    """Programs for replies by item id, as in :class:`BenchmarkCalibration`."""

    right: dict[str, str]  # reference programs, without comments and docstrings if they pass without them
    wrong: dict[str, tuple[WrongProgram, ...]]  # one to four each that fail quickly, most plausible first


async def build_calibration(
    pools: Mapping[str, Prepared], settings: Settings, backbones: Mapping[str, Backbone], sandbox: Sandbox
) -> Calibration:
    """Calibrate to prepared questions, reproducibly; UserError if a number is missing or the sandbox is broken."""
    logger.info("calibrating the simulated backbones; questions that ask for programs take the longest")
    calibrations = {}
    for key, pool in sorted(pools.items()):
        benchmark, programs = find_benchmark(key), await _programs_of(key, pool.pool, sandbox)
        question_tokens = fmean(tokens.count(item.question) for item in pool.pool)
        answers = (benchmark.present(item, programs.right.get(item.id, item.gold)) for item in pool.test)
        lengths = sorted(map(tokens.count, answers))
        calibrations[key] = BenchmarkCalibration(
            checksum=checksum(pool.pool),
            fit=fit_benchmark(key, pool.test, list(backbones), settings),
            tokens={style: mean_tokens(settings, key, style, backbones, question_tokens) for style in STYLES},
            floors=tuple(lengths[int((place + 0.5) / _QUANTILES * len(lengths))] for place in range(_QUANTILES)),
            right=programs.right,
            wrong=programs.wrong,
        )
        logger.info("%s: calibrated on %d test questions", key, len(pool.test))
    names = set(SimulatedBackbone.model_fields)
    file = CalibrationFile(
        parameters=settings.parameters,
        engine=settings.engine,
        backbones=tuple(SimulatedBackbone(**backbone.model_dump(include=names)) for backbone in backbones.values()),
        benchmarks=calibrations,
    )
    return Calibration(file, {key: pool.pool for key, pool in pools.items()})


async def _programs_of(key: str, pool: Sequence[Item], sandbox: Sandbox) -> Programs:
    items = [item for item in pool if item.code is not None]
    slots = asyncio.Semaphore(_IN_FLIGHT)
    right, wrong = programs = Programs({}, {})

    async def prepare(item: Item) -> None:
        async with slots:
            right[item.id], wrong[item.id] = await programs_for(item, find_benchmark(key), sandbox)
        if len(right) % _LOG_EVERY == 0 or len(right) == len(items):
            logger.info("%s: wrong programs found for %d of %d questions", key, len(right), len(items))

    await gather(map(prepare, items))
    return programs


async def programs_for(item: Item, benchmark: Benchmark, sandbox: Sandbox) -> tuple[str, tuple[WrongProgram, ...]]:
    """Try the reference program of a question and its mutants; return the right program and wrong ones."""
    task = task_of(item)
    bare = canonical(item.gold)
    hollow = f"def {task.entry_point}(*args, **kwargs):\n    return None"
    mutants = dict.fromkeys(canonical(mutant) for mutant in benchmark.wrong_answers(item))
    sources = list(dict.fromkeys([bare, *mutants, hollow]))
    outcomes = await _try(sources, task, sandbox)
    if outcomes is None:
        # One of them took the process down; that one counts as slow ("sf"), so it is no wrong program.
        outcomes = [(await _try([source], task, sandbox) or ["sf"])[0] for source in sources]
    results = dict(zip(sources, outcomes, strict=True))
    failing = [
        WrongProgram(source=source, passes_visible=letters[1] == "p" and bool(task.visible))
        for source, letters in results.items()
        if letters[0] == "f" and source != bare
    ]
    right = bare if results[bare].startswith("p") else item.gold
    # For checks that even the empty function passes, it is the wrong answer all the same.
    return right, tuple(_select(failing)) or (WrongProgram(source=hollow, passes_visible=False),)


def _select(failing: Sequence[WrongProgram]) -> list[WrongProgram]:
    """Return the first few programs, the last replaced by the first that passes the visible examples, if any does."""
    first = list(failing[:POOL_SIZE])
    deceptive = next((program for program in failing if program.passes_visible), None)
    if deceptive is not None and deceptive not in first:
        first[-1] = deceptive
    return first


async def _try(sources: Sequence[str], task: CodeTask, sandbox: Sandbox) -> list[str] | None:
    """Return the two letters of each program (see ``_TRIAL``), or None if the trial did not end."""
    values = {"sources": list(sources), "setup": task.setup, "checks": task.checks, "visible": "\n".join(task.visible)}
    trial = "".join(f"{name} = {value!r}\n" for name, value in values.items()) + _TRIAL
    execution = await sandbox.run(Program(trial, show="results"))
    if execution.outcome in (Outcome.SANDBOX_ERROR, Outcome.WALL_LIMIT):
        raise UserError(
            f"the sandbox cannot try programs now ({execution.outcome}: {execution.detail}); fix the cause or wait "
            "until the machine is less busy, then give the same command again"
        )
    letters = execution.shown
    return None if letters is None else [letters[place : place + 2] for place in range(0, len(letters), 2)]


# Far below any sampling error, and coarse enough to hide the last bits of a processor's exponential.
_DECIMALS = 6
_QUANTILES = 21


def fit_benchmark(benchmark: str, items: Sequence[Item], backbones: Sequence[str], settings: Settings) -> Fit:
    """Fit abilities and effects of styles to the test questions; UserError without questions or a published number."""
    if not items:
        raise UserError(f"{benchmark} has no test questions to calibrate on; raise limit: {{test: ...}}")
    published, values = _accuracies(benchmark, backbones, settings), settings.parameters
    hardness = np.array([difficulty(item.question, item.difficulty, values) for item in items])
    logits = {
        key: np.array([affinity(item.question, key, values) for item in items]) - values.slope * hardness
        for key in backbones
    }
    ceiling = 1 - values.unparsable_share
    ability = {key: _solve(logits[key], published["direct"][key] / ceiling) / values.slope for key in backbones}
    style = {}
    for name in STYLES[1:]:
        shares = published[name].items()
        effects = {key: _solve(logits[key] + values.slope * ability[key], share / ceiling) for key, share in shares}
        average = fmean(effects.values()) if effects else 0.0
        style[name] = _rounded({key: effects.get(key, average) for key in backbones})
    return Fit(ability=_rounded(ability), style=style, accuracy=published["direct"])


def _accuracies(benchmark: str, backbones: Sequence[str], settings: Settings) -> dict[Style, dict[str, float]]:
    table = settings.accuracy.get(benchmark)
    missing = [key for key in backbones if table is not None and key not in table["direct"]]
    if table is None or missing:
        what = f"{missing[0]!r} on {benchmark!r}" if missing else repr(benchmark)
        where = f"stated_accuracy > {benchmark} > direct" if missing else "stated_accuracy"
        raise UserError(f"no accuracy to calibrate {what} to; add it to {where} in config/simulator.yaml")
    return {style: {key: row[key] / 100 for key in backbones if key in row} for style, row in table.items()}


def _solve(logits: np.ndarray, share: float) -> float:
    return solve(lambda shift: float(np.mean(1 / (1 + np.exp(-(logits + shift))))), share, -40.0, 40.0, 60)


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {key: round(value, _DECIMALS) for key, value in values.items()}


def mean_tokens(
    settings: Settings, benchmark: str, style: Style, backbones: Mapping[str, Backbone], question_tokens: float
) -> dict[str, float]:
    """Return the mean completion tokens of a solving turn by backbone, for questions of a mean length."""
    if loan := settings.borrowed_length.get(benchmark):
        lent = mean_tokens(settings, loan.lender, style, backbones, loan.question_tokens)
        return {key: loan.factor * mean for key, mean in lent.items()}
    if assumed := settings.assumed_length.get(benchmark):
        return dict.fromkeys(backbones, getattr(assumed, style))
    if benchmark not in settings.cost:
        raise UserError(
            f"no reply length is stated for benchmark {benchmark!r}; add it to stated_cost, borrowed_length or "
            "assumed_length in config/simulator.yaml"
        )
    direct = _from_cost(settings, benchmark, "direct", backbones, question_tokens)
    styled = _from_cost(settings, benchmark, style, backbones, question_tokens)
    added = fmean(styled[key] - direct[key] for key in styled if key in direct)
    return {key: styled.get(key, direct[key] + added) for key in backbones}


def _from_cost(
    settings: Settings, benchmark: str, style: Style, backbones: Mapping[str, Backbone], question_tokens: float
) -> dict[str, float]:
    table, values = settings.cost[benchmark], settings.parameters
    rules = tokens.count(find_benchmark(benchmark).output_rules)
    prompt = question_tokens + (
        rules + values.style_prompt_tokens[style] + values.message_tokens + values.prompt_tokens
    )
    return {
        key: (cost / table.n * 1e6 - prompt * backbones[key].price_in) / backbones[key].price_out
        for key, cost in getattr(table, style).items()
        if key in backbones
    }
