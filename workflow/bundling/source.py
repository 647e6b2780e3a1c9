"""The code and the configuration that results and reports follow from."""

from __future__ import annotations

import subprocess
from pathlib import Path

from harness.files import ROOT, fingerprint

_ROOMS = ("harness", "baselines", "gmr", "analysis", "config/studies")
_FILES = (
    "artefacts",
    "backbones",
    "benchmarks",
    "encoder",
    "methods",
    "published",
    "sensitivity",
    "simulator",
    "weights",
)


def code() -> str:
    """Fingerprint of everything in the checkout that decides what results and reports look like."""
    return fingerprint([*(ROOT / room for room in _ROOMS), *configuration()])


def configuration() -> list[Path]:
    """The files of the configuration that decide about results; where servers are is not among them."""
    return [ROOT / "config" / f"{name}.yaml" for name in _FILES]


def commit() -> str | None:
    """The commit of the checkout, with a word where files differ from it; ``None`` where there is no repository."""
    try:
        head, changed = (_git(*words) for words in (("rev-parse", "HEAD"), ("status", "--porcelain", "-uno")))
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{head}, with changes" if changed else head


def _git(*words: str) -> str:
    ended = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True)  # noqa: S603, S607
    return ended.stdout.strip()
