"""The questions of one preset as two files, so that no later job needs the data set or a network.

The items file holds every question of the split; the manifest says which of them train and which test. Limits on their
number are left to the users of these files, so that a run on a few questions and a run on all share these files.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import orjson
from pydantic import TypeAdapter

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
_ITEM = TypeAdapter(Item)


def prepare(benchmark_key: str, data: str, splits: str, out_items: Path, out_manifest: Path) -> None:
    """Load, check and divide a benchmark, and write items (one JSON object a line) and manifest, each whole or not.

    ``data`` and ``splits`` as for :func:`load_items` and :func:`split_items`, whose errors it raises.
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

    Raises UserError where a file is missing or damaged, or the two do not belong together.
    """
    again = "delete both and prepare again"
    path = manifest
    try:
        listed = orjson.loads(manifest.read_bytes())
        path = items
        pool = [_ITEM.validate_json(line) for line in items.read_bytes().splitlines()]
    except OSError as error:
        raise UserError(
            f"{path} cannot be read ({error.strerror}); make it with `snakemake --cores all {path}`"
        ) from error
    except ValueError as error:
        raise UserError(f"{path} is damaged ({' '.join(str(error).split())[:160]}); {again}") from error
    if not isinstance(listed, dict) or set(listed) != _FIELDS:
        raise UserError(f"{manifest} is no manifest of this version; {again}")
    by_id = {item.id: item for item in pool}
    train, test = listed.pop("train"), listed.pop("test")
    if checksum(pool) != listed["pool_checksum"] or not by_id.keys() >= {*train, *test}:
        raise UserError(f"{items} does not hold the questions that {manifest} lists; {again}")
    return Prepared(**listed, pool=pool, train=[by_id[id_] for id_ in train], test=[by_id[id_] for id_ in test])
