"""Health check of the endpoints of a preset before its first paid call: what they serve, and one short completion."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import openai
import orjson

from harness.benchmarks.prepare import read
from harness.concurrency import gather
from harness.errors import UserError
from harness.files import write_atomically
from harness.llm import endpoints
from harness.llm.backbones import Backbone
from harness.llm.endpoints import Endpoint
from harness.llm.request import Message, Request, Served
from harness.llm.servers import TRIES, MalformedReplyError, Server, find_served, http_client, unreachable, with_cause
from harness.runner import config, layout
from harness.runner.config import Preset
from harness.runner.setup import as_served

logger = logging.getLogger(__name__)

# Of vLLM and SGLang, and of Ollama.
_VERSIONS = ("/version", "/api/version")
_LIMIT_S = 10.0
# Backbones take between 3 and 5 bytes of English, code or mathematics for a token.
_BYTES_A_TOKEN = 3
# Role, output rules and chat template around a question.
_INSTRUCTIONS = 1024
# What every method's calls have: a system message, sampling, and a seed as large as any that is sent.
_PROMPT = (Message("system", "You are a helpful assistant."), Message("user", "Count from one to twenty in words."))
_SEED = (1 << 31) - 1
_TOKENS = 64
_COMPLETION_S = 120.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of one server of a backbone."""

    url: str
    served: Served
    version: str | None
    tokens_per_s: float  # of a single short completion, its prompt's time included


async def check(preset: Preset, benchmarks: Iterable[str]) -> list[Path]:
    """Ask every server of a preset what it serves; write that down for some benchmarks, and return the files, one each.

    Raises UserError with a line for each server that is down, refuses the key, does not serve what the preset asks,
    does not complete a prompt as calls need it, or cannot take the longest question; or where backbones are simulated
    or questions not prepared.
    """
    if preset.simulated:
        raise UserError(f"preset {preset.name} has simulated backbones, which need no server and no health check")
    asked = backbones_of(preset)
    places = config.servers(preset, asked)
    needed = {key: needs(preset, key) for key in benchmarks}
    async with http_client(sum(len(place.urls) for place in places.values())) as http:
        found = await gather(_answers(backbone, places[key], http) for key, backbone in asked.items())
    answers = {key: [a for a in of_key if isinstance(a, Answer)] for key, of_key in zip(asked, found, strict=True)}
    problems = [one for of_key in found for one in of_key if isinstance(one, str)]
    problems += [problem for key, of_key in answers.items() for problem in _too_short(key, of_key, needed)]
    if problems:
        raise UserError(
            f"{len(problems)} problem{'s' if len(problems) > 1 else ''} with the servers of preset {preset.name}:"
            + "".join(f"\n  {problem}" for problem in problems)
        )
    written = {layout.served(preset.name, key): _record(preset, asked, answers, needed[key]) for key in needed}
    for path, record in written.items():
        write_atomically(path, orjson.dumps(record, option=orjson.OPT_INDENT_2))
    return list(written)


def backbones_of(preset: Preset) -> dict[str, Backbone]:
    """Every backbone that a cell of a preset may ask, with the weights it has there."""
    keys = dict.fromkeys(key for cell in config.cells(preset) for key in config.backbones_of(preset, cell))
    declared = config.backbones(preset)
    return {key: backbone for key, backbone in declared.items() if key in keys}


def needs(preset: Preset, benchmark: str) -> int:
    """Tokens that an agent's longest prompt and reply may take, on the safe side, without what others wrote."""
    prepared = read(layout.manifest(preset.name, benchmark), layout.items(preset.name, benchmark))
    longest = max(len(item.question.encode()) for item in (*prepared.train, *prepared.test))
    reply = max(backbone.max_tokens for backbone in backbones_of(preset).values())
    return math.ceil(longest / _BYTES_A_TOKEN) + _INSTRUCTIONS + reply


async def _answers(backbone: Backbone, place: Endpoint, http: httpx2.AsyncClient) -> list[Answer | str]:
    async def ask(server: Server) -> Answer | str:
        try:
            served, _ = await find_served([server], backbone.key, backbone.model, place.served_name)
            as_served(backbone, served)
            rate = await _complete(backbone, server, place)
        except UserError as error:
            return str(error)
        return Answer(server.url, served, await _version(server.url, http), rate)

    try:
        servers = [Server(url, place, http) for url in place.urls]
        answers = await gather(map(ask, servers))
        if not any(isinstance(one, str) for one in answers):
            # Each alone is what was asked; whether they are alike is known of all together.
            await find_served(servers, backbone.key, backbone.model, place.served_name)
    except UserError as error:
        return [str(error)]
    return answers


async def _complete(backbone: Backbone, server: Server, place: Endpoint) -> float:
    """Return tokens a second of one short completion; UserError where it is refused, fails or could not be counted."""
    sampling = backbone.sampling._asdict()
    request = Request(backbone.model, None, _PROMPT, **sampling, max_tokens=_TOKENS, draw=_SEED)
    where, started = f"{server.url} of {backbone.key}", time.perf_counter()
    try:
        reply = await server.complete(request, within_s=min(place.timeout_s, _COMPLETION_S), tries=TRIES)
    except MalformedReplyError as error:
        raise UserError(f"{where} answers with {error}; {error.cure or 'see its log'}") from error
    except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
        raise UserError(
            f"{where} refuses a short completion ({error}); calls have a system message, a seed and "
            f"{', '.join(sampling)}: serve with a chat template that takes a system message, or, where it is a "
            f"parameter that it refuses, set `extended: false` in {endpoints.their_file()}"
        ) from error
    except (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError) as error:
        raise unreachable(backbone.key, server.url, error) from error
    except openai.APIError as error:
        raise UserError(f"{where} lists its models and completes no text ({with_cause(error)}); see its log") from error
    rate = reply.completion_tokens / (time.perf_counter() - started)
    logger.info("%s: %d tokens, %.0f a second", where, reply.completion_tokens, rate)
    return rate


async def _version(url: str, http: httpx2.AsyncClient) -> str | None:
    base = urlsplit(url)._replace(path="", query="", fragment="").geturl()
    for path in _VERSIONS:
        try:
            answer = await http.get(f"{base}{path}", timeout=_LIMIT_S)
            version = answer.json()["version"]
        except (httpx2.HTTPError, OSError, ValueError, LookupError, TypeError):
            continue
        if answer.is_success and isinstance(version, str):
            return version
    return None


def _too_short(key: str, answers: Iterable[Answer], needed: Mapping[str, int]) -> Iterator[str]:
    for one in answers:
        window = one.served.context_length
        if short := [f"{name} ({tokens})" for name, tokens in needed.items() if window is not None and tokens > window]:
            yield (
                f"{one.url} of {key} takes {window} tokens, prompt and reply together, too few for the longest "
                f"questions of {', '.join(short)}; start it with --max-model-len {max(needed.values())} or more"
            )


def _record(
    preset: Preset, asked: Mapping[str, Backbone], answers: Mapping[str, Sequence[Answer]], needed: int
) -> dict[str, Any]:
    return {
        "preset": preset.name,
        "asked": datetime.now(UTC).isoformat(timespec="seconds"),
        "weights": preset.weights,
        "tokens_needed": needed,
        "backbones": {
            key: {
                "model": backbone.model,
                "revision": as_served(backbone, answers[key][0].served).revision,
                "revision_confirmed": answers[key][0].served.revision is not None,
                "context_length": answers[key][0].served.context_length,
                "served_by": answers[key][0].served.owned_by,
                "servers": [
                    {
                        "url": answer.url,
                        "version": answer.version,
                        "loaded": answer.served.root,
                        "tokens_per_s": round(answer.tokens_per_s, 1),
                    }
                    for answer in answers[key]
                ],
            }
            for key, backbone in asked.items()
        },
    }
