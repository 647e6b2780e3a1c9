"""From a benchmark's key to its items: read, checked against what the configuration expects, divided.

Records come from the project's own file, a local mirror, an installed package or the hub.
"""

from __future__ import annotations

import gzip
import importlib.util
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from harness.benchmarks.items import Item, checksum
from harness.benchmarks.registry import Entry, benchmark, entry
from harness.benchmarks.splits import Split
from harness.errors import UserError

DATA_DIR = "GMR_DATA_DIR"
EMBEDDED = Path(__file__).with_name("data")


class Records(NamedTuple):
    """Records in upstream's schema and order."""

    rows: list[dict[str, Any]]
    source: str  # where they came from, in words that are the same on every machine
    place: str  # where they came from, as a user finds it: a file, or an address on the hub


@dataclass(frozen=True, slots=True)
class Loaded:
    """All items of a benchmark, in upstream order."""

    items: list[Item]
    source: str  # as in :class:`Records`
    checksum: str  # :func:`harness.benchmarks.items.checksum` over the items


def load_items(key: str, data: str) -> Loaded:
    """Read, normalise and check a benchmark, ``"embedded"`` or ``"real"``.

    Real data have one expected count and checksum for all sources, since both are taken over the items. Raises
    UserError where the data cannot be had, or are not what the configuration expects.
    """
    declared = entry(key)
    records = load(declared, data)
    items = _normalised(key, records)
    found, expected = checksum(items), declared.expected
    if data == "real" and (len(items), found) != (expected.count, expected.checksum):
        raise UserError(
            f"{records.place} gives {len(items)} {declared.title} questions with checksum {found[:12]}; expected "
            f"{expected.count} with {expected.checksum[:12]}. It is cut off, altered or not the right file: use "
            f"upstream's unchanged file {declared.mirror}, or {declared.hub.repo} at "
            f"{declared.hub.revision or 'an earlier revision'}"
        )
    return Loaded(items, records.source, found)


def split_items(key: str, data: str, items: list[Item], kind: str) -> Split:
    """Divide items; of real data the ids are checked against the configuration.

    Raises UserError where the kind is unknown, does not fit the data, or came out otherwise than expected.
    """
    if data == "embedded" and kind != "official":
        raise UserError(f"splits: {kind!r} does not fit data 'embedded', which has no published sizes; use 'official'")
    made = benchmark(key).split(items, kind)
    expected = entry(key).expected.splits.get(kind)
    if data == "real" and made.checksum != expected:
        raise UserError(
            f"{entry(key).title}: the {kind} split has checksum {made.checksum[:12]}; config/benchmarks.yaml expects "
            f"{str(expected)[:12]}. Restore that entry, or put the new checksum there if the split was meant to change"
        )
    return made


def _normalised(key: str, records: Records) -> list[Item]:
    try:
        items = benchmark(key).normalise(records.rows)
        repeated = len(items) - len({item.id for item in items})
        if repeated:
            raise ValueError(f"{repeated} ids repeat")
    except KeyError as error:
        raise UserError(
            f"{records.place}: a record lacks the field {error}; expected upstream's schema, use upstream's file"
        ) from error
    except (TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{records.place}: {error}; expected upstream's schema, use upstream's file") from error
    return items


def load(declared: Entry, data: str) -> Records:
    """The records of a benchmark: the project's own (``"embedded"``), or upstream's (``"real"``).

    Upstream's come from the folder ``GMR_DATA_DIR`` names if it is set, else from an installed package, else from the
    hub. Raises UserError where they are missing or unreadable, or the hub cannot be reached.
    """
    if data not in ("embedded", "real"):
        raise UserError(f"data: {data!r} is unknown; choose 'embedded' or 'real'")
    folder = os.environ.get(DATA_DIR)
    if data == "embedded":
        path, source = EMBEDDED / f"{declared.key}.jsonl", "embedded"
        cure = "put records in upstream's form there, one JSON object a line, or choose data 'real'"
    elif folder:
        path, source = Path(folder).expanduser() / declared.mirror, f"mirror {declared.mirror}"
        cure = f"put upstream's file there, or point {DATA_DIR} to the folder that holds it, or unset it"
    elif declared.package:
        spec = importlib.util.find_spec(declared.package.replace("-", "_"))
        if spec is None or spec.origin is None:
            raise UserError(f"{declared.title} comes with the package {declared.package}; install it")
        path, source = Path(spec.origin).parent / "data" / "HumanEval.jsonl.gz", f"package {declared.package}"
        cure = f"reinstall the package {declared.package}"
    else:
        return _from_hub(declared)
    if not path.is_file():
        raise UserError(f"{path} does not exist; expected the questions of {declared.title} there: {cure}")
    return Records(_read_file(path), source, str(path))


def _read_file(path: Path) -> list[dict[str, Any]]:
    try:
        if path.suffix == ".parquet":
            from pyarrow import parquet

            return list(parquet.read_table(path).to_pylist())
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return [orjson.loads(line) for line in content.splitlines()]
    # What a damaged file raises: JSONDecodeError and ArrowInvalid are ValueErrors, BadGzipFile is an OSError.
    except (OSError, EOFError, ValueError, zlib.error) as error:
        cause = " ".join(str(error).split())[:160]
        raise UserError(f"{path} cannot be read ({cause}); it is damaged or cut off: fetch the file again") from error


def _from_hub(declared: Entry) -> Records:
    # Its import takes a second.
    from datasets import concatenate_datasets, disable_progress_bars, load_dataset

    disable_progress_bars()
    hub = declared.hub
    address = f"{hub.repo}@{hub.revision or 'newest'}"
    try:
        parts = [load_dataset(hub.repo, config, revision=hub.revision, split=hub.split) for config in hub.configs]
    except Exception as error:  # the hub's client lets the exceptions of half a dozen libraries through
        cause = " ".join(str(error).split())
        raise UserError(
            f"{declared.title} cannot be loaded from the hub, {address} ({type(error).__name__}: {cause[:160]}); "
            f"connect to the network, or set {DATA_DIR} to a folder that holds {declared.mirror}"
        ) from error
    return Records(concatenate_datasets(parts).to_list(), f"hub {address}", f"{address} on the hub")
