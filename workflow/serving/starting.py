"""Starting the servers of a deployment and waiting until all are ready."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from harness.errors import UserError
from harness.files import write_atomically
from workflow.serving import asking, cures, launching, processes, tiny
from workflow.serving.deployment import RANDOM, Deployment, Server
from workflow.serving.memory import Share, shares
from workflow.serving.processes import Process

logger = logging.getLogger(__name__)

ENDPOINTS = "endpoints.yaml"
_LOOK_EVERY_S = 1.0
_TELL_EVERY_S = 20.0


@dataclass(frozen=True)
class Starting:
    """A server that was started, and has not been seen ready."""

    server: Server
    process: Process
    log: Path


def pid_file(folder: Path, server: str) -> Path:
    """Where word is left of a server's process."""
    return folder / f"{server}.pid"


def up(deployment: Deployment) -> None:
    """Start the servers that do not run, and return when all are ready.

    Servers that share a GPU are started one after another, since each measures what memory is free.

    Raises:
        UserError: What is served would not fit, there is no vLLM, a port is taken, or a server died: which, its last
            words, and what usually helps. The others go on.
    """
    processes.check_system()
    found = _shares(deployment)
    waiting, starting = _states(deployment)
    command = launching.vllm() if waiting else []
    for server in waiting:
        processes.check_port(deployment.host, server.port)
    if deployment.weights == RANDOM:
        tiny.make(deployment.folder / "model")
    died: list[Starting] = []
    told = time.monotonic()
    while waiting or starting:
        busy = {gpu for one in starting for gpu in one.server.gpus}
        for server in list(waiting):
            if busy & set(server.gpus):
                continue
            waiting.remove(server)
            starting.append(_start(deployment, server, found.get(server.name), command))
            busy |= set(server.gpus)
        time.sleep(_LOOK_EVERY_S)
        for one in list(starting):
            if not one.process.alive:
                died.append(one)
            elif asking.is_ready(one.process.url, one.process.models):
                logger.info("%s: ready at %s after %.0f s", one.server.name, one.process.url, _age_s(one.process))
            else:
                continue
            starting.remove(one)
        if starting and time.monotonic() - told > _TELL_EVERY_S:
            told = time.monotonic()
            _tell(starting)
    if died:
        raise UserError("\n".join(map(_last_words, died)))
    path = deployment.folder / ENDPOINTS
    write_atomically(path, endpoints_text(deployment))
    logger.info("all %d servers of %s are ready; their addresses: %s", len(deployment.servers), deployment.name, path)


def endpoints_text(deployment: Deployment) -> str:
    """The entries of ``config/endpoints.yaml`` that match a deployment, as YAML."""
    lines = (
        yaml.safe_dump({key: entry}, default_flow_style=None, width=200, sort_keys=False)
        for key, entry in deployment.endpoints().items()
    )
    return "".join(lines)


def _shares(deployment: Deployment) -> Mapping[str, Share]:
    if deployment.gpus is None:
        return {}
    found = {share.server.name: share for share in shares(deployment, deployment.gpus)}
    if unfit := [name for name, share in found.items() if not share.fits]:
        raise UserError(
            f"{', '.join(unfit)} would not fit; `gmr serve plan --deployment {deployment.name}` says what does, and "
            "--backbone and --gpu-memory are for `up` too"
        )
    return found


def _states(deployment: Deployment) -> tuple[list[Server], list[Starting]]:
    """The servers that do not run, and those that are being started."""
    waiting, starting = [], []
    for server in deployment.servers:
        process = processes.read(pid_file(deployment.folder, server.name))
        if process is None or not process.alive:
            if process is not None:
                # What it left behind would hold its port and its memory.
                processes.stop(process)
            waiting.append(server)
        elif asking.is_ready(process.url, process.models):
            logger.info("%s: runs already at %s", server.name, process.url)
        else:
            starting.append(Starting(server, process, _log(deployment, server)))
    return waiting, starting


def _start(deployment: Deployment, server: Server, share: Share | None, command: Sequence[str]) -> Starting:
    log = _log(deployment, server)
    words = [*command, *launching.arguments(deployment, server, share)]
    variables = launching.started_with(launching.environment(deployment, server))
    process = processes.start(words, variables, log, deployment.url(server), server.models)
    processes.write(pid_file(deployment.folder, server.name), process)
    logger.info("%s: started, process %d, log %s", server.name, process.pid, log)
    return Starting(server, process, log)


def _log(deployment: Deployment, server: Server) -> Path:
    return deployment.folder / f"{server.name}.log"


def _age_s(process: Process) -> float:
    return time.time() - process.began


def _tell(starting: Sequence[Starting]) -> None:
    for one in starting:
        last = (cures.last_lines(one.log, 1) or ["nothing in its log yet"])[0]
        logger.info("%s: starting for %.0f s; %s", one.server.name, _age_s(one.process), last)


def _last_words(one: Starting) -> str:
    lines = "".join(f"\n    {line}" for line in cures.last_lines(one.log))
    advice = cures.cure(one.log)
    helps = f"; {advice}" if advice else ""
    return f"{one.server.name} died after it was started{helps}. The end of {one.log}:{lines or ' (empty)'}"
