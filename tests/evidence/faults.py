"""The smoke preset at a server that fails often: its results must be those of a server that never does.

python -m tests.evidence.faults [--faults config/faults.yaml]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

import orjson

from harness.files import ROOT
from tests.evidence import smoke


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=Path, default=ROOT / "config" / "faults.yaml")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="evidence-") as name:
        calm, rough = (smoke.checkout(Path(name, one)) for one in ("calm", "rough"))
        smoke.run(calm)
        with smoke.simulated(calm, "--faults", str(asked.faults)) as url:
            # Cells that wait for faults to pass need no core of their own.
            smoke.run(rough, "--cores", "8", environment={"GMR_SIMULATED_URL": url})
        errors = Counter(_kind(attempt["error"]) for attempt in _attempts(rough))
        found = smoke.differences(calm, rough)
    print("| Attempts | of them | |\n|---:|---:|---|")
    for kind, count in errors.most_common():
        print(f"| | {count} | {kind or 'answered'} |")
    print(f"| {errors.total()} | | all |\n")
    print(f"Files that differ from those of the run without faults: {len(found)}.")
    print(*found, sep="\n")
    sys.exit(bool(found))


def _attempts(folder: Path) -> list[dict[str, str | None]]:
    lines = [line for path in folder.rglob("attempts.jsonl") for line in path.read_bytes().splitlines()]
    return [orjson.loads(line) for line in lines]


def _kind(error: str | None) -> str:
    return (error or "").partition(":")[0]


if __name__ == "__main__":
    _main()
