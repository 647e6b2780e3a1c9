"""The smoke preset on a Slurm cluster of one node, a job of which is killed: the bytes of a run without a cluster.

    python -m tests.evidence.slurm

Needs root, Slurm and MUNGE (Debian: slurm-wlm, munge) and snakemake-executor-plugin-slurm, on a machine that is no node
of a cluster. The daemons, and /etc/slurm/slurm.conf, are there as long as this script runs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.evidence import smoke

_CONF = """\
ClusterName=evidence
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
PartitionName=evidence Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""
# SLURM_CONF would not do: the executor hides all variables of Slurm from the jobs it submits.
_ETC = Path("/etc/slurm/slurm.conf")
_VICTIM = "gmr/humaneval/pool/seed0"
_CALLS_BEFORE_ITS_DEATH = 100
_LATENCY_S = "0.2"


@contextmanager
def cluster(folder: Path) -> Iterator[None]:
    """A node that is a cluster, while the block runs."""
    host = socket.gethostname()
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    if _ETC.exists():
        sys.exit(f"{_ETC} is there already: this machine has a Slurm of its own")
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
        _until(lambda: "idle" in _said("sinfo", "--noheader", "--format", "%t"), 30, "the node is not up")
        yield
        _said("scancel", "--user", "root")


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="evidence-") as name:
        here, there = (smoke.checkout(Path(name, one)) for one in ("here", "there"))
        smoke.run(here)
        with smoke.simulated(here, "--latency", _LATENCY_S) as url, cluster(Path(name, "cluster")):
            started = time.monotonic()
            process = subprocess.Popen(
                smoke.command(
                    *("--workflow-profile", "profiles/slurm", "--slurm-no-account", "--slurm-status-command", "squeue"),
                    *("--slurm-init-seconds-before-status-checks", "3", "--default-resources", "mem_mb=1000"),
                ),
                cwd=there,
                env={**os.environ, "GMR_SIMULATED_URL": url},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            cell = there / "results/smoke/cells" / _VICTIM
            _until(
                lambda: len(smoke.asked(cell)) >= _CALLS_BEFORE_ITS_DEATH or process.poll() is not None,
                1800,
                "the cell to be killed does not start",
            )
            if process.returncode is not None:
                sys.exit(f"the run ended before its job could be killed, with status {process.returncode}")
            killed = _killed()
            # Its processes are gone a moment later.
            time.sleep(2)
            kept, before = smoke.logged(cell.parent)[cell], len(smoke.asked(cell))
            status = process.wait()
            seconds = time.monotonic() - started
        again = sum(key in kept for key in smoke.asked(cell)[before:])
        found = smoke.differences(here, there)
    print(f"Run on Slurm: exit status {status}, {seconds:.0f} s. Killed: job {killed}, after {before} calls.")
    print(f"Calls that its log held and that were asked again: {again}.")
    print(f"Files that differ from those of the run without Slurm: {len(found)}.")
    print(*found, sep="\n")
    sys.exit(bool(status or again or found))


def _killed() -> str:
    """Kill the job of the cell, as if its node had gone."""
    jobs = _said("squeue", "--noheader", "--states", "running", "--format", "%i %k").splitlines()
    job = next(line.split()[0] for line in jobs if "gmr" in line and "humaneval" in line)
    subprocess.run(["scancel", "--full", "--signal", "KILL", job], check=True)
    return job


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _until(happens: Callable[[], bool], seconds: float, otherwise: str) -> None:
    deadline = time.monotonic() + seconds
    while not happens():
        if time.monotonic() > deadline:
            sys.exit(otherwise)
        time.sleep(0.2)


if __name__ == "__main__":
    _main()
