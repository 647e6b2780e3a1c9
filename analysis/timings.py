"""Reading timing jobs: how long a method took for a whole test set, each beside the cell it was made from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

import orjson
from pydantic import NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from analysis.measures import Key
from analysis.provenance import short
from analysis.results import Cell
from harness.declarations import AsWritten, Declaration, Text, check
from harness.errors import UserError

SCHEMA = 1
FILE = "timing.json"


class Timed(Declaration, extra="ignore"):
    """The cell whose method was timed."""

    run_id: Text


class Host(Declaration, extra="ignore"):
    """Where a timing job ran."""

    platform: Text
    processors: PositiveInt


class Timing(Declaration, extra="ignore"):
    """What ``timing.json`` says, as far as a report needs it.

    Attributes:
        simulated: Whether the servers were modelled, so that their time is, too.
        n: Questions answered.
        seconds: Wall-clock time of all of them together.
        concurrency: Questions that were worked on at the same time.
        calls: Of models, every use of one.
        failed_calls: Those of them that got no reply.
        engine: Settings of the modelled servers; ``None`` where they were real.
        cell: The cell whose method was timed.
        host: Where this ran; not where the backbones were served.
    """

    folder: Path
    preset: Text
    method: Text
    benchmark: Text
    backbone: Text
    seed: int
    simulated: bool
    n: PositiveInt
    seconds: PositiveFloat
    concurrency: PositiveInt
    calls: NonNegativeInt
    failed_calls: NonNegativeInt
    prompt_tokens: NonNegativeInt
    completion_tokens: NonNegativeInt
    engine: Mapping[str, Annotated[float, AsWritten]] | None
    cell: Timed
    host: Host

    @model_validator(mode="after")
    def _modelled_where_simulated(self) -> Self:
        if self.simulated != (self.engine is not None):
            raise ValueError("the speed is modelled (engine) where, and only where, the backbones are simulated")
        return self

    @property
    def per_query(self) -> float:
        """Seconds of the whole pass over the number of questions, as the paper has it (D-REPORT-3)."""
        return self.seconds / self.n

    @property
    def machine(self) -> str:
        """Kind of the machine the method ran on."""
        return f"{self.host.processors} processors, {self.host.platform}"


def read(folder: Path) -> Timing:
    """Read the folder of one timing job.

    Raises:
        UserError: The file is missing, unreadable or of another schema version.
    """
    path = folder / FILE
    try:
        document = orjson.loads(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; expected a finished timing job; run it") from error
    except orjson.JSONDecodeError as error:
        raise UserError(f"{path}: not JSON ({error}); expected a finished timing job; run it again") from error
    version = document.get("schema") if isinstance(document, dict) else None
    if version != SCHEMA:
        raise UserError(
            f"{path}: timing schema {version!r}, expected {SCHEMA}; run the job again with this version of the suite"
        )
    timing: Timing = check({**document, "folder": folder}, Timing, path)
    return timing


def read_timings(folders: Iterable[Path], cells: Sequence[Cell]) -> dict[Key, Timing]:
    """The timings of cells, by what they are of.

    Args:
        folders: Of finished timing jobs.
        cells: Comparable cells; each timing must be of one of them.

    Raises:
        UserError: One cannot be read, is of no such cell or of an earlier run of it, or two of them cannot be compared.
    """
    timings = sorted(map(read, folders), key=lambda one: (one.benchmark, one.method, one.backbone, one.seed))
    run_ids = {_job(cell.run): cell.run.run_id for cell in cells}
    for timing in timings:
        if run_ids.get(_job(timing)) != timing.cell.run_id:
            raise UserError(
                f"{timing.folder}: the timing of run {short(timing.cell.run_id)}, which is none of the cells shown "
                "with it; time the cell again"
            )
    _check_comparable(timings)
    return {Key(one.method, one.backbone, one.benchmark): one for one in timings}


def _job(of: Any) -> tuple[str, str, str, str, int]:
    return of.preset, of.method, of.benchmark, of.backbone, of.seed


def _check_comparable(timings: Sequence[Timing]) -> None:
    _agree(timings, lambda one: f"{one.concurrency} questions at a time")
    _agree(timings, lambda one: f"engine {dict(one.engine) if one.engine else 'real'}")
    seen: dict[Key, Timing] = {}
    for one in timings:
        other = seen.setdefault(Key(one.method, one.backbone, one.benchmark), one)
        if other is not one:
            raise UserError(f"{other.folder} and {one.folder} time the same method; expected one seed; leave one out")


def _agree(timings: Sequence[Timing], of: Callable[[Timing], str]) -> None:
    for other in timings[1:]:
        if of(other) != of(timings[0]):
            raise UserError(
                f"timings under different conditions in one table: {timings[0].folder} ({of(timings[0])}) and "
                f"{other.folder} ({of(other)}); time one of them again"
            )
