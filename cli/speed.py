"""Speed of a server: short completions, one and several at once, and reading of a long prompt."""

import random
import time
from dataclasses import replace

import openai
from pydantic import PositiveFloat, PositiveInt
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_exponential_jitter

from harness.concurrency import gather
from harness.errors import UserError
from harness.files import Declaration
from harness.llm import endpoints
from harness.llm.backbones import Backbone
from harness.llm.completion import MalformedReplyError, status_of
from harness.llm.request import GREEDY, Message, Reply, Request
from harness.llm.served_backbone import FIRST_WAIT_S, MAX_FAILURES, is_transient
from harness.llm.servers import REFUSES_ALL, Server, with_cause
from harness.thinking import without_thinking

# Like real calls: with system message, sampling and a seed of maximum size.
_PROMPT = (Message("system", "You are a helpful assistant."), Message("user", "Count from one to ninety in words."))
_SEED = (1 << 31) - 1
_LIMIT_S = 120.0
_LONGEST_WAIT_S = 2.0
# Reply tokens of a single request; minimum and maximum per concurrent request, which take about _TOGETHER_S in all.
_ALONE, _LEAST, _MOST = 32, 8, 64
_TOGETHER_S = 20.0
#: Maximum number of concurrent requests to one server.
AT_ONCE = 16
# Words of a long prompt, in random order to miss the prefix cache. About one token per word.
_WORDS = ("river", "stone", "seven", "green", "table", "north", "cloud", "paper", "light", "three")
_LENGTH = 600
# If one prompt is read faster than this, several prompts are sent at once to use the whole server.
_QUICK_S = 1.0
# Repetition penalty that changes greedy text within a few tokens, unless the server ignores penalties.
_PENALTY = 2.0


class Speed(Declaration):
    """Tokens per second of one server."""

    alone: PositiveFloat  # completion tokens, one request
    at_once: PositiveInt
    together: PositiveFloat  # completion tokens in total, ``at_once`` requests
    read: PositiveFloat  # prompt tokens, of an uncached long prompt

    def __str__(self) -> str:
        together = f", {self.together:.3g} with {self.at_once} at once" if self.at_once > 1 else ""
        return f"writes {self.alone:.3g} tokens a second alone{together}, reads {self.read:.3g}"


def short_request(backbone: Backbone, tokens: int, draw: int = _SEED) -> Request:
    """Build a request with all parameters of real calls and at most ``tokens`` tokens."""
    prompt, tokens = backbone.prompt(_PROMPT), min(tokens, backbone.max_tokens)
    sampling = backbone.sampling._asdict()
    return Request(backbone.model, None, prompt, **sampling, max_tokens=tokens, draw=draw, stop=backbone.stop)


async def complete(server: Server, request: Request) -> Reply:
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
        if (status := status_of(error)) in REFUSES_ALL:
            raise server.unreachable(error) from error
        if status not in (400, 422):
            problem = f"{server} lists its models but does not complete text ({with_cause(error)})"
            raise UserError(problem, "see its log") from error
        cure = (
            f"list in {endpoints.endpoints_file()} what it does not accept: `omit: [seed, ...]`, `extended: false` "
            "(top_k, min_p, repetition_penalty), `max_completion_tokens: true`; a chat template "
            "without a system role needs `system: merge` in the entry of the backbone"
        )
        raise UserError(f"{server} refuses a short completion ({error})", cure) from error


async def measure(backbone: Backbone, server: Server) -> tuple[Speed, list[str]]:
    """Measure the speed of a server. Return it with the server's shortcomings and their remedies.

    Takes seconds on a GPU. Raises UserError like :func:`complete`.
    """

    async def timed(*requests: Request) -> tuple[list[Reply], float]:
        start = time.perf_counter()
        replies = await gather(complete(server, request) for request in requests)
        return replies, time.perf_counter() - start

    endpoint = server.endpoint
    greedy = replace(short_request(backbone, _ALONE), **GREEDY._asdict())
    (first,), seconds = await timed(greedy)
    alone = max(first.completion_tokens, 1) / seconds
    at_once = min(endpoint.max_in_flight, AT_ONCE)
    tokens = min(max(int(alone * _TOGETHER_S / at_once), _LEAST), _MOST)
    requests = [short_request(backbone, tokens, _SEED - number) for number in range(at_once)]
    has_penalty = endpoint.extended and backbone.sampling.repetition_penalty != GREEDY.repetition_penalty
    if has_penalty:
        requests[0] = replace(greedy, max_tokens=requests[0].max_tokens, repetition_penalty=_PENALTY)
    replies, seconds = await timed(*requests)
    together = max(sum(reply.completion_tokens for reply in replies), 1) / seconds
    prompts, seconds = await timed(_long(greedy))
    if seconds < _QUICK_S:
        prompts, seconds = await timed(*(_long(greedy) for _ in range(at_once)))
    rates = {"alone": alone, "together": together, "read": sum(reply.prompt_tokens for reply in prompts) / seconds}
    speed = Speed(at_once=at_once, **{name: float(f"{rate:.3g}") for name, rate in rates.items()})
    lacks: list[str] = []
    if not first.text and first.finish_reason in ("tool_calls", "content_filter"):
        lacks.append(f"replies without text (finish_reason {first.finish_reason}), which counts as wrong")
    if (longest_s := backbone.max_tokens * at_once / speed.together) > endpoint.timeout_s:
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
    length = min(len(first.text), len(replies[0].text))
    if has_penalty and length and first.text[:length] == replies[0].text[:length]:
        lacks.append(
            f"ignores repetition_penalty, which the generation of {backbone.key} sets: remove it there, so that calls "
            "record how they were sampled, or use an engine that supports it (vLLM, llama.cpp)"
        )
    return speed, lacks


def _long(request: Request) -> Request:
    text = " ".join(random.choices(_WORDS, k=_LENGTH))  # noqa: S311
    return replace(request, messages=(Message("user", text),), max_tokens=1)
