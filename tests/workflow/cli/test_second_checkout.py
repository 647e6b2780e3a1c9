"""A second checkout with the environment of the first: the one in which a command is given counts."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.files import ROOT
from tests.docs import additions

# As the installed command does: the first checkout is found before the folder that one stands in.
FIRST = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from workflow.cli import main; main()"


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another checkout, with a preset that the first lacks."""
    folder = additions.suite(tmp_path_factory.mktemp("second") / "suite")
    shutil.copy(folder / "config/presets/smoke.yaml", folder / "config/presets/mine.yaml")
    return folder


def said(folder: Path, **environment: str) -> str:
    given = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    ended = subprocess.run(
        [sys.executable, "-c", FIRST, "show", "gmr", "gsm_hard", "--preset", "mine"],
        cwd=folder,
        env={**given, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 2
    return ended.stderr


def test_the_checkout_that_one_stands_in_counts(second: Path) -> None:
    assert said(second).startswith("error: gmr gsm_hard pool seed 0 of preset mine is not finished")
    (second / "elsewhere" / "results").mkdir(parents=True)
    assert said(second / "elsewhere").startswith("error: unknown preset 'mine'")


def test_where_python_takes_the_code_from_elsewhere_the_command_is_refused(second: Path) -> None:
    line = f"error: this is the gmr of {ROOT}, and {second.resolve()} is a checkout of its own"
    assert said(second, PYTHONPATH=str(second.resolve())).startswith(line)
