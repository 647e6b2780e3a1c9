"""What a running server says of itself, beside what it serves: that it is ready, and how busy it is."""

from __future__ import annotations

import re

import httpx2

_LIMIT_S = 5.0
_REQUESTS = re.compile(r"^vllm:num_requests_(running|waiting)\{[^}]*\} ([0-9.e+]+)$", re.MULTILINE)


def is_ready(url: str, models: tuple[str, ...]) -> bool:
    """Whether a server answers and serves all its models.

    Args:
        url: Its base URL, ending in ``/v1``.
        models: Names it has to have.
    """
    try:
        answer = httpx2.get(f"{url}/models", timeout=_LIMIT_S)
        return {entry["id"] for entry in answer.json()["data"]} >= set(models)
    except (httpx2.HTTPError, OSError, ValueError, LookupError, TypeError):
        return False


def requests(url: str) -> tuple[int, int] | None:
    """Requests that run and that wait; ``None`` where the server does not count them as vLLM does."""
    try:
        text = httpx2.get(f"{url.removesuffix('/v1')}/metrics", timeout=_LIMIT_S).text
    except (httpx2.HTTPError, OSError):
        return None
    found = _REQUESTS.findall(text)
    if not found:
        return None
    counts = {kind: sum(int(float(value)) for name, value in found if name == kind) for kind in ("running", "waiting")}
    return counts["running"], counts["waiting"]
