"""The Croissant library reads the data sets in evidence/ without a warning and finds every row."""

import subprocess
import venv
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from harness.files import ROOT

pytestmark = pytest.mark.nightly

_READ = """
import sys, mlcroissant
data = mlcroissant.Dataset(sys.argv[1])
ctx = data.metadata.ctx
print(ctx.issues.report(), ctx.conforms_to.value, *(sum(1 for _ in data.records(name)) for name in sys.argv[2:]))
"""


def test_every_description_is_valid_and_its_records_are_found(tmp_path: Path) -> None:
    # In an environment of its own, since it installs type stubs of pandas, which mypy would read.
    venv.create(tmp_path, with_pip=True)
    python = tmp_path / "bin" / "python"
    install = ["install", "--quiet", "--disable-pip-version-check", "-c", ROOT / "constraints.txt"]
    subprocess.run([python, "-m", "pip", *install, "mlcroissant==1.1.1", "pyarrow"], check=True)
    descriptions = sorted((ROOT / "evidence").glob("*/croissant.json"))
    assert descriptions
    for path in descriptions:
        tables = sorted(path.parent.glob("*.parquet"))
        words = [python, "-c", _READ, path, *(table.stem for table in tables)]
        ended = subprocess.run(words, capture_output=True, text=True, check=False)
        rows = [str(pq.read_metadata(table).num_rows) for table in tables]
        assert ended.stdout.split() == ["http://mlcommons.org/croissant/1.1", *rows], ended.stdout + ended.stderr
