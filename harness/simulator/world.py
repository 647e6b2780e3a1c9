"""A calibrated world: one file that, with the questions it was made for, fixes every reply."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import orjson

from harness.benchmarks import Benchmark
from harness.benchmarks import benchmark as find_benchmark
from harness.benchmarks.items import Item, checksum
from harness.errors import UserError
from harness.files import write_atomically
from harness.simulator.answers import POOL_SIZE, Answers, WrongProgram
from harness.simulator.calibrate import Calibration
from harness.simulator.index import QuestionIndex
from harness.simulator.parameters import Settings, Style, settings_from

FORMAT = 1


class Pool(Protocol):
    """The prepared questions of one benchmark."""

    @property
    def pool(self) -> Sequence[Item]:
        """Every question that may be asked."""

    @property
    def test(self) -> Sequence[Item]:
        """The questions whose mean accuracy is calibrated."""


@dataclass(frozen=True)
class SimulatedBackbone:
    """What an endpoint needs to know of a backbone.

    Attributes:
        key: Name in configuration.
        model: Name at the server; requests may use either.
        parameters_b: Billions of parameters.
        context_length: Longest prompt plus completion, in tokens.
    """

    key: str
    model: str
    parameters_b: float
    context_length: int


@dataclass(frozen=True)
class BenchmarkWorld:
    """What a world knows of one benchmark.

    Attributes:
        checksum: Of the questions the world was made for.
        calibration: Abilities and style effects.
        tokens: Mean completion tokens of a solving turn by style and backbone, before scaling.
        floors: Order statistics of the tokens that an answer alone takes.
        right: By item id, reference programs as replies give them (programs only).
        wrong: By item id, programs known to fail (programs only).
    """

    checksum: str
    calibration: Calibration
    tokens: Mapping[Style, Mapping[str, float]]
    floors: Sequence[int]
    right: Mapping[str, str]
    wrong: Mapping[str, Sequence[WrongProgram]]


class World:
    """Everything an endpoint answers from.

    Args:
        settings: Parameters and recognition phrases.
        backbones: The pool.
        benchmarks: Calibrated benchmarks by key.
        questions: The questions of each benchmark.
    """

    def __init__(
        self,
        settings: Settings,
        backbones: Sequence[SimulatedBackbone],
        benchmarks: Mapping[str, BenchmarkWorld],
        questions: Mapping[str, Sequence[Item]],
    ) -> None:
        self.settings = settings
        self.backbones = tuple(backbones)
        self.benchmarks = benchmarks
        self.index = QuestionIndex(item for key in sorted(questions) for item in questions[key])
        self._answers: dict[tuple[str, str], Answers] = {}

    def answers(self, item: Item) -> Answers:
        """The right answer and the pool of wrong ones of a question."""
        key = item.benchmark, item.id
        if key not in self._answers:
            self._answers[key] = _answers(item, find_benchmark(item.benchmark), self.benchmarks[item.benchmark])
        return self._answers[key]

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the content of the world's file."""
        return hashlib.sha256(self.to_json()).hexdigest()

    def to_json(self) -> bytes:
        """The content of the world's file."""
        record = {
            "format": FORMAT,
            "settings": self.settings.document,
            "backbones": self.backbones,
            "benchmarks": self.benchmarks,
        }
        return orjson.dumps(record, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2)

    def save(self, path: Path) -> None:
        """Write the world's file, whole or not at all."""
        write_atomically(path, self.to_json())

    @classmethod
    def load(cls, path: Path, pools: Mapping[str, Pool]) -> World:
        """Read a world and bind it to its questions.

        Args:
            path: File written by :meth:`save`.
            pools: The prepared questions of the benchmarks to be asked.

        Raises:
            UserError: There is no such file, it is not a world, or it was made for other questions.
        """
        record = _read(path)
        try:
            world = cls(
                settings_from(record["settings"], str(path)),
                [SimulatedBackbone(**entry) for entry in record["backbones"]],
                {key: _benchmark_world(entry) for key, entry in record["benchmarks"].items()},
                {key: pool.pool for key, pool in pools.items()},
            )
        except (KeyError, TypeError) as error:
            raise UserError(f"{path} is not a complete world ({error}); delete it and calibrate again") from error
        _check_questions(world, pools, path)
        return world


def _answers(item: Item, benchmark: Benchmark, known: BenchmarkWorld) -> Answers:
    if item.code is None:
        wrong = benchmark.wrong_answers(item)[:POOL_SIZE]
        return Answers(item, benchmark, item.gold, wrong, [False] * len(wrong))
    programs = known.wrong[item.id]
    sources = [program.source for program in programs]
    return Answers(item, benchmark, known.right[item.id], sources, [program.passes_visible for program in programs])


def _read(path: Path) -> dict[str, Any]:
    try:
        record = orjson.loads(path.read_bytes())
    except OSError as error:
        raise UserError(
            f"{path} cannot be read ({error.strerror}); make it with `snakemake --cores all {path}`"
        ) from error
    except orjson.JSONDecodeError as error:
        raise UserError(f"{path} is not JSON ({error}); delete it and calibrate again") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise UserError(f"{path} is not a world of format {FORMAT}; delete it and calibrate again")
    return record


def _benchmark_world(entry: Mapping[str, Any]) -> BenchmarkWorld:
    wrong = {key: [WrongProgram(**program) for program in pool] for key, pool in entry["wrong"].items()}
    return BenchmarkWorld(**{**entry, "calibration": Calibration(**entry["calibration"]), "wrong": wrong})


def _check_questions(world: World, pools: Mapping[str, Pool], path: Path) -> None:
    for key, pool in pools.items():
        if key not in world.benchmarks:
            made = ", ".join(sorted(world.benchmarks))
            raise UserError(f"{path} knows {made} but not {key}; delete it and calibrate again")
        found = checksum(pool.pool)
        if found != world.benchmarks[key].checksum:
            raise UserError(
                f"{path} was made for other questions of {key} (checksum {world.benchmarks[key].checksum[:12]}, "
                f"these have {found[:12]}); delete it and calibrate again"
            )
