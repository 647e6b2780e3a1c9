"""What a finished cell used, asked and left on the disk, by question and by pass over the training questions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from harness import config, layout
from harness.config import Cell, Preset
from workflow.forecasting.sizes import training_ids

if TYPE_CHECKING:
    import pandas as pd

# Uses are charged, whoever answers. Asked is what no log answers: distinct within the cell, and in no shared log.
USED = ("uses", "used_prompt", "used_completion", "cost")
ASKED = ("asked", "prompt", "completion", "asked_cost")
COLUMNS = (*USED, *ASKED)
TEST, TRAINING, CONSULTING = "test", "training", "consulting"
_READ = ["item_id", "backbone", "key", "prompt_tokens", "completion_tokens", "cost"]
_TABLES = ("*.parquet", "run.json", "timing.json", "calls.seal.json")


@dataclass(frozen=True)
class Disk:
    """Bytes a cell takes, by what they grow with.

    Attributes:
        logs: Call log, its index and the notes of attempts; with the calls asked.
        tables: With the calls used.
        embeddings: With the calls asked.
        checkpoints: With the passes of the training.
    """

    logs: float = 0.0
    tables: float = 0.0
    embeddings: float = 0.0
    checkpoints: float = 0.0


@dataclass(frozen=True)
class Measured:
    """A finished cell.

    Attributes:
        cell: Which.
        simulated: Whether its backbones were.
        rows: One row a phase, pass, question and backbone, with the columns :data:`COLUMNS`. ``consulting`` are the
            calls of a training that are about none of its questions.
        disk: What it takes.
        seconds: How long its last process ran.
    """

    cell: Cell
    simulated: bool
    rows: pd.DataFrame
    disk: Disk
    seconds: float

    @property
    def test(self) -> int:
        """Test questions it answered."""
        return int(self.rows.loc[self.rows["phase"] == TEST, "item_id"].nunique())

    @property
    def train(self) -> int:
        """Training questions it used."""
        return int(self.rows.loc[self.rows["phase"] == TRAINING, "item_id"].nunique())

    @property
    def passes(self) -> int:
        """Passes it made over them."""
        return int(self.rows.loc[self.rows["phase"] != TEST, "pass"].max()) if self.train else 0


def finished(preset: str, cell: Cell) -> bool:
    """Whether a cell of a preset has come to its end."""
    return (layout.cell(preset, cell) / "run.json").exists()


def measure(preset: Preset, cell: Cell) -> Measured:
    """Read what a finished cell used.

    Raises:
        UserError: The questions of the preset are not prepared.
    """
    folder = layout.cell(preset.name, cell)
    shared = [layout.cell(preset.name, other) for other in config.sharing(preset, cell)]
    timing = folder / "timing.json"
    return Measured(
        cell=cell,
        simulated=bool(orjson.loads((folder / "run.json").read_bytes())["simulated"]),
        rows=_rows(folder, training_ids(preset.name, cell.benchmark), shared),
        disk=_disk(folder, preset.name, cell),
        seconds=float(orjson.loads(timing.read_bytes())["wall_s"]) if timing.exists() else 0.0,
    )


def _rows(folder: Path, trained_on: frozenset[str], shared: Sequence[Path]) -> pd.DataFrame:
    import pandas as pd

    frames = [pd.read_parquet(folder / "calls.parquet", columns=_READ).assign(**{"pass": 0, "phase": TEST})]
    training = folder / "training_calls.parquet"
    if training.exists():
        learned = pd.read_parquet(training, columns=["epoch", *_READ]).rename(columns={"epoch": "pass"})
        about = learned["item_id"].isin(trained_on).map({True: TRAINING, False: CONSULTING})
        frames.insert(0, learned.assign(phase=about))
    uses = pd.concat(frames, ignore_index=True)
    answered = {key for other in shared if (other / "run.json").exists() for key in _keys(other)}
    first = ~(uses["key"].duplicated() | uses["key"].isin(answered))
    amounts = pd.DataFrame(
        {
            "uses": 1,
            "used_prompt": uses["prompt_tokens"],
            "used_completion": uses["completion_tokens"],
            "cost": uses["cost"],
            "asked": first,
            "prompt": uses["prompt_tokens"] * first,
            "completion": uses["completion_tokens"] * first,
            "asked_cost": uses["cost"] * first,
        }
    ).astype(float)
    by = ["phase", "pass", "item_id", "backbone"]
    return pd.concat([uses[by], amounts], axis=1).groupby(by, as_index=False)[list(COLUMNS)].sum()


def _keys(folder: Path) -> set[str]:
    import pandas as pd

    files = [folder / name for name in ("calls.parquet", "training_calls.parquet")]
    return {key for file in files if file.exists() for key in pd.read_parquet(file, columns=["key"])["key"]}


def _disk(folder: Path, preset: str, cell: Cell) -> Disk:
    logs = [path for path in folder.glob("calls.*") if path.suffix in (".zst", ".index", ".jsonl")]
    name = "-".join(folder.relative_to(layout.RESULTS).parts)
    return Disk(
        logs=_bytes([*logs, folder / "attempts.jsonl"]),
        tables=_bytes([path for pattern in _TABLES for path in folder.glob(pattern)]),
        embeddings=_bytes((layout.RESULTS / "embeddings").glob(f"*/{cell.benchmark}/{name}*")),
        checkpoints=_bytes([*folder.glob("checkpoints/*"), folder / "trained.safetensors"]),
    )


def _bytes(paths: Iterable[Path]) -> float:
    return float(sum(path.stat().st_size for path in paths if path.is_file()))
