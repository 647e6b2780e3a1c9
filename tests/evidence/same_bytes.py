"""The smoke preset with other latencies, questions in flight, cores and caches each time: one hash.

python -m tests.evidence.same_bytes [--runs 20] [--seed 0]
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.evidence import smoke

_MOST_IN_FLIGHT = 256
_LONGEST_LATENCY_S = 0.2
_MOST_CORES = 8
# What cells share and a run finds or does not.
_CACHES = ("cache",)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    chance = random.Random(asked.seed)
    hashes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="evidence-") as name:
        first = smoke.checkout(Path(name, "first"))
        smoke.run(first)
        hashes[smoke.digest(first)] += 1
        print(f"in process, {smoke.digest(first)[:16]}", flush=True)
        for number in range(1, asked.runs):
            latency = round(chance.uniform(0, _LONGEST_LATENCY_S), 3)
            in_flight = 1 if number == 1 else round(_MOST_IN_FLIGHT ** chance.random())
            # One question in flight is no run to wait for on one core.
            cores = _MOST_CORES if number == 1 else chance.randint(1, _MOST_CORES)
            folder = smoke.checkout(Path(name, "again"))
            cached = chance.random() < 0.75
            for cache in _CACHES if cached else ():
                shutil.copytree(first / "results" / cache, folder / "results" / cache)
            with smoke.simulated(first, "--latency", str(latency)) as url:
                words = ("--cores", str(cores), "--config", f"in_flight={in_flight}")
                smoke.run(folder, *words, environment={"GMR_SIMULATED_URL": url})
            found = smoke.digest(folder)
            hashes[found] += 1
            caches = "cached" if cached else "cold"
            print(f"{latency:.3f} s, {in_flight:3} in flight, {cores} cores, {caches}: {found[:16]}", flush=True)
            shutil.rmtree(folder)
    print(f"{hashes.total()} runs, {len(hashes)} different")
    sys.exit(len(hashes) > 1)


if __name__ == "__main__":
    _main()
