"""A line now and then on long work: done, accuracy so far, calls, tokens, time left."""

from __future__ import annotations

import logging
import time

from harness.agents.trajectory import Trajectory
from harness.benchmarks.items import Verdict

logger = logging.getLogger(__name__)

INTERVAL_S = 5.0


class Progress:
    """Counts finished questions and logs a line at most every five seconds, and one at the end."""

    def __init__(self, label: str, total: int) -> None:
        self.label = label
        self.total = total
        self.done = 0
        self._right = 0
        self._calls = 0
        self._tokens = 0
        self._cost = 0.0
        self._started = self._last = time.monotonic()

    def item(self, trajectory: Trajectory, verdict: Verdict) -> None:
        """Note one finished question."""
        self.done += 1
        self._right += verdict.correct
        self._calls += len(trajectory.calls)
        self._tokens += sum(call.prompt_tokens + call.completion_tokens for call in trajectory.calls)
        self._cost += trajectory.cost_total
        now = time.monotonic()
        if now - self._last >= INTERVAL_S or self.done == self.total:
            self._last = now
            logger.info(self._line(now - self._started))

    def _line(self, elapsed: float) -> str:
        left = elapsed / self.done * (self.total - self.done)
        end = f"{left:.0f} s left" if self.done < self.total else f"done in {elapsed:.0f} s"
        return (
            f"{self.label}: {self.done}/{self.total} questions, {100 * self._right / self.done:.1f} % right, "
            f"{self._calls} calls ({self._calls / max(elapsed, 1e-9):.0f}/s), {self._tokens:,} tokens, "
            f"cost {self._cost:.4f}, {end}"
        )
