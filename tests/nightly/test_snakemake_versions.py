"""The workflow on the oldest supported and the newest Snakemake: runs and links."""

import os
import re
import site
import sys
import venv
from pathlib import Path

import pytest

from harness.files import ROOT
from tests.command import program
from tests.planning import checkout

pytestmark = pytest.mark.nightly

OLDEST = re.search(r'"snakemake>=([\d.]+)"', (ROOT / "pyproject.toml").read_text())[1]  # type: ignore[index]
TARGET = "reports/errors.md"
CONFIG = ["--config", "preset=smoke", "methods=[single]", "benchmarks=[gsm_hard]", "limit={test: 4}"]


@pytest.fixture(scope="module", params=[f"snakemake=={OLDEST}", "snakemake"])
def interpreter(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an environment with one version of Snakemake and, for the rest, the packages of this one."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    (packages / "parent.pth").write_text("\n".join([str(ROOT), *site.getsitepackages()]))
    python = folder / "bin" / "python"
    program(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade", request.param)
    return python


def test_a_run_and_its_link(interpreter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = checkout(tmp_path / "place")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    command = (interpreter, "-m", "snakemake", "--cores", "2")
    assert f"made: {TARGET}" in program(*command, TARGET, *CONFIG, folder=place)
    assert (place / TARGET).readlink() == Path("smoke/errors.md")
    assert "No rule to produce reports/nothing.md; " in program(*command, "reports/nothing.md", folder=place, status=1)
