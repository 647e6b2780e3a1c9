"""Contexts that walk a recorded trajectory again: each choice is the recorded one, each call is in the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.agents.trajectory import Context, Decision, Trajectory
from harness.errors import UserError
from harness.llm.client import ChatClient
from harness.llm.request import Message, Reply, Request

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TOLERANCE = 1e-5
_Place = tuple[int, str, int]


class NotRecordedError(UserError):
    """A call that no recorded log holds."""


class RecordedClient(ChatClient):
    """A client that knows the calls of its log, and no server."""

    async def _ask(self, backbone: str, request: Request) -> Reply:
        raise NotRecordedError(f"{backbone} was never asked it in the recorded run (call {request.key})")


@dataclass
class Walk:
    """The recorded trajectories of a cell, while they are walked again.

    Attributes:
        cell: Names the cell in messages.
        trajectories: By item id.
        deviation: The largest difference so far between a log-probability and the recorded one.
    """

    cell: str
    trajectories: Mapping[str, Trajectory]
    deviation: float = 0.0

    def other(self, item: str, step: int, what: str) -> UserError:
        """What to say of a step that is not as it was recorded."""
        return UserError(f"{self.cell}, item {item}, step {step}: {what}; the bundle was altered or is incomplete")


class RecordedContext(Context):
    """A context that gives every choice and every reply as recorded.

    Args:
        walk: The recorded trajectories.
        anything: As :class:`~harness.agents.trajectory.Context` takes it.
    """

    def __init__(self, *anything: Any, walk: Walk, **more: Any) -> None:
        super().__init__(*anything, **more)
        self._walk = walk
        found = walk.trajectories[self.item.id].decisions
        self._recorded: dict[_Place, Decision] = {(one.step, one.name, one.slot): one for one in found}

    async def ask(self, backbone: str, messages: tuple[Message, ...], *, step: int = 1, **how: Any) -> Reply:
        """The recorded reply.

        Raises:
            UserError: Names the call that was not recorded.
        """
        try:
            return await super().ask(backbone, messages, step=step, **how)
        except NotRecordedError as error:
            purpose = how.get("purpose", "solve")
            raise self._walk.other(self.item.id, step, f"a call is missing: {purpose}, {error}") from error

    def draw(
        self,
        step: int,
        name: str,
        options: Sequence[str],
        probabilities: NDArray[np.float64],
        slot: int = 0,
        *,
        greedy: bool = False,
    ) -> int:
        """The index of the recorded choice; nothing is drawn."""
        choice = self._of(step, name, slot).choice
        if choice not in options:
            raise self._walk.other(self.item.id, step, f"{name} was {choice!r}, which cannot be chosen here")
        return list(options).index(choice)

    def bernoulli(self, step: int, name: str, probability: float, slot: int = 0, *, greedy: bool = False) -> bool:
        """Whether it happened; nothing is drawn."""
        return self._of(step, name, slot).choice == "yes"

    def decide(self, decision: Decision) -> None:
        """Record the decision as it was recorded, if it is made again at the same log-probability.

        Raises:
            UserError: It is another decision, or its log-probability differs by more than :data:`TOLERANCE`.
        """
        known = self._of(decision.step, decision.name, decision.slot)
        if (decision.choice, decision.options) != (known.choice, known.options):
            raise self._walk.other(
                self.item.id,
                decision.step,
                f"{decision.name} is {decision.choice!r} of {decision.options}, recorded as {known.choice!r} of "
                f"{known.options}",
            )
        difference = abs(decision.log_prob - known.log_prob)
        # Not "greater than": whatever is compared with NaN must fail.
        if not difference <= TOLERANCE:
            raise self._walk.other(
                self.item.id,
                decision.step,
                f"{decision.name} {decision.choice!r} has log-probability {decision.log_prob:.8f}, recorded as "
                f"{known.log_prob:.8f} (slot {decision.slot}, more than {TOLERANCE:g} apart)",
            )
        self._walk.deviation = max(self._walk.deviation, difference)
        super().decide(known)

    def _of(self, step: int, name: str, slot: int) -> Decision:
        known = self._recorded.get((step, name, slot))
        if known is None:
            raise self._walk.other(self.item.id, step, f"decision {name} (slot {slot}) was not recorded")
        return known
