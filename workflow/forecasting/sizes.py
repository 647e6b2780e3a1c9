"""How large a cell is: its questions, and how often it passes over those of the training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

import orjson

from harness import config, identities, layout
from harness.config import Cell, Preset
from harness.errors import UserError


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a cell.

    Attributes:
        test: Test questions.
        train: Training questions; 0 for a method that does not learn.
        passes: Passes over them; ``None`` where the configuration does not tell.
        searches: Whether it may stop before, so that the passes are a ceiling.
    """

    test: int
    train: int = 0
    passes: int | None = 0
    searches: bool = False


def size_of(preset: Preset, cell: Cell, prepared: str) -> Size:
    """The size a cell has under a preset.

    Args:
        preset: Limits questions and passes.
        cell: The cell.
        prepared: The preset whose prepared questions are counted, where this one has none yet.

    Raises:
        UserError: Neither has prepared the benchmark.
    """
    train, test = (len(ids) for ids in _split(preset, cell.benchmark, prepared))
    entry, limit = config.methods()[cell.method], preset.limit
    questions = limit.count(test, limit.test)
    if not entry.trained:
        return Size(questions)
    passes, searches = _passes(cell)
    bounds = [bound for bound in (passes, limit.epochs) if bound is not None]
    return Size(questions, limit.count(train, limit.train), min(bounds, default=None), searches)


def training_ids(preset: str, benchmark: str) -> frozenset[str]:
    """The training questions of a prepared benchmark.

    Raises:
        UserError: It is not prepared.
    """
    return frozenset(_ids(layout.manifest(preset, benchmark))[0])


def _split(preset: Preset, benchmark: str, prepared: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    own = layout.manifest(preset.name, benchmark)
    other = config.preset(prepared)
    alike = identities.of_data(other) == identities.of_data(preset)
    return _ids(layout.manifest(prepared, benchmark) if alike and not own.exists() else own)


@cache
def _ids(manifest: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    try:
        fields = orjson.loads(manifest.read_bytes())
        return tuple(fields["train"]), tuple(fields["test"])
    except (OSError, ValueError, LookupError) as error:
        raise UserError(
            f"{manifest} is needed to count questions; make it with `snakemake --cores all {manifest}`"
        ) from error


def _passes(cell: Cell) -> tuple[int | None, bool]:
    """Passes over the training questions as configured, and whether they are a ceiling.

    A method is trained for its ``epochs``. One that has ``max_rounds`` instead searches: every round is a pass, the
    first one too. Of any other nothing is known but what was measured.
    """
    entry = config.methods()[cell.method]
    epochs = entry.config.get("epochs")
    if isinstance(epochs, Mapping):
        return int(epochs.get(cell.benchmark, epochs["default"])), False
    # What the entry does not name has its default from the method itself.
    settings = import_module(entry.module).Config(**entry.config)
    rounds = getattr(settings, "max_rounds", None)
    return (None, False) if rounds is None else (1 + int(rounds), True)
