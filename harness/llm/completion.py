"""Parse chat completions in the dialects of several engines."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
import httpx2
import openai
from openai.types.chat import ChatCompletion

from harness.benchmarks.reading import without_thinking
from harness.llm.backbones import endpoints_file
from harness.llm.request import ANY, Reply, Request

# Finish reasons of a complete generation, by OpenAI's names.
_REASONS = {name: name for name in ("stop", "length", "content_filter", "tool_calls")}
# Names of text-generation-inference, Anthropic, Google, Cohere and Mistral. Words that may mean an incomplete
# generation, such as `abort` or `error`, are left out.
_REASONS |= dict.fromkeys(("eos", "eos_token", "end_turn", "stop_sequence", "complete", "completed"), "stop")
_REASONS |= dict.fromkeys(("max_tokens", "max_new_tokens", "max_length", "model_length"), "length")
_REASONS |= {"repetition_truncation": "length", "function_call": "tool_calls"}
_FILTERED = ("safety", "refusal", "sensitive", "recitation", "blocklist", "prohibited_content", "guardrail_intervened")
_REASONS |= dict.fromkeys(_FILTERED, "content_filter")
# Errors about one prompt that a filter refused. 1301 is a code of GLM.
_REFUSED = re.compile(r"content.(?:filter|policy|management)|data_inspection|moderation|flagged|^1301\b", re.IGNORECASE)
# Errors that no retry helps against today.
_SPENT = re.compile(r"insufficient.quota|per.?day|daily|\b[RT]PD\b", re.IGNORECASE)
# Bytes of a prompt by token above which a server has surely not counted all of it.
_MOST_BYTES = 40
_REPORT_USAGE = "nothing can be charged without counts of tokens: let it report `usage`, or serve by another engine"
# Allowance for tokens that are in no message, such as a chat template's system prompt.
_UNSEEN_TOKENS = 4096
_TOO_MANY_REQUESTS = re.compile(r"rate.?limit|too.?many|insufficient.quota", re.IGNORECASE)
# Time without any reply before a cell stops. A restart resumes from the log.
OUTAGE_S = 600.0
# Error bodies may repeat the whole request.
_LONGEST_REASON = 300
# Placeholder for errors that the library did not raise itself; never shown.
_GATEWAY = httpx2.Request("POST", "http://gateway/")


class MalformedReplyError(Exception):
    """The response does not complete the request. The message can be stored in a call log, so it names no host."""

    def __init__(self, message: str, cure: str = "", tokens: tuple[int, int] | None = None) -> None:
        super().__init__(message)
        self.cure = cure  # what to change at the server, if all its replies are likely affected
        self.tokens = tokens  # prompt and completion tokens, if the server may charge for them


def parse(completion: ChatCompletion, request: Request, names: Sequence[str]) -> Reply:
    """Convert a completion to a reply. The library parsed it without type checks. ``names`` are the model's names.

    Raises MalformedReplyError if it does not complete the request, APIStatusError for an error sent with status 200.
    """
    try:
        _raise_error(getattr(completion, "error", None))
        has_choices = "choices" in getattr(completion, "model_fields_set", ())
        if not has_choices or (completion.choices and completion.choices[0].message is None):
            cure = f"correct its url in {endpoints_file()}, which has to lead to OpenAI's chat completions"
            raise MalformedReplyError(f"{str(completion)[:_LONGEST_REASON]!r}, which is no chat completion", cure)
        choice, usage = completion.choices[0], completion.usage
        _raise_error(getattr(choice, "error", None))
        # A lone surrogate (a damaged character) cannot be stored.
        text = _text(choice.message.content).encode("utf-8", "replace").decode()
        is_refusal = not text and getattr(choice.message, "refusal", None)
        reason: Any = "refusal" if is_refusal else choice.finish_reason
        tokens: Any = (usage.prompt_tokens, usage.completion_tokens) if usage else (None, None)
        prompt_tokens, completion_tokens = tokens
        model = completion.model
    except (AttributeError, LookupError, TypeError) as error:
        raise MalformedReplyError("JSON whose `choices` hold no text of a chat completion") from error
    # A text never has more tokens than bytes. type() is compared because True is an int.
    prompt_limit = sum(len(message.content.encode()) for message in request.messages) + _UNSEEN_TOKENS
    if not (
        (type(prompt_tokens), type(completion_tokens)) == (int, int)
        and 1 <= prompt_tokens <= prompt_limit
        and bool(text) <= completion_tokens <= request.max_tokens + _UNSEEN_TOKENS
    ):
        what = f"a chat completion with no possible usage ({prompt_tokens!r} and {completion_tokens!r} tokens)"
        raise MalformedReplyError(what, _REPORT_USAGE, (0, 0))
    if not reason and text:
        # Without a finish reason, the token count says whether the reply was cut off.
        reason = "stop" if completion_tokens < request.max_tokens else "length"
    if (finish_reason := _REASONS.get(str(reason).lower())) is None:
        raise MalformedReplyError(f"a completion that was not finished (finish_reason {reason!r})", "", tokens)
    if ANY not in names and model not in names:
        what = f"a completion of the model {model!r}, while {names[0]!r} was asked"
        cure = f"let it answer by this name (vLLM: --served-model-name), correct served_name in {endpoints_file()} or, "
        cure += f"if this is the model that you mean, say `reply_name: {model}` (or `any`) there"
        raise MalformedReplyError(what, cure, tokens)
    cached = _detail(usage, "prompt_tokens_details", "cached_tokens", prompt_tokens)
    reasoning = _detail(usage, "completion_tokens_details", "reasoning_tokens", completion_tokens)
    return Reply(text, prompt_tokens, completion_tokens, finish_reason, request.model, None, cached, reasoning)


def without_text(reply: Reply) -> Iterator[str]:
    """Yield what a reply lacks, and the remedy, if it ended by itself and has no text."""
    if not without_thinking(reply.text).strip() and reply.finish_reason != "length":
        off = "switch thinking off (`extra_body`, docs/own-models.md), or the server's parser of reasoning"
        cure = f"; if it is all reasoning, {off}" if reply.finish_reason == "stop" else ""
        ended = f"finish_reason {reply.finish_reason}, {reply.completion_tokens} tokens"
        yield f"replies without text ({ended}), which counts as wrong{cure}"


def uncounted(request: Request, reply: Reply) -> Iterator[str]:
    """Yield what a reply's usage lacks if it has far fewer prompt tokens than the prompt's text."""
    size = sum(len(message.content.encode()) for message in request.messages)
    if size > _MOST_BYTES * max(reply.prompt_tokens, 1) and reply.finish_reason != "content_filter":
        yield (
            f"counts {reply.prompt_tokens} tokens for a prompt of {size} bytes, perhaps without those in its cache: "
            "costs and budgets are too low"
        )


def _detail(usage: Any, group: str, name: str, limit: int) -> int | None:
    """Return an optional count of a usage. None if it is missing or not between 0 and ``limit``."""
    count = getattr(getattr(usage, group, None), name, None)
    return count if type(count) is int and 0 <= count <= limit else None


def status_of(error: BaseException) -> int | None:
    return error.status_code if isinstance(error, openai.APIStatusError) else None


def is_filtered(error: openai.APIStatusError) -> bool:
    """Whether a filter refused the prompt."""
    return error.status_code in (400, 403) and _REFUSED.search(f"{error.code} {error}") is not None


def is_spent(error: BaseException) -> bool:
    """Whether a quota is used up, or the server is away for longer than a cell waits."""
    if not isinstance(error, openai.APIStatusError):
        return False
    is_quota = error.status_code == 429 and _SPENT.search(f"{error.code} {error} {error.body}") is not None
    return is_quota or retry_after_s(error) > OUTAGE_S


def retry_after_s(error: BaseException) -> float:
    """Read Retry-After, in seconds or as a date. 0 if it is missing."""
    text = error.response.headers.get("retry-after", "") if isinstance(error, openai.APIStatusError) else ""
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - time.time()
        except ValueError:
            seconds = 0.0
    return max(0.0, seconds)  # NaN gives 0.


@contextmanager
def explained_errors() -> Iterator[None]:
    """Convert every error of the block to APIError, with the server's reason, or to MalformedReplyError."""
    try:
        yield
    except openai.APIStatusError as error:
        error.args = (_with_reason(error),)
        raise
    except openai.APITimeoutError as error:
        # The libraries also raise it for refused or dropped connections.
        cause = error.__cause__ and error.__cause__.__cause__
        if isinstance(cause, aiohttp.ClientError) and not isinstance(cause, TimeoutError):
            raise openai.APIConnectionError(request=error.request) from cause
        raise
    except openai.APIConnectionError as error:
        if isinstance(error.__cause__, httpx2.DecodingError):
            raise MalformedReplyError(str(error.__cause__)) from error
        raise
    except (ValueError, RecursionError) as error:
        raise MalformedReplyError(f"text that is no JSON ({error})") from error
    except (aiohttp.ClientError, httpx2.HTTPError, OSError) as error:
        # Errors that both libraries pass through, such as a response that is not HTTP.
        raise openai.APIConnectionError(request=_GATEWAY) from error


def _with_reason(error: openai.APIStatusError) -> str:
    """Append the reason in the error's body and a long Retry-After. The library reads only OpenAI's format."""
    message, body = str(error), error.body
    if isinstance(body, Mapping):
        body = next((body[name] for name in ("error", "detail", "errors") if body.get(name)), body)
    reason = " ".join(str(body).split())[:_LONGEST_REASON]
    # A body that starts with "<" is a proxy's HTML page.
    message = message if " - " in message or not body or reason.startswith("<") else f"{message} - {reason}"
    wait_s = retry_after_s(error)
    return f"{message} (Retry-After: {wait_s / 3600:.1f} hours)" if wait_s > OUTAGE_S else message


def _text(content: Any) -> str:
    """Join the text parts of a message. Other parts, such as thinking, are dropped."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part["type"] in ("text", "output_text"))
    if content is not None and not isinstance(content, str):
        raise TypeError(f"content of type {type(content).__name__}")
    return content or ""


def _raise_error(error: Any) -> None:
    """Raise an error that a gateway sent with status 200, with the status in its body."""
    if not error:
        return
    entry = error if isinstance(error, Mapping) else {"message": error}
    message = " ".join(str(entry.get("message") or error).split())[:_LONGEST_REASON]
    code = str(entry.get("code") or entry.get("status") or "")
    status = int(code) if re.fullmatch("[45][0-9][0-9]", code) else 0
    if not status and _TOO_MANY_REQUESTS.search(f"{code} {entry.get('type')}"):
        status = 429
    if not status:
        raise MalformedReplyError(f"an error: {message}")
    response = httpx2.Response(status, request=_GATEWAY)
    raise openai.APIStatusError(f"Error code: {status} - {message}", response=response, body=error)
