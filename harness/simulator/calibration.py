"""The calibration of the simulated backbones: a file that, with its questions, fixes every reply."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import orjson

from harness.benchmarks import benchmark as find_benchmark
from harness.benchmarks.items import Item, checksum
from harness.benchmarks.prepare import Prepared
from harness.errors import UserError
from harness.files import Declaration, Many, check
from harness.simulator.contributions import POOL_SIZE, Answers, WrongProgram
from harness.simulator.fit import Fit
from harness.simulator.parameters import EngineParameters, Parameters, Style

# A question of at least block + stride - 1 characters contains a whole block at some position that is a multiple of the
# stride, wherever in a prompt it begins.
_BLOCK, _STRIDE = 24, 6


class Occurrence(NamedTuple):
    """A question inside a text, and where it begins and ends there."""

    item: Item
    start: int
    end: int


class QuestionIndex:
    """Finds questions in prompts, in time that hardly grows with their number; of equal ones, the first."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items: dict[str, Item] = {}
        for item in items:
            self._items.setdefault(item.question.strip(), item)
        self._items.pop("", None)
        self._blocks: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self._short: list[str] = []
        for question in sorted(self._items, key=len, reverse=True):
            if len(question) < _BLOCK + _STRIDE - 1:
                self._short.append(question)
                continue
            for offset in range(_STRIDE):
                self._blocks[question[offset : offset + _BLOCK]].append((question, offset))

    def find(self, text: str) -> Occurrence | None:
        """The longest question that occurs in a text, at its first occurrence; ``None`` without one."""
        best, start = "", -1
        for position in range(0, len(text) - _BLOCK + 1, _STRIDE):
            for question, offset in self._blocks.get(text[position : position + _BLOCK], ()):
                if len(question) <= len(best):
                    break
                if position >= offset and text.startswith(question, position - offset):
                    best, start = question, position - offset
                    break
        if not best:
            best = next((question for question in self._short if question in text), "")
            start = text.find(best)
        return Occurrence(self._items[best], start, start + len(best)) if best else None


class SimulatedBackbone(Declaration):
    """A backbone as the endpoint knows it; requests may name it by ``key`` or ``model``."""

    key: str
    model: str
    parameters_b: float
    context_length: int


class BenchmarkCalibration(Declaration):
    """The calibration to one benchmark."""

    checksum: str  # of the questions the calibration was made for
    fit: Fit
    tokens: Mapping[Style, Mapping[str, float]]  # mean completion tokens of a solving turn, before scaling
    floors: Many[int]  # order statistics of the tokens that an answer alone takes
    right: Mapping[str, str]  # by item id, reference programs as replies give them
    wrong: Mapping[str, Many[WrongProgram]]  # by item id, programs known to fail


class CalibrationFile(Declaration):
    """The content of ``calibration.json``."""

    format: Literal[2] = 2
    parameters: Parameters
    engine: EngineParameters
    backbones: Many[SimulatedBackbone]
    benchmarks: Mapping[str, BenchmarkCalibration]


class Calibration:
    """The calibrated simulator: a file and, by benchmark, the questions that fix every reply together with it.

    ``content`` are the bytes of the file, ``fingerprint`` their SHA-256.
    """

    def __init__(self, file: CalibrationFile, questions: Mapping[str, Sequence[Item]]) -> None:
        self.parameters, self.engine = file.parameters, file.engine
        self.backbones, self.benchmarks = file.backbones, file.benchmarks
        self.content = orjson.dumps(file.model_dump(), option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2)
        self.fingerprint = hashlib.sha256(self.content).hexdigest()
        self.index = QuestionIndex(item for key in sorted(questions) for item in questions[key])
        self._answers: dict[tuple[str, str], Answers] = {}

    def answers(self, item: Item) -> Answers:
        """The right answer and the pool of wrong ones of a question."""
        key = item.benchmark, item.id
        if key not in self._answers:
            self._answers[key] = _answers(item, self.benchmarks[item.benchmark])
        return self._answers[key]

    @classmethod
    def load(cls, path: Path, pools: Mapping[str, Prepared]) -> Calibration:
        """Read a calibration and bind it to the prepared questions of the benchmarks to be asked.

        Raises:
            UserError: There is no such file, it is not a calibration, or it was made for other questions.
        """
        again = "delete it and calibrate again"
        try:
            file: CalibrationFile = check(orjson.loads(path.read_bytes()), CalibrationFile, "calibration")
        except OSError as error:
            raise UserError(
                f"{path} cannot be read ({error.strerror}); make it with `snakemake --cores all {path}`"
            ) from error
        except (orjson.JSONDecodeError, UserError) as error:
            raise UserError(f"{path} is damaged ({error}); {again}") from error
        for key, pool in pools.items():
            if key not in file.benchmarks:
                raise UserError(f"{path} knows {', '.join(sorted(file.benchmarks))} but not {key}; {again}")
            if checksum(pool.pool) != file.benchmarks[key].checksum:
                raise UserError(f"{path} was made for other questions of {key}; {again}")
        return cls(file, {key: pool.pool for key, pool in pools.items()})


def _answers(item: Item, known: BenchmarkCalibration) -> Answers:
    benchmark = find_benchmark(item.benchmark)
    if item.code is None:
        wrong = benchmark.wrong_answers(item)[:POOL_SIZE]
        return Answers(item, benchmark, item.gold, wrong, [False] * len(wrong))
    programs = known.wrong[item.id]
    sources = [program.source for program in programs]
    return Answers(item, benchmark, known.right[item.id], sources, [program.passes_visible for program in programs])
