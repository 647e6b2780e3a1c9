"""Check of a preset's servers before the first paid call: what they serve, how fast, and what they lack."""

import logging
import math
import random
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace

import openai
import orjson
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_exponential_jitter

from harness.benchmarks.reading import without_thinking
from harness.concurrency import gather
from harness.errors import UserError
from harness.files import write_atomically
from harness.llm.backbones import Backbone, as_served
from harness.llm.completion import MalformedReplyError, uncounted, without_text
from harness.llm.request import Message, Reply, Request
from harness.llm.served_backbone import FIRST_WAIT_S, MAX_FAILURES, is_transient
from harness.llm.servers import Server, http_client
from harness.runner import layout
from harness.runner.plan import questions
from harness.runner.run import Run

logger = logging.getLogger(__name__)

# Tokens of English, code or mathematics have 3 to 5 bytes.
_BYTES_A_TOKEN = 3
# Tokens of role, output rules and chat template around a question.
_INSTRUCTIONS = 1024
# Like real calls: with system message, sampling and a seed of maximum size.
_PROMPT = (Message("system", "You are a helpful assistant."), Message("user", "Count from one to ninety in words."))
_SEED = (1 << 31) - 1
_LIMIT_S = 120.0
_LONGEST_WAIT_S = 2.0
# Reply tokens of a request.
_TOKENS = 32
# Maximum number of concurrent requests to one server.
_AT_ONCE = 16
# Words of a long prompt, in random order to miss the prefix cache. One or two tokens per word.
_WORDS = ("river", "stone", "seven", "green", "table", "north", "cloud", "paper", "light", "three")
_LENGTH = 300


async def check(run: Run) -> None:
    """Check a preset's servers, and write their speed and shortcomings to ``results/PRESET/served.json``.

    Servers are measured one after another, since they may share a machine.

    Raises:
        UserError: lists each server that is unreachable, refuses the API key, does not serve the backbone, cannot
            complete a prompt, or has too short a context for the longest question.
    """
    keys = {key for cell in run.cells() for key in run.cell(cell).backbones}
    backbones = {key: backbone for key, backbone in run.declared.items() if key in keys}
    reply = max(backbone.max_tokens for backbone in backbones.values())
    needed = {benchmark: _longest_prompt(run, benchmark) + reply for benchmark in run.benchmarks}
    addresses = run.servers_of(backbones)
    async with http_client(_AT_ONCE + len(addresses)) as http:
        servers = {key: Server(key, addresses[key], http) for key in backbones}
        windows = await gather(_window(backbones[key], servers[key], needed) for key in backbones)
        if problems := [each for each in windows if isinstance(each, UserError)]:
            number = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
            cures = dict.fromkeys(problem.cure for problem in problems if problem.cure)
            lines = [*(problem.problem for problem in problems), *(f"-> {cure}" for cure in cures)]
            raise UserError(f"{number} with the servers of preset {run.name}:", lines=lines)
        entries = {}
        for (key, server), window in zip(servers.items(), windows, strict=True):
            speed, lacks = await _measure(backbones[key], server)
            if window is None:
                lacks.append(
                    f"does not report its context length ({backbones[key].context_length or 'none'} in its entry): "
                    f"start it with room for {max(needed.values(), default=0)} tokens or more, since it may silently "
                    "truncate longer prompts (Ollama: OLLAMA_CONTEXT_LENGTH)"
                )
            rates = "writes {write:.3g} and reads {read:.3g} tokens a second with {at_once} requests at once"
            logger.info("%s %s", server, rates.format(**speed))
            for lack in lacks:
                logger.warning("%s %s", server, lack)
            entries[key] = {**speed, "lacks": lacks}
    record = {"weights": run.weights, "backbones": entries}
    write_atomically(layout.served(run.name), orjson.dumps(record, option=orjson.OPT_INDENT_2))


def _longest_prompt(run: Run, benchmark: str) -> int:
    """Upper bound on the tokens of the longest prompt of a benchmark, without other agents' texts."""
    prepared = questions(run, benchmark)
    longest = max(len(item.question.encode()) for item in (*prepared.train, *prepared.test))
    return math.ceil(longest / _BYTES_A_TOKEN) + _INSTRUCTIONS


async def _window(backbone: Backbone, server: Server, needed: Mapping[str, int]) -> int | UserError | None:
    """Return the context length that a server reports, or its problem. ``needed`` are tokens by benchmark."""
    try:
        served = await server.served(backbone.model)
        as_served(backbone, served)
        await _complete(server, _request(backbone, _TOKENS))
        window = served.context_length or backbone.context_length or math.inf
        if short := [f"{benchmark} ({tokens})" for benchmark, tokens in needed.items() if tokens > window]:
            problem = f"{server} takes {window} tokens, prompt and reply together, too few for the longest questions of"
            cure = f"start it with --max-model-len {max(needed.values())} or more (llama.cpp: -c, divided among -np)"
            raise UserError(f"{problem} {', '.join(short)}", cure)
    except UserError as error:
        return error
    return served.context_length


def _request(backbone: Backbone, tokens: int, draw: int = _SEED) -> Request:
    """Build a request with all parameters of real calls and at most ``tokens`` tokens."""
    return backbone.request(_PROMPT, backbone.sampling, max_tokens=min(tokens, backbone.max_tokens), draw=draw)


async def _complete(server: Server, request: Request) -> Reply:
    """Request a completion. If it is refused, fails, or has no token count, the UserError names the remedy."""
    # Retries like a real call, so that a server that is good enough for a run passes.
    retrying = AsyncRetrying(
        retry=retry_if_exception(lambda error: is_transient(error) and not getattr(error, "cure", "")),
        wait=wait_exponential_jitter(multiplier=FIRST_WAIT_S, max=_LONGEST_WAIT_S),
        stop=stop_after_attempt(MAX_FAILURES),
        reraise=True,
    )
    try:
        return await retrying(server.complete, request, within_s=min(server.endpoint.timeout_s, _LIMIT_S))
    except MalformedReplyError as error:
        raise UserError(f"{server} answers with {error}", error.cure or "see its log") from error
    except openai.APIError as error:
        raise server.refused(error) from error


async def _measure(backbone: Backbone, server: Server) -> tuple[dict[str, float], list[str]]:
    """Measure a server's tokens per second. Return them with its shortcomings and their remedies.

    ``write`` are completion tokens and ``read`` prompt tokens of ``at_once`` concurrent requests. Takes seconds on a
    GPU. Raises UserError like :func:`_complete`.
    """

    async def timed(requests: Iterable[Request]) -> tuple[list[Reply], float]:
        start = time.perf_counter()
        replies = await gather(_complete(server, request) for request in requests)
        return replies, time.perf_counter() - start

    endpoint, at_once = server.endpoint, min(server.endpoint.max_in_flight, _AT_ONCE)
    replies, seconds = await timed(_request(backbone, _TOKENS, _SEED - number) for number in range(at_once))
    write, first = max(sum(reply.completion_tokens for reply in replies), 1) / seconds, replies[0]
    texts = (" ".join(random.choices(_WORDS, k=_LENGTH)) for _ in range(at_once))  # noqa: S311
    long = [replace(_request(backbone, 1), messages=(Message("user", text),)) for text in texts]
    prompts, seconds = await timed(long)
    read = sum(reply.prompt_tokens for reply in prompts) / seconds
    lacks = [*without_text(first), *uncounted(long[0], prompts[0])]
    if (longest_s := backbone.max_tokens * at_once / write) > endpoint.timeout_s:
        lacks.append(
            f"writes {backbone.max_tokens} tokens in {longest_s:.0f} s with {at_once} requests at once, and an attempt "
            f"ends after {endpoint.timeout_s:g} s: lower max_in_flight or the backbone's max_tokens, or raise timeout_s"
        )
    if first.finish_reason == "length" and not without_thinking(first.text, cut_off=True).strip():
        lacks.append(
            f"thinks before it answers: of {first.completion_tokens} tokens none was answer. A call has max_tokens "
            f"{backbone.max_tokens} for both, is charged for both, and counts as truncated where thinking takes all: "
            f"give the entry of {backbone.key} room (max_tokens: 16384), or switch thinking off (docs/own-models.md)"
        )
    return {"at_once": at_once, "write": float(f"{write:.3g}"), "read": float(f"{read:.3g}")}, lacks
