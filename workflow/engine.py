"""Snakemake as one starts it by hand, in a process group of its own, and what it says while it works."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import yaml

from harness import layout
from harness.config import Preset
from harness.errors import UserError
from harness.files import writing
from paper import registry

# A closed terminal is told to its foreground group alone, and Snakemake is not in it.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STEPS = re.compile(r"^(\d+) of (\d+) steps", re.MULTILINE)
_OURS = "error: "


def files_of(preset: Preset, targets: Sequence[str]) -> list[str]:
    """Targets as Snakemake knows them.

    Args:
        preset: The run.
        targets: Names of artefacts, files as Snakemake has them, or ``all``.

    Raises:
        UserError: An artefact that the preset cannot have.
    """
    return [_file(preset, target) for target in targets]


def command(preset: Preset, files: Sequence[str], overrides: Mapping[str, Any], words: Sequence[str]) -> list[str]:
    """The command line of Snakemake that makes files.

    Args:
        preset: The run.
        files: What is to be made.
        overrides: Keys of the preset that hold instead of its own.
        words: Options of Snakemake.
    """
    settings = [f"{key}={_value(value)}" for key, value in {"preset": preset.name, **overrides}.items()]
    return [sys.executable, "-m", "snakemake", *words, *files, "--config", *settings]


def _value(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True, width=10**6).removesuffix("\n").removesuffix("\n...")


def _file(preset: Preset, target: str) -> str:
    if target not in registry.artefacts():
        return target
    artefact = registry.artefact(target)
    artefact.check(preset)
    return str(layout.report(preset.name, artefact.files[0]))


class Engine:
    """A Snakemake at work.

    Args:
        words: Its command line.
        output: The file to which all is added that it and its jobs say.

    Raises:
        UserError: The file cannot be written.
    """

    def __init__(self, words: Sequence[str], output: Path) -> None:
        self.output = output
        self._steps = ""
        with writing(output):
            output.parent.mkdir(parents=True, exist_ok=True)
            file = output.open("ab")
        with file:
            self._start = self._read = file.tell()
            self._process = subprocess.Popen(  # noqa: S603  our own interpreter
                words, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, process_group=0
            )

    def wait(self, seconds: float) -> int | None:
        """Its status once it has ended; ``None`` if it works on after some time."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def interrupt(self) -> None:
        """Tell it and its jobs to stop, as Ctrl-C does."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGINT)

    def news(self) -> list[str]:
        """The errors of ours that its jobs have written since the last look, one line each."""
        with self.output.open("rb") as file:
            file.seek(self._read)
            new = file.read()
        whole = new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        text = whole.decode(errors="replace")
        if steps := _STEPS.findall(text):
            self._steps = "/".join(steps[-1])
        return [line for line in text.splitlines() if line.startswith(_OURS)]

    @property
    def steps(self) -> str:
        """How many of its jobs are done of how many, by :meth:`news`; empty before the first is."""
        return self._steps

    @property
    def has_begun(self) -> bool:
        """Whether it came to the point of starting jobs."""
        with self.output.open("rb") as file:
            file.seek(self._start)
            return any(line.startswith(b"Job stats:") for line in file)


class Stopping:
    """The signal that told a run to stop, if one did."""

    def __init__(self) -> None:
        self.number: int | None = None


@contextmanager
def interrupting(engine: Engine) -> Iterator[Stopping]:
    """Hand every signal that would end this process to what it has started, and wait for that instead."""
    told = Stopping()

    def on_signal(number: int, frame: FrameType | None) -> None:
        told.number = told.number or number
        engine.interrupt()

    before = {number: signal.signal(number, on_signal) for number in SIGNALS}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def check_folder() -> None:
    """Refuse a folder in which Snakemake would find no DAG.

    Raises:
        UserError: There is no Snakefile.
    """
    if not Path("Snakefile").exists():
        raise UserError("no Snakefile here; give the command in the checkout of the suite")
