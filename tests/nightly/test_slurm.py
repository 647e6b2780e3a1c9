"""The smoke preset on a one-node Slurm cluster, with a killed job, gives the same bytes as a local run.

Needs root, Slurm and MUNGE (Debian: slurm-wlm, munge) and snakemake-executor-plugin-slurm, on a machine outside
any cluster. The daemons and /etc/slurm/slurm.conf exist only during the test.
"""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.nightly import runs
from tests.planning import checkout

pytestmark = pytest.mark.nightly

_CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
CryptoType=crypto/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
MinJobAge=300
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} RealMemory=16000
PartitionName=test Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""
# SLURM_CONF would not do: the executor hides all variables of Slurm from the jobs it submits.
_ETC = Path("/etc/slurm/slurm.conf")
_VICTIM = "gmr/humaneval/pool/seed0"
_CALLS_BEFORE_ITS_DEATH = 100
_LATENCY_S = 0.2


@contextmanager
def cluster(folder: Path) -> Iterator[None]:
    host = socket.gethostname()
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    _ETC.parent.mkdir(exist_ok=True)
    _ETC.write_text(_CONF.format(host=host, folder=folder, cores=os.cpu_count()))
    Path("/run/munge").mkdir(exist_ok=True)
    shutil.chown("/run/munge", "munge", "munge")
    with ExitStack() as daemons:
        daemons.callback(_ETC.unlink)
        for command in (
            ["runuser", "-u", "munge", "--", "munged", "--foreground"],
            ["slurmctld", "-D"],
            ["slurmd", "-D", "-N", host],
        ):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            daemons.callback(process.wait)
            daemons.callback(process.terminate)
            time.sleep(1)
        runs.wait_until(lambda: "idle" in _said("sinfo", "--noheader", "--format", "%t"), 30)
        yield
        _said("scancel", "--user", "root")


@pytest.mark.skipif(shutil.which("slurmd") is None or _ETC.exists(), reason="needs Slurm, and no cluster of its own")
def test_a_job_that_dies_is_submitted_again_and_changes_nothing(tmp_path: Path) -> None:
    here, there = (checkout(tmp_path / one) for one in ("here", "there"))
    with runs.simulated(_LATENCY_S) as url, cluster(tmp_path / "cluster"):
        runs.run(here, url)
        process = runs.start(
            there,
            url,
            *("--workflow-profile", "profiles/slurm", "--slurm-no-account", "--slurm-status-command", "squeue"),
            *("--slurm-init-seconds-before-status-checks", "3", "--default-resources", "mem_mb=1000"),
        )
        cell = there / "results/smoke/cells" / _VICTIM
        runs.wait_until(lambda: len(runs.asked(cell)) >= _CALLS_BEFORE_ITS_DEATH or process.poll() is not None, 1800)
        assert process.returncode is None, "the run ended before its job could be killed"
        _kill()
        # Its processes are gone a moment later.
        time.sleep(2)
        repeats = runs.count_repeats(cell.parent)
        assert process.wait() == 0
    assert repeats() == 0
    assert runs.differences(here, there) == []


def _kill() -> None:
    """Kill the job of the cell, as if its node had gone."""
    jobs = _said("squeue", "--noheader", "--states", "running", "--format", "%i %k").splitlines()
    job = next(line.split()[0] for line in jobs if "gmr" in line and "humaneval" in line)
    subprocess.run(["scancel", "--full", "--signal", "KILL", job], check=True)


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
