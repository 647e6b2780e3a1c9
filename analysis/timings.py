"""Reading timing jobs: how long a method took for a whole test set, each with the cell it was made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import orjson
from pydantic import NonNegativeInt, PositiveFloat, PositiveInt

from analysis.frames import Key
from analysis.results import Cell, short
from harness.errors import UserError
from harness.files import AsWritten, Declaration, Text, check

SCHEMA = 1
FILE = "timing.json"


class Timing(Declaration, extra="ignore"):
    """What ``timing.json`` says, as far as a report needs it.

    ``seconds`` are of all ``n`` questions together, ``concurrency`` of which were worked on at the same time;
    ``engine`` are the settings of modelled servers, None where they were real.
    """

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
    cell: Mapping[str, Any]  # the cell whose method was timed
    host: Mapping[str, Any]  # where the job ran; not where the backbones were served

    @property
    def per_query(self) -> float:
        """Seconds of the whole pass over the number of questions, as the paper has it (D-REPORT-3)."""
        return self.seconds / self.n

    @property
    def machine(self) -> str:
        """Kind of the machine the method ran on."""
        return f"{self.host['processors']} processors, {self.host['platform']}"


def read_timings(folders: Iterable[Path], cells: Sequence[Cell]) -> dict[Key, Timing]:
    """The timings of comparable cells, by what they are of.

    Raises:
        UserError: One cannot be read, is of no such cell or of an earlier run of it, or two of them cannot be compared.
    """
    run_ids = {cell.run.cell: cell.run.run_id for cell in cells}
    found: dict[Key, Timing] = {}
    for folder in sorted(folders):
        one = _read(folder / FILE)
        if run_ids.get(f"{one.method}/{one.benchmark}/{one.backbone}/{one.seed}") != one.cell["run_id"]:
            raise UserError(
                f"{folder}: the timing of run {short(one.cell['run_id'])}, which is none of the cells shown with it; "
                "time the cell again"
            )
        first = next(iter(found.values()), one)
        if (one.concurrency, one.engine) != (first.concurrency, first.engine):
            raise UserError(f"{folder}: timed with other settings than the others; time one of them again")
        found[one.method, one.backbone, one.benchmark] = one
    return found


def _read(path: Path) -> Timing:
    try:
        document = orjson.loads(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; expected a finished timing job; run it") from error
    except orjson.JSONDecodeError as error:
        raise UserError(f"{path}: not JSON ({error}); expected a finished timing job; run it again") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise UserError(f"{path}: not of timing schema {SCHEMA}; run the job again with this version of the suite")
    timing: Timing = check(document, Timing, path)
    return timing
