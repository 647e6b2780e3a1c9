"""A search in a process of its own, killed without a word in the middle of a round, and continued."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from harness.files import ROOT
from tests.baselines.aflow.test_method import content, facts, levels, searched, searching

SCRIPT = """
import asyncio, os, signal, sys
from pathlib import Path
from tests.baselines.aflow.test_method import levels, searched, searching

model = searching(*levels(4, 6, 3))
inner = model.rule

def rule(request):
    if len(model.asked) == 22:
        os.kill(os.getpid(), signal.SIGKILL)
    return inner(request)

model.rule = rule
asyncio.run(searched(Path(sys.argv[1]), model, max_rounds=3))
"""


async def test_a_killed_search_ends_in_the_same_bytes(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "killed")]
    assert subprocess.run(command, cwd=ROOT, timeout=120).returncode == -signal.SIGKILL
    assert (tmp_path / "killed" / "checkpoints" / "epoch-02.safetensors").exists()
    assert not (tmp_path / "killed" / "checkpoints" / "epoch-03.safetensors").exists()
    await searched(tmp_path / "killed", searching(*levels(4, 6, 3)[1:]), max_rounds=3)
    await searched(tmp_path / "whole", searching(*levels(4, 6, 3)), max_rounds=3)
    assert content(tmp_path / "killed") == content(tmp_path / "whole")
    assert len(facts(tmp_path / "killed")["search"]) == 4
