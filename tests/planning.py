"""Plan Snakemake runs without running them: one process loads Snakemake and forks a child for each plan."""

import json
import multiprocessing
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from harness.files import ROOT

PARTS = ("Snakefile", "workflow", "config", "profiles", "environment.yml")


def checkout(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in PARTS:
        (folder / name).symlink_to(ROOT / name)
    return folder


def copied_suite(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    modules = ("cli", "harness", "baselines", "gmr", "analysis", "docs", "snakemake_logger_plugin_gmr")
    for part in (*PARTS, *modules):
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / part, folder)
    return folder


Plans = Callable[[Sequence[Sequence[str]]], list[tuple[int, str]]]


@contextmanager
def planner(folder: Path) -> Iterator[Plans]:
    """Yield a function that returns status and output of dry runs in a folder, on its files at the call."""
    path = os.pathsep.join([str(folder), str(ROOT)])
    with subprocess.Popen(
        [sys.executable, "-m", "tests.planning"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        stdin, stdout = process.stdin, process.stdout

        def plans(commands: Sequence[Sequence[str]]) -> list[tuple[int, str]]:
            stdin.write(f"{json.dumps(list(commands))}\n")
            stdin.flush()
            return [(status, text) for status, text in json.loads(stdout.readline())]

        yield plans
        stdin.close()


def stand_in(folder: Path, program: str) -> None:
    """Write a program that a Snakemake calls in the place of ``gmr``."""
    (folder / "bin").mkdir()
    command = folder / "bin" / "gmr"
    command.write_text(program)
    command.chmod(0o755)


def snakemake_of(folder: Path) -> list[str]:
    """Command of a Snakemake that calls the stand-in for ``gmr``."""
    start = "import sys; sys.executable = sys.argv.pop(1); from snakemake.cli import main; main()"
    return [sys.executable, "-c", start, str(folder / "bin" / "python")]


def _load() -> None:
    """Load what every plan imports and reads, and the code whose fingerprint is a parameter of rules."""
    import smart_open  # noqa: F401
    import snakemake.cli

    import cli.reports  # noqa: F401
    from harness.fingerprint import fingerprint

    snakemake.cli.get_argument_parser()
    fingerprint([ROOT / name for name in ("harness", "gmr", "baselines", "analysis")])


def _plan(words: Sequence[str]) -> tuple[int, str]:
    import snakemake.cli

    with TemporaryFile("w+") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        sys.argv = ["snakemake", *words]
        status: object = 0
        try:
            snakemake.cli.main([*words, "--dry-run", "--nolock"])
        except SystemExit as ended:
            # sys.exit takes a number, or a line that is to be printed.
            status = ended.code
        sys.stdout.flush()
        sys.stderr.flush()
        file.seek(0)
        return bool(status), file.read() + (status if isinstance(status, str) else "")


if __name__ == "__main__":
    _load()
    for line in sys.stdin:
        with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
            print(json.dumps(pool.map(_plan, json.loads(line), chunksize=1)), flush=True)  # noqa: T201
