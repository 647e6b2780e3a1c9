"""Questions known by their hashes alone, and the jobs of a replay that put questions in place."""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from harness.benchmarks.items import Item, checksum
from harness.benchmarks.prepare import prepare, read
from harness.errors import UserError
from harness.recording import Recording
from harness.runner import layout
from harness.runner.config import Preset


def hashes(items: Iterable[Item]) -> bytes:
    """A JSON object of item ids, each with the SHA-256 of its question."""
    found = {item.id: checksum([item]) for item in items}
    return orjson.dumps(found, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"


def place(recording: Recording, preset: Preset, benchmark: str) -> None:
    """Put the questions of a recorded run in place, from the bundle or, where it has none, from the user's own data.

    Raises:
        UserError: The data cannot be had, or are not the questions of the recorded run; names the first that is not.
    """
    manifest, items = layout.manifest(preset.name, benchmark), layout.items(preset.name, benchmark)
    if recording.has_questions:
        recording.place([manifest, items])
        return
    prepare(benchmark, preset.data, preset.splits, items, manifest)
    found = {item.id: checksum([item]) for item in read(manifest, items).pool}
    known = orjson.loads(recording.read(layout.hashes(preset.name, benchmark)))
    for name in sorted({*found, *known}):
        if found.get(name) != known.get(name):
            raise UserError(f"{items}: question {name} is not the one of the recorded run; use the data it was made of")
    if manifest.read_bytes() != recording.read(manifest):
        raise UserError(
            f"{manifest} is not that of the recorded run: the questions are the same, their division is not"
        )
