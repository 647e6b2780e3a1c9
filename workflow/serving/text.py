"""What `gmr serve` prints: the plan of a deployment, and the state of its servers."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness.backbones import load_weights
from harness.files import ROOT
from workflow.serving import asking, launching, processes
from workflow.serving.deployment import Deployment, Gpus
from workflow.serving.memory import GIB, Share, groups, shares
from workflow.serving.processes import Process
from workflow.serving.starting import endpoints_text

_USUAL_LENGTH = 2048
_HEADS = ("server", "GPU", "weights", "cache a token", "cache holds", "sequences", "memory fraction", "")


def plan(deployment: Deployment, gpus: Gpus | None, executable: Sequence[str] = ("vllm", "serve")) -> tuple[str, bool]:
    """The plan of a deployment, and whether all of it fits.

    Args:
        deployment: Which.
        gpus: Its GPUs; ``None`` on a processor.
        executable: What the command lines begin with.
    """
    found = shares(deployment, gpus) if gpus is not None else []
    fits = all(share.fits for share in found)
    parts = [*_head(deployment, gpus)]
    if gpus is not None:
        parts += ["", table([_HEADS, *map(_row, found)]), "", *_loads(found, gpus)]
    if gpus is not None and not fits:
        parts += ["", *_unfit(deployment, gpus, found)]
    else:
        parts += [
            "",
            "Command lines:",
            *_commands(deployment, found, executable),
            "",
            "Entries of config/endpoints.yaml:",
        ]
        parts += [f"  {line}" for line in endpoints_text(deployment).splitlines()]
    return "\n".join(parts), fits


def _head(deployment: Deployment, gpus: Gpus | None) -> Iterator[str]:
    yield f"{deployment.name}: {deployment.description}"
    if deployment.weights:
        weights = load_weights(ROOT / "config" / "weights.yaml", deployment.weights)
        yield f"Weights {weights}: for presets with `weights: {weights.key}`, whose artefacts all say so."
    if gpus is not None:
        yield (
            f"{gpus.count} x GPU of {gpus.memory_gib:g} GiB, of which servers take {gpus.usable:.0%}; of each server on"
            f" each GPU {gpus.reserve_gib:g} GiB are kept for context, activations and graphs (assumed)."
        )
    yield (
        f"Prompt and reply together at most {deployment.window} tokens; at most {deployment.engine['max_num_seqs']} "
        "sequences at once in a server."
    )


def _row(share: Share) -> Sequence[str]:
    verdict = "" if share.fits else "DOES NOT FIT"
    where = "+".join(map(str, share.server.gpus))
    sequences = (
        f"{share.sequences(share.window)} of {share.window}, {share.sequences(_USUAL_LENGTH)} of {_USUAL_LENGTH}"
    )
    cache = f"{share.cache_gib_a_token * GIB / 1024:.0f} KiB"
    holds = f"{share.tokens} tokens"
    return (
        share.server.name,
        where,
        f"{share.weights_gib:.1f} GiB",
        cache,
        holds,
        sequences,
        f"{share.fraction:.3f}",
        verdict,
    )


def _loads(found: Sequence[Share], gpus: Gpus) -> Iterator[str]:
    for gpu in range(gpus.count):
        there = [share for share in found if gpu in share.server.gpus]
        taken = sum(share.fraction for share in there) * gpus.memory_gib
        yield f"GPU {gpu}: {taken:.1f} of {gpus.memory_gib:g} GiB, {len(there)} server{'s' if len(there) != 1 else ''}"


def _unfit(deployment: Deployment, gpus: Gpus, found: Sequence[Share]) -> Iterator[str]:
    unfit = [share for share in found if not share.fits]
    yield f"Does not fit: {', '.join(share.server.name for share in unfit)}."
    for share in unfit:
        if not share.splits:
            yield f"The attention of {share.server.name} cannot be split over {len(share.server.gpus)} GPUs evenly."
    together = groups(deployment, gpus)
    if together is not None:
        yield (
            "These fit side by side, one group at a time. Rows of one backbone can be run so; those that route over "
            "the pool need all of them:"
        )
        yield from (f"  {' '.join(f'--backbone {key}' for key in group)}" for group in together)
        return
    for key in dict.fromkeys(share.server.backbones[0] for share in unfit):
        (alone, *_) = shares(deployment.only([key]), gpus)
        if not alone.fits:
            enough = f"max_model_len at most {alone.tokens}" if alone.tokens else "no max_model_len"
            yield f"{key} fits alone with {enough}; with more GPUs, a larger one or smaller weights too."


def _commands(deployment: Deployment, found: Sequence[Share], executable: Sequence[str]) -> Iterator[str]:
    by_name = {share.server.name: share for share in found}
    for server in deployment.servers:
        variables = launching.environment(deployment, server)
        words = [*executable, *launching.arguments(deployment, server, by_name.get(server.name))]
        yield "  " + " ".join(
            [*(f"{name}={shlex.quote(value)}" for name, value in variables.items()), shlex.join(words)]
        )


def status(servers: Mapping[Path, Process]) -> str:
    """A table of processes, by the files that tell of them."""
    rows = [("server", "process", "address", "serves", "up for", "state", "memory", "running", "waiting")]
    for path, process in servers.items():
        alive = process.alive
        counted = asking.requests(process.url) if alive else None
        rows.append(
            (
                f"{path.parent.name}/{path.stem}",
                str(process.pid),
                process.url,
                " ".join(process.models),
                _for(time.time() - process.began) if alive else "",
                _state(process) if alive else "dead",
                _memory(process) if alive else "",
                *(map(str, counted) if counted is not None else ("", "")),
            )
        )
    return table(rows)


def _state(process: Process) -> str:
    return "ready" if asking.is_ready(process.url, process.models) else "starting"


def _memory(process: Process) -> str:
    on_gpu = _gpu_memory_gib(process)
    return f"{process.memory_gib():.1f} GiB{f', GPU {on_gpu:.1f} GiB' if on_gpu else ''}"


def _gpu_memory_gib(process: Process) -> float:
    """What the driver says its processes hold; 0 where there is none to ask."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return 0.0
    words = [tool, "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
    try:
        told = subprocess.run(words, capture_output=True, text=True, timeout=20, check=True)  # noqa: S603 - fixed words
    except (OSError, subprocess.SubprocessError):
        return 0.0
    members = set(process.members())
    pairs = [line.split(",") for line in told.stdout.splitlines()]
    return sum(float(used) for pid, used in pairs if int(pid) in members and used.strip().isdecimal()) / 1024


def _for(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows with their columns one below the other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def known(folder: Path) -> dict[Path, Process]:
    """The processes that files of a folder tell of, running or not.

    Raises:
        UserError: A file is none of ours.
    """
    found = {path: processes.read(path) for path in sorted(folder.glob("*.pid"))}
    return {path: process for path, process in found.items() if process is not None}
