"""Two rows of a run, and what differs between them on every benchmark that both have finished."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from harness import config, layout
from harness.config import Cell, Preset
from harness.errors import UserError, unknown
from paper.comparable import read_comparable
from paper.measures import Key, Measurement, measure
from paper.paired import Comparison, holm
from paper.paired import compare as compare_pair


class Line(NamedTuple):
    """A method and what answers for it: a backbone, or the pool."""

    method: str
    backbone: str

    def __str__(self) -> str:
        return f"{self.method}/{self.backbone}"


@dataclass(frozen=True)
class Pair:
    """Both on one benchmark.

    Attributes:
        first: What the first scored and spent.
        second: What the second did.
        found: The first against the second.
        p_holm: Of the exact test, adjusted after Holm over the benchmarks.
    """

    first: Measurement
    second: Measurement
    found: Comparison
    p_holm: float

    @property
    def right_alone(self) -> tuple[list[str], list[str]]:
        """Ids of the questions that only the first, and only the second, got right, with the first seed of each."""
        first, second = (one.cells[0].items for one in (self.first, self.second))
        both = list(zip(first.item_id, first.correct, second.correct, strict=True))
        return [id_ for id_, a, b in both if a and not b], [id_ for id_, a, b in both if b and not a]


@dataclass(frozen=True)
class Compared:
    """Two rows of a run.

    Attributes:
        preset: The run.
        first: The one.
        second: The other.
        pairs: By benchmark.
    """

    preset: Preset
    first: Line
    second: Line
    pairs: dict[str, Pair]

    @property
    def simulated(self) -> bool:
        """Whether simulated backbones answered; both rows agree in it."""
        return any(pair.first.cells[0].run.simulated for pair in self.pairs.values())


def row(preset: Preset, name: str) -> Line:
    """The row of a name, ``METHOD`` or ``METHOD/BACKBONE``.

    Raises:
        UserError: There is no such method or row, or the method has several and none is named.
    """
    method, slash, backbone = name.partition("/")
    entries = config.methods()
    if method not in entries:
        raise unknown("method", method, entries, "config/methods.yaml")
    rows = [one for one in entries[method].rows if one == config.POOL or one in preset.backbones]
    if slash and backbone not in rows:
        raise unknown("backbone", backbone, rows, f"preset {preset.name}, rows of {method}")
    if not slash and len(rows) != 1:
        raise UserError(f"{method} has the rows {', '.join(rows)}; name one, as in {method}/{rows[-1]}")
    return Line(method, backbone or rows[0])


def compare(preset: Preset, first: Line, second: Line, benchmarks: Sequence[str] | None) -> Compared:
    """Compare two rows of a run.

    Args:
        preset: The run.
        first: The one.
        second: The other.
        benchmarks: On these; ``None`` for all of the preset that both have finished.

    Raises:
        UserError: They are the same row, nothing is finished that both have, or cells do not belong together.
    """
    if first == second:
        raise UserError(f"{first} is compared with itself; name two rows")
    for benchmark in benchmarks or ():
        config.check_benchmark(preset, benchmark)
    cells = {key: _finished(preset, first, second, key) for key in benchmarks or preset.benchmarks}
    lacking = [key for key, found in cells.items() if not all(found)]
    if lacking and (benchmarks or len(lacking) == len(cells)):
        raise UserError(
            f"{first} and {second} are not both finished on {', '.join(lacking)} in preset {preset.name}; see "
            f"`gmr status --preset {preset.name}`, and run what is missing"
        )
    both = [cell for found in cells.values() if all(found) for part in found for cell in part]
    measured = measure(read_comparable(layout.cell(preset.name, cell) for cell in both))
    found = {
        key: (measured[Key(*first, key)], measured[Key(*second, key)]) for key, parts in cells.items() if all(parts)
    }
    compared = {key: compare_pair(*pair) for key, pair in found.items()}
    adjusted = holm([one.discordant.p for one in compared.values()])
    pairs = {key: Pair(*found[key], compared[key], p) for key, p in zip(found, adjusted, strict=True)}
    return Compared(preset, first, second, pairs)


def _finished(preset: Preset, first: Line, second: Line, benchmark: str) -> tuple[list[Cell], list[Cell]]:
    """The finished cells of both rows on a benchmark, with whatever seeds of the preset there are."""
    return _of(preset, first, benchmark), _of(preset, second, benchmark)


def _of(preset: Preset, line: Line, benchmark: str) -> list[Cell]:
    seeds = preset.seeds if config.methods()[line.method].trained else preset.seeds[:1]
    cells = [Cell(line.method, benchmark, line.backbone, seed) for seed in seeds]
    return [cell for cell in cells if (layout.cell(preset.name, cell) / "run.json").exists()]
