"""How often a call is tried, and how long it waits in between."""

from __future__ import annotations

import hashlib

MAX_ATTEMPTS = 12
FIRST_DELAY_S = 0.5
MAX_DELAY_S = 30.0
# A server may ask for more patience than an attempt is worth.
MAX_RETRY_AFTER_S = 120.0
# A call that brings its server down at every attempt, all by itself, meets an outage each time; it is recorded as
# failed in the end. Of outages that it shares with others, so many stop the cell.
MAX_ATTEMPTS_IN_OUTAGES = 2 * MAX_ATTEMPTS


def delay_s(key: str, attempt: int, retry_after_s: float = 0.0) -> float:
    """Seconds between an attempt and the next: doubled each time, a half to one and a half times that by the key.

    What a server asks for is waited for once to one and a half times, by the key as well: else all that it refused
    together would come back in the same instant.

    Args:
        key: Of the call; so that calls which failed together do not come back together.
        attempt: The one that failed, counted from 1.
        retry_after_s: What the server asks for at least; of it :data:`MAX_RETRY_AFTER_S` counts.
    """
    jitter = int(hashlib.sha256(f"{key}:{attempt}".encode()).hexdigest()[:8], 16) / 0xFFFFFFFF
    own = min(MAX_DELAY_S, FIRST_DELAY_S * 2 ** (attempt - 1)) * (0.5 + jitter)
    return max(own, min(retry_after_s, MAX_RETRY_AFTER_S) * (1 + jitter / 2))
