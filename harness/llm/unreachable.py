"""What a user is told of a server that cannot be worked with."""

from __future__ import annotations

import openai

from harness.errors import UserError
from harness.llm.endpoints import ENDPOINTS, their_file


def with_causes(error: BaseException) -> str:
    """The message of an error and of what it comes from, each once."""
    messages: list[str] = []
    cause: BaseException | None = error
    while cause is not None:
        # The library calls a refused connection a time-out; what it comes from says more.
        is_wrapper = isinstance(cause, openai.APIConnectionError) and cause.__cause__ is not None
        if str(cause) and str(cause) not in messages and not is_wrapper:
            messages.append(str(cause))
        cause = cause.__cause__
    return ": ".join(messages) or type(error).__name__


def unreachable(backbone: str, urls: str, error: BaseException) -> UserError:
    """The error for an endpoint that refuses whatever it is asked, or does not answer.

    Args:
        backbone: Whose endpoint it is.
        urls: Where it is.
        error: What the attempt, or the last of them, ended in.
    """
    if isinstance(error, (openai.AuthenticationError, openai.PermissionDeniedError)):
        return UserError(f"{urls} refuses the API key of {backbone}; check the variable named by key_env")
    if isinstance(error, openai.NotFoundError):
        return UserError(f"{urls} does not know what {backbone} asks for ({error}); check {their_file()}")
    return UserError(
        f"endpoint {urls} of {backbone} does not answer ({with_causes(error)}); start the server, correct "
        f"{their_file()}, or name another file by {ENDPOINTS}; then give the same command again (finished calls are "
        "kept)"
    )
