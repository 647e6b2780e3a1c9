"""A line now and then on long work: tqdm's meter, with accuracy so far, calls, tokens and cost."""

from __future__ import annotations

import logging
import time

from tqdm import tqdm

from harness.agents.trajectory import Trajectory
from harness.benchmarks.items import Verdict

logger = logging.getLogger(__name__)

INTERVAL_S = 5.0
# Lines of many jobs follow one another, so there is no bar that moves.
_LINE = "{desc}: {n_fmt}/{total_fmt} questions [{elapsed}<{remaining}{postfix}]"


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
        calls = f"{self._calls} calls ({self._calls / max(elapsed, 1e-9):.0f}/s)"
        found = f"{100 * self._right / self.done:.1f} % right, {calls}, {self._tokens:,} tokens, cost {self._cost:.4f}"
        return tqdm.format_meter(self.done, self.total, elapsed, prefix=self.label, bar_format=_LINE, postfix=found)
