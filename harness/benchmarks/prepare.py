"""The questions of one preset as two files, so that no later job needs the data set or a network.

The items file holds every question of the split; the manifest says which of them train and which test. Limits on their
number are left to the users of these files, so that a run on a few questions and a run on all share these files.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import orjson

from harness.benchmarks.items import Item, checksum
from harness.benchmarks.loading import load_items, split_items
from harness.benchmarks.registry import entry
from harness.errors import UserError
from harness.files import write_atomically


@dataclass(frozen=True, slots=True)
class Prepared:
    """The questions of a benchmark as a preset uses them."""

    benchmark: str  # key of the benchmark
    title: str  # the name tables print; says so where the questions are the project's own
    data: str  # ``"embedded"`` or ``"real"``
    source: str  # where the questions came from
    splits: str  # kind of split
    count: int  # number of questions of the whole benchmark
    checksum: str  # checksum of the whole benchmark
    split_checksum: str  # checksum of the split
    pool_checksum: str  # checksum of the questions of the split
    pool: list[Item]  # the questions of the split
    train: list[Item]  # training questions
    test: list[Item]  # test questions


_FIELDS = {field.name for field in fields(Prepared)} - {"pool"}


def prepare(benchmark_key: str, data: str, splits: str, out_items: Path, out_manifest: Path) -> None:
    """Load, check and divide a benchmark, and write both files, each whole or not at all.

    Args:
        benchmark_key: The benchmark.
        data: ``"embedded"`` or ``"real"``.
        splits: ``"published"`` or ``"official"``; embedded data know the latter only.
        out_items: Where the questions of the split go, one JSON object a line.
        out_manifest: Where the manifest goes.

    Raises:
        UserError: The data cannot be had or are not what they should be.
    """
    loaded = load_items(benchmark_key, data)
    split = split_items(benchmark_key, data, loaded.items, splits)
    members = {*split.train, *split.test}
    pool = [item for item in loaded.items if item.id in members]
    title = entry(benchmark_key).title
    manifest = {
        "benchmark": benchmark_key,
        "title": f"mini-{title}" if data == "embedded" else title,
        "data": data,
        "source": loaded.source,
        "splits": splits,
        "count": len(loaded.items),
        "checksum": loaded.checksum,
        "split_checksum": split.checksum,
        "pool_checksum": checksum(pool),
        "train": split.train,
        "test": split.test,
    }
    write_atomically(out_items, b"".join(item.to_json() + b"\n" for item in pool))
    write_atomically(out_manifest, orjson.dumps(manifest, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")


def read(manifest: Path, items: Path) -> Prepared:
    """The questions that :func:`prepare` wrote.

    Raises:
        UserError: A file is missing or damaged, or the two do not belong together.
    """
    listed = _read_manifest(manifest)
    pool = _read_items(items)
    if checksum(pool) != listed["pool_checksum"]:
        raise UserError(f"{items} does not hold the questions that {manifest} lists; delete both and prepare again")
    by_id = {item.id: item for item in pool}
    missing = sorted({*listed["train"], *listed["test"]} - set(by_id))
    if missing:
        raise UserError(f"{manifest} lists {missing[0]!r}, which {items} does not hold; delete both and prepare again")
    train = [by_id[id_] for id_ in listed.pop("train")]
    test = [by_id[id_] for id_ in listed.pop("test")]
    return Prepared(**listed, pool=pool, train=train, test=test)


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        listed = orjson.loads(_read_bytes(path))
    except orjson.JSONDecodeError as error:
        raise UserError(f"{path} is not JSON ({error}); delete it and prepare again") from error
    if not isinstance(listed, dict) or set(listed) != _FIELDS:
        raise UserError(f"{path} is no manifest of this version; delete it and prepare again")
    return listed


def _read_items(path: Path) -> list[Item]:
    try:
        return [Item.from_json(line) for line in _read_bytes(path).splitlines()]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise UserError(f"{path} holds a line that is no question ({error}); delete it and prepare again") from error


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(
            f"{path} cannot be read ({error.strerror}); make it with `snakemake --cores all {path}`"
        ) from error
