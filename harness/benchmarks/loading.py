"""From a benchmark's key to its items, checked against what the configuration expects."""

from __future__ import annotations

from dataclasses import dataclass

from harness.benchmarks.items import Item, checksum
from harness.benchmarks.registry import Entry, benchmark, entry
from harness.benchmarks.sources import Records, load
from harness.benchmarks.splits import Split
from harness.errors import UserError


@dataclass(frozen=True, slots=True)
class Loaded:
    """All items of a benchmark."""

    items: list[Item]  # the items in upstream order
    source: str  # where they came from, in words that are the same on every machine
    checksum: str  # :func:`harness.benchmarks.items.checksum` over the items


def load_items(key: str, data: str) -> Loaded:
    """Read, normalise and check a benchmark.

    Real data have one expected count and checksum for all sources, since both are taken over the items.

    Args:
        key: The benchmark.
        data: ``"embedded"`` or ``"real"``.

    Raises:
        UserError: The data cannot be had, or are not what the configuration expects.
    """
    declared = entry(key)
    records = load(declared, data)
    items = _normalised(key, records)
    if data == "real" and len(items) != declared.expected.count:
        raise UserError(
            f"{records.place} gives {len(items)} {declared.title} questions; expected {declared.expected.count}. "
            f"It is cut off or not the right file: {_remedy(declared)}"
        )
    found = checksum(items)
    if data == "real" and found != declared.expected.checksum:
        raise UserError(
            f"{records.place} gives {declared.title} questions with checksum {found[:12]}; expected "
            f"{declared.expected.checksum[:12]}. Some of them are altered: {_remedy(declared)}"
        )
    return Loaded(items, records.source, found)


def split_items(key: str, data: str, items: list[Item], kind: str) -> Split:
    """Divide items, and check the ids of real data against the configuration.

    Raises:
        UserError: The kind is unknown, does not fit the data, or came out otherwise than the configuration expects.
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
    except KeyError as error:
        raise UserError(
            f"{records.place}: a record lacks the field {error}; expected upstream's schema, use upstream's file"
        ) from error
    except (TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{records.place}: {error}; expected upstream's schema, use upstream's file") from error
    repeated = len(items) - len({item.id for item in items})
    if repeated:
        raise UserError(f"{records.place}: {repeated} ids repeat; expected each once, use upstream's file")
    return items


def _remedy(declared: Entry) -> str:
    revision = declared.hub.revision or "an earlier revision"
    return f"use upstream's unchanged file {declared.mirror}, or {declared.hub.repo} at {revision}"
