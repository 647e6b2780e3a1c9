"""Run the scripts that start servers as a user would."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.files import ROOT


def script(name: str, *words: str) -> list[str]:
    return ["bash", str(ROOT / "serving" / f"{name}.sh"), *words]


@contextmanager
def running(name: str, *words: str, folder: Path | None = None) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a script until the end of the block; yield its process and its line that the servers are ready."""
    with subprocess.Popen(script(name, *words), cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.terminate()
