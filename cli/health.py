"""Health check of the endpoints of a preset before its first paid call: what they serve, and how fast."""

import logging
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx2
import orjson
from filelock import AsyncFileLock

from cli.parent import PLANNED
from cli.speed import AT_ONCE, complete, measure, short_request
from harness.benchmarks.prepare import read
from harness.concurrency import gather
from harness.errors import UserError
from harness.files import write_atomically, writing
from harness.llm.backbones import Backbone, as_served
from harness.llm.endpoints import Endpoint
from harness.llm.servers import Server, http_client
from harness.runner import layout
from harness.runner.run import Run

logger = logging.getLogger(__name__)

# Version addresses of vLLM and SGLang, and of Ollama.
_VERSIONS = ("/version", "/api/version")
_LIMIT_S = 10.0
# Tokens of English, code or mathematics have 3 to 5 bytes.
_BYTES_A_TOKEN = 3
# Tokens of role, output rules and chat template around a question.
_INSTRUCTIONS = 1024
_TOKENS = 16


async def check(run: Run, benchmarks: Iterable[str]) -> list[Path]:
    """Check what the servers of a preset serve and measure their speed; write one file per benchmark.

    Servers are measured one after another, since they may share a machine.

    Raises:
        UserError: if no server is asked or questions are not prepared. Otherwise it lists each server that is
            unreachable, refuses the API key, does not serve the backbone, cannot complete a prompt, or has too short a
            context for the longest question.
    """
    if not run.served:
        raise UserError(f"preset {run.name} has {run.endpoints} backbones, which need no health check")
    backbones = backbones_of(run)
    endpoints = run.servers_of(backbones)
    needed = {key: tokens_needed(run, key) for key in benchmarks}
    # Snakemake runs one check per benchmark. In parallel they would slow each other down.
    lock = layout.served(run.name, "any").with_name(".lock")
    with writing(lock):
        lock.parent.mkdir(parents=True, exist_ok=True)
        held = await AsyncFileLock(lock).acquire()
    async with held:
        record = _record_of_this_run(run, endpoints)
        if record is None:
            record = {
                "preset": run.name,
                "asked": datetime.now(UTC).isoformat(timespec="seconds"),
                "weights": run.weights,
                "backbones": await _ask(run, backbones, endpoints, needed),
            }
        else:
            _refuse(run, [*_too_short(backbones, record["backbones"], needed)])
        for key, tokens in needed.items():
            content = orjson.dumps({**record, "tokens_needed": tokens}, option=orjson.OPT_INDENT_2)
            write_atomically(layout.served(run.name, key), content)
    return [layout.served(run.name, key) for key in needed]


def backbones_of(run: Run) -> dict[str, Backbone]:
    """Backbones that the preset's cells may call, with its weights."""
    keys = {key for cell in run.cells() for key in run.cell(cell).backbones}
    return {key: backbone for key, backbone in run.declared.items() if key in keys}


def tokens_needed(run: Run, benchmark: str) -> int:
    """Upper bound on the tokens of the longest prompt and reply, without other agents' texts."""
    prepared = read(layout.manifest(run.name, benchmark), layout.items(run.name, benchmark))
    longest = max(len(item.question.encode()) for item in (*prepared.train, *prepared.test))
    reply = max(backbone.max_tokens for backbone in backbones_of(run).values())
    return math.ceil(longest / _BYTES_A_TOKEN) + _INSTRUCTIONS + reply


def _record_of_this_run(run: Run, endpoints: Mapping[str, Endpoint]) -> dict[str, Any] | None:
    """Record that another job of the same Snakemake run wrote about the same servers. None outside Snakemake."""
    planned_ns = float(os.environ.get(PLANNED, math.inf))
    urls = {key: endpoint.url for key, endpoint in endpoints.items()}
    for path in sorted(layout.served(run.name, "any").parent.glob("*.json")):
        if path.stat().st_mtime_ns >= planned_ns:
            record: dict[str, Any] = orjson.loads(path.read_bytes())
            if {key: entry["url"] for key, entry in record["backbones"].items()} == urls:
                return record
    return None


async def _ask(
    run: Run, backbones: Mapping[str, Backbone], endpoints: Mapping[str, Endpoint], needed: Mapping[str, int]
) -> dict[str, Any]:
    """Describe and measure all servers. Raises one UserError that lists every problem."""
    async with http_client(AT_ONCE + len(endpoints)) as http:
        servers = {key: Server(key, endpoints[key], http) for key in backbones}
        answers = await gather(_describe(backbones[key], servers[key], http) for key in backbones)
        entries = {key: entry for key, entry in zip(backbones, answers, strict=True) if isinstance(entry, dict)}
        problems = [answer for answer in answers if isinstance(answer, UserError)]
        _refuse(run, [*problems, *_too_short(backbones, entries, needed)])
        for key, backbone in backbones.items():
            try:
                speed, lacks = await measure(backbone, servers[key])
            except UserError as error:
                problems.append(error)
                continue
            if entries[key]["context_length"] is None:
                lacks.append(
                    f"does not report its context length ({backbone.context_length or 'none'} in its entry): start "
                    f"it with room for {max(needed.values(), default=0)} tokens or more, since it may silently "
                    "truncate longer prompts (Ollama: OLLAMA_CONTEXT_LENGTH)"
                )
            logger.info("%s %s", servers[key], speed)
            for lack in lacks:
                logger.warning("%s %s", servers[key], lack)
            entries[key] |= {"speed": speed.model_dump(), "lacks": lacks}
        _refuse(run, problems)
    return entries


def _refuse(run: Run, problems: list[UserError]) -> None:
    """Raise a UserError that lists the problems, if any, with each cure once."""
    if problems:
        number = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
        cures = dict.fromkeys(problem.cure for problem in problems if problem.cure)
        lines = [*(problem.problem for problem in problems), *(f"-> {cure}" for cure in cures)]
        raise UserError(f"{number} with the servers of preset {run.name}:", lines=lines)


async def _describe(backbone: Backbone, server: Server, http: httpx2.AsyncClient) -> dict[str, Any] | UserError:
    """Describe what a server serves, or return its problem."""
    try:
        served = await server.served(backbone.model)
        revision = as_served(backbone, served).revision
        await complete(server, short_request(backbone, _TOKENS))
    except UserError as error:
        return error
    return {
        "model": backbone.model,
        "revision": revision,
        "revision_confirmed": served.revision is not None,
        "context_length": served.context_length,
        "served_by": served.owned_by,
        "url": server.endpoint.url,
        "version": await _version(server.endpoint.url, http),
        "loaded": served.root,
    }


async def _version(url: str, http: httpx2.AsyncClient) -> str | None:
    for path in _VERSIONS:
        try:
            answer = await http.get(urljoin(url, path), timeout=_LIMIT_S)
            version = answer.json()["version"]
        except (httpx2.HTTPError, OSError, ValueError, LookupError, TypeError):
            continue
        if answer.is_success and isinstance(version, str):
            return version
    return None


def _too_short(
    backbones: Mapping[str, Backbone], entries: Mapping[str, Mapping[str, Any]], needed: Mapping[str, int]
) -> Iterator[UserError]:
    for key, entry in entries.items():
        window = entry["context_length"] or backbones[key].context_length
        if short := [f"{name} ({tokens})" for name, tokens in needed.items() if window is not None and tokens > window]:
            yield UserError(
                f"{entry['url']} of {key} takes {window} tokens, prompt and reply together, too few for "
                f"the longest questions of {', '.join(short)}",
                f"start it with --max-model-len {max(needed.values())} or more (llama.cpp: -c, of which each of -np "
                "gets its part)",
            )
