"""Calibration of the simulated backbones: a file that, with its questions, fixes every reply."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import orjson

from harness.benchmarks import benchmark as find_benchmark
from harness.benchmarks.items import Item, checksum
from harness.benchmarks.prepare import Prepared
from harness.errors import UserError, making
from harness.files import Declaration, Many, check
from harness.simulator.contributions import POOL_SIZE, Answers, QuestionIndex, WrongProgram
from harness.simulator.parameters import EngineParameters, Parameters, Style


class SimulatedBackbone(Declaration):
    """Simulated backbone; requests may name it by ``key`` or ``model``."""

    key: str
    model: str
    parameters_b: float
    context_length: int


class Fit(Declaration):
    """Fitted values of one benchmark."""

    ability: Mapping[str, float]  # by backbone, on the scale of difficulty
    style: Mapping[Style, Mapping[str, float]]  # by style and backbone, in logits relative to a direct prompt
    accuracy: Mapping[str, float]  # by backbone, published share of right answers to direct prompts


class BenchmarkCalibration(Declaration):
    """Calibration to one benchmark."""

    checksum: str  # of its questions
    fit: Fit
    tokens: Mapping[Style, Mapping[str, float]]  # mean completion tokens of a solving turn, before scaling
    floors: Many[int]  # order statistics of the tokens that an answer alone takes
    right: Mapping[str, str]  # by item id, reference programs as replies give them
    wrong: Mapping[str, Many[WrongProgram]]  # by item id, programs known to fail


class CalibrationFile(Declaration):
    """Content of ``calibration.json``."""

    format: Literal[2] = 2
    parameters: Parameters
    engine: EngineParameters
    backbones: Many[SimulatedBackbone]
    benchmarks: Mapping[str, BenchmarkCalibration]


class Calibration:
    """Calibration file, its bytes (``content``) and SHA-256 (``fingerprint``), with its questions."""

    def __init__(self, file: CalibrationFile, questions: Mapping[str, Sequence[Item]]) -> None:
        self.parameters, self.engine = file.parameters, file.engine
        self.backbones, self.benchmarks = file.backbones, file.benchmarks
        self.content = orjson.dumps(file.model_dump(), option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2)
        self.fingerprint = hashlib.sha256(self.content).hexdigest()
        self.index = QuestionIndex(item for key in sorted(questions) for item in questions[key])
        self._answers: dict[tuple[str, str], Answers] = {}

    def answers(self, item: Item) -> Answers:
        """Return the right answer and the wrong ones of a question."""
        key = item.benchmark, item.id
        if key not in self._answers:
            self._answers[key] = _answers(item, self.benchmarks[item.benchmark])
        return self._answers[key]

    @classmethod
    def load(cls, path: Path, pools: Mapping[str, Prepared]) -> Calibration:
        """Read a calibration for prepared questions; UserError if it is missing, damaged or made for others."""
        cure = "delete it and calibrate again"
        try:
            file: CalibrationFile = check(orjson.loads(path.read_bytes()), CalibrationFile, "calibration")
        except OSError as why:
            raise UserError(f"{path} cannot be read ({why.strerror})", making(path)) from why
        except (orjson.JSONDecodeError, UserError) as error:
            raise UserError(f"{path} is damaged ({error}); {cure}") from error
        for key, pool in pools.items():
            if key not in file.benchmarks:
                raise UserError(f"{path} knows {', '.join(sorted(file.benchmarks))} but not {key}; {cure}")
            if checksum(pool.pool) != file.benchmarks[key].checksum:
                raise UserError(f"{path} was made for other questions of {key}; {cure}")
        return cls(file, {key: pool.pool for key, pool in pools.items()})


def _answers(item: Item, calibration: BenchmarkCalibration) -> Answers:
    benchmark = find_benchmark(item.benchmark)
    if item.code is None:
        wrong = benchmark.wrong_answers(item)[:POOL_SIZE]
        return Answers(item, benchmark, item.gold, wrong, [False] * len(wrong))
    programs = calibration.wrong[item.id]
    sources = [program.source for program in programs]
    return Answers(
        item, benchmark, calibration.right[item.id], sources, [program.passes_visible for program in programs]
    )
