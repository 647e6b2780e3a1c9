"""Sealing that is interrupted: killed at each moment at which it touches a file."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UserError
from harness.llm.call_log import CallLog
from tests.harness.llm.logged import answers, fill, keys

OPERATIONS = ("open", "write", "fsync", "replace", "unlink", "rename", "ftruncate", "chmod")


class Killed(BaseException):
    """The process is no more."""


@contextmanager
def killed(monkeypatch: pytest.MonkeyPatch, at: int, happens: bool) -> Iterator[None]:
    """From the given file operation on nothing happens any longer; ``happens`` says whether that one still does."""
    done = 0

    def dying(operation: Callable[..., Any]) -> Callable[..., Any]:
        def attempt(*args: Any, **more: Any) -> Any:
            nonlocal done
            done += 1
            if done == at and happens:
                operation(*args, **more)
            if done >= at:
                raise Killed
            return operation(*args, **more)

        return attempt

    with monkeypatch.context() as patch:
        for name in OPERATIONS:
            patch.setattr(os, name, dying(getattr(os, name)))
        yield


def before(folder: Path, which: str) -> tuple[Path, str]:
    """A log about to be sealed, and the calls that its run used."""
    path = folder / "calls.jsonl"
    fill(path, "abc")
    if which == "first":
        return path, "abc"
    if which == "with others":
        return path, "ab"
    with CallLog(path) as log:
        log.seal(keys("ab"))
    fill(path, "de")
    # Of these one comes from each of the three files, and each keeps or gets another.
    return path, "acd"


@pytest.mark.parametrize("happens", [True, False])
@pytest.mark.parametrize("which", ["first", "with others", "again"])
def test_a_kill_at_any_moment_loses_no_call_and_changes_no_byte(
    tmp_path: Path, which: str, happens: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, used = before(tmp_path / "before", which)
    everything = answers(path, "abcde")
    shutil.copytree(path.parent, tmp_path / "straight")
    with CallLog(tmp_path / "straight" / path.name) as log:
        expected = log.seal(keys(used))
    undisturbed = contents(tmp_path / "straight")
    moments = 0
    for at in range(1, 200):
        folder = shutil.copytree(path.parent, tmp_path / str(at))
        log = CallLog(folder / path.name)
        with killed(monkeypatch, at, happens):
            try:
                log.seal(keys(used))
            except Killed:
                moments += 1
        log.close()
        assert answers(folder / path.name, "abcde") == everything
        with CallLog(folder / path.name) as log:
            assert len(log) == len(everything)
            assert log.seal(keys(used)) == expected
        assert contents(folder) == undisturbed
        if moments < at:
            break
    assert moments > 10


def contents(folder: Path) -> dict[str, bytes]:
    """All files, those that a killed process left half-written among them."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_full_disk_leaves_everything_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, used = before(tmp_path, "again")
    everything, files = answers(path, "abcde"), contents(tmp_path)

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with CallLog(path) as log:
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(UserError, match="No space left on device; free space"):
                log.seal(keys(used))
        assert contents(tmp_path) == files
        assert not list(tmp_path.glob(".*"))
        assert log.seal(keys(used)).calls == len(used)
    assert answers(path, "abcde") == everything
