"""Plans runs of Snakemake without running them: one process that has loaded it, and a child of it for each plan."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.files import ROOT

PARTS = ("Snakefile", "workflow", "config", "profiles", "environment.yml")
_AT_ONCE = 2


def checkout(folder: Path) -> Path:
    """A folder that runs as the checkout does, without any results."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in PARTS:
        (folder / name).symlink_to(ROOT / name)
    return folder


def plans(folder: Path, commands: Sequence[Sequence[str]]) -> list[tuple[int, str]]:
    """The status of each dry run in a folder, and what it said."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.planning"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])},
        input=json.dumps(list(commands)),
        capture_output=True,
        text=True,
        check=True,
    )
    return [(status, text) for status, text in json.loads(ended.stdout)]


def _plan(words: Sequence[str], said: Path) -> int:
    import snakemake.cli

    if child := os.fork():
        return child
    with said.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        sys.argv = ["snakemake", *words]
        status: object = 0
        try:
            snakemake.cli.main([*words, "--dry-run", "--nolock"])
        except SystemExit as ended:
            # sys.exit takes a number, or a line that is to be printed.
            status = ended.code
        file.write(status if isinstance(status, str) else "")
        file.flush()
        os._exit(bool(status))


def _main() -> None:
    import workflow.reports  # noqa: F401  what the Snakefile imports, loaded once for all children

    running: dict[int, int] = {}
    ended: dict[int, int] = {}
    commands = json.load(sys.stdin)
    with TemporaryDirectory() as name:
        for number, words in enumerate(commands):
            running[_plan(words, Path(name, str(number)))] = number
            while len(running) == _AT_ONCE or (running and number == len(commands) - 1):
                child, status = os.wait()
                ended[running.pop(child)] = status
        texts = [Path(name, str(number)).read_text() for number in range(len(commands))]
    json.dump([(ended[number], text) for number, text in enumerate(texts)], sys.stdout)


if __name__ == "__main__":
    _main()
