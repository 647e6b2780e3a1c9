"""How long a modelled inference server takes: limited places, prompt tokens read, completion tokens written.

It delays replies and changes none, so concurrency and wall-clock time can be studied without the hardware. The model
is plain: every sequence has its own constant speed, whatever runs beside it, and all of them share K places.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from typing import Any

from harness.simulator.parameters import EngineParameters


class Engine:
    """One server of one backbone.

    Who comes first is served first. A place is free again when the modelled sequence ends, not when this process gets
    round to saying so: a late timer delays one reply, not all behind it. What a client no longer waits for is computed
    to its end.

    Args:
        parameters_b: Billions of parameters of the backbone; speed is inversely proportional to it.
        settings: Places and speeds.
    """

    def __init__(self, parameters_b: float, settings: EngineParameters) -> None:
        self._settings = settings
        self._prefill = settings.prefill_tokens_per_s_1b / parameters_b
        self._decode = settings.decode_tokens_per_s_1b / parameters_b
        self._free_at = [float("-inf")] * settings.concurrent_sequences
        self._requests = 0
        self._busy_s = 0.0
        self._first = float("inf")
        self._last = float("-inf")

    def seconds(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Time one sequence occupies a place."""
        return prompt_tokens / self._prefill + completion_tokens / self._decode

    async def occupy(self, prompt_tokens: int, completion_tokens: int) -> None:
        """Wait for a place, then for as long as the sequence takes."""
        now, seconds = time.monotonic(), self.seconds(prompt_tokens, completion_tokens)
        end = max(now, self._free_at[0]) + seconds
        heapq.heapreplace(self._free_at, end)
        self._first = min(self._first, now)
        await asyncio.sleep(end - now)
        self._last = max(self._last, end)
        self._busy_s += seconds
        self._requests += 1

    def report(self) -> dict[str, Any]:
        """Finished requests, seconds from the first arrival to the last end, and the share of places in use."""
        places, span = self._settings.concurrent_sequences, max(0.0, self._last - self._first)
        return {
            "requests": self._requests,
            "concurrent_sequences": places,
            "busy_sequence_s": self._busy_s,
            "span_s": span,
            "utilisation": self._busy_s / (places * span) if span else 0.0,
        }
