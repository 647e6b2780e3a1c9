"""What a bundle holds in another form than the run: embeddings, and what stands in for questions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.benchmarks.prepare import read
from harness.files import write_atomically
from harness.llm.call_log import copy
from harness.runner import layout
from workflow.bundling import contents as parts
from workflow.bundling.archive import Member
from workflow.bundling.contents import Contents
from workflow.bundling.questions import hashes

_SIZE = 32


def questions(contents: Contents, folder: Path, *, whole: bool) -> Iterator[Member]:
    """The questions of a run; where they are not to be whole, the SHA-256 of each."""
    for key in contents.preset.benchmarks:
        path = layout.items(contents.preset.name, key)
        if whole:
            yield _as_it_is(path)
            continue
        manifest = layout.manifest(contents.preset.name, key)
        names = layout.hashes(contents.preset.name, key)
        write_atomically(folder / names, hashes(read(manifest, path).pool))
        yield Member(names.as_posix(), folder / names)


def logs(contents: Contents, folder: Path, *, whole: bool) -> Iterator[Member]:
    """The call logs of a run, each in the order of its keys; where they are not to be whole, without what was asked.

    Raises:
        UserError: A log is damaged, or the disk is full.
    """
    for log in parts.logs(contents):
        copy(log, folder / log, prompts=whole)
        yield Member(log.as_posix(), folder / log)


def _as_it_is(path: Path) -> Member:
    return Member(path.as_posix(), path)
