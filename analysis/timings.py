"""Reading timing jobs: how long a method took for a whole test set, each beside the cell it was made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from analysis.frames import Key
from analysis.results import Cell, short
from harness.errors import UserError

SCHEMA = 1
FILE = "timing.json"


class Timing(BaseModel):
    """What ``timing.json`` says.

    Attributes:
        simulated: Whether the servers were modelled, so that their time is, too.
        n: Questions answered.
        seconds: Wall-clock time of all of them together.
        concurrency: Questions that were worked on at the same time.
        calls: Of models, every use of one.
        failed_calls: Those of them that got no reply.
        engine: Settings of the modelled servers; ``None`` where they were real.
        cell: ``run_id`` of the cell whose method was timed, and what else identifies it.
        host: Where this ran; not where the backbones were served.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    preset: str
    method: str
    benchmark: str
    backbone: str
    seed: int
    simulated: bool
    n: int
    seconds: float
    concurrency: int
    calls: int
    failed_calls: int
    prompt_tokens: int
    completion_tokens: int
    engine: Mapping[str, float] | None
    cell: Mapping[str, Any]
    host: Mapping[str, Any]

    @property
    def per_query(self) -> float:
        """Seconds of the whole pass over the number of questions, as the paper has it (D-REPORT-3)."""
        return self.seconds / self.n

    @property
    def machine(self) -> str:
        """Kind of the machine the method ran on."""
        return f"{self.host['processors']} processors, {self.host['platform']}"


def read(folder: Path) -> Timing:
    """Read the folder of one timing job.

    Raises:
        UserError: The file is missing, unreadable or of another schema version.
    """
    path = folder / FILE
    try:
        return Timing.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; expected a finished timing job; run it first") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(
            f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}; expected a finished timing job of this "
            "version of the suite; run it again"
        ) from None


def read_timings(folders: Iterable[Path], cells: Sequence[Cell]) -> dict[Key, Timing]:
    """The timings of cells, by what they are of.

    Args:
        folders: Of finished timing jobs.
        cells: Comparable cells; each timing must be of one of them.

    Raises:
        UserError: One cannot be read, is of no such cell or of an earlier run of it, or two of them cannot be compared.
    """
    run_ids = {
        (cell.run.method, cell.run.backbone, cell.run.benchmark, cell.run.seed): cell.run.run_id for cell in cells
    }
    found: dict[Key, Timing] = {}
    for folder in sorted(folders):
        one = read(folder)
        key = (one.method, one.backbone, one.benchmark)
        if run_ids.get((*key, one.seed)) != one.cell["run_id"]:
            raise UserError(
                f"{folder}: the timing of run {short(one.cell['run_id'])}, which is none of the cells shown with it; "
                "time the cell again"
            )
        first = next(iter(found.values()), one)
        if (one.concurrency, one.engine) != (first.concurrency, first.engine):
            raise UserError(f"{folder}: timed with other settings than the others; time one of them again")
        if key in found:
            raise UserError(f"{folder} times the same method as another; expected one seed; leave one out")
        found[key] = one
    return found
