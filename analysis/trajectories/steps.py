"""The steps of a trajectory, put together from its calls and decisions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping

from analysis.trajectories.records import Choice, Gate, Said, Step
from harness.agents.trajectory import Call, Decision, Trajectory

# Recorded with log-probability 0 though no policy drew them: counted, found by a rule, or said by a model.
UNDRAWN = frozenset({"agents", "short_cut", "ensemble"})
_GATES = ("retrieve", "write", "halt")

_Made = Mapping[tuple[str, int], Decision]


def steps_of(trajectory: Trajectory, say: Callable[[Call], Said], *, has_gates: bool) -> Iterator[Step]:
    """The steps of a trajectory, in order.

    Args:
        trajectory: What was recorded.
        say: Adds its texts to a call.
        has_gates: Whether the method is Gated-Memory Routing or a variant of it, which has gates even where none of
            them draws.
    """
    calls = [call for call in trajectory.calls if call.is_step]
    stored: list[int] = []
    for number in sorted({call.step for call in calls} | {decision.step for decision in trajectory.decisions}):
        made = {(one.name, one.slot): one for one in trajectory.decisions if one.step == number}
        said = tuple(say(call) for call in calls if call.step == number)
        if has_gates:
            step = _gated(number, made, stored, said, is_last=number == trajectory.depth)
        else:
            step = Step(number, None, None, tuple(map(choice_of, made.values())), {}, None, None, said)
        if step.written is not None and step.written.is_open:
            stored.append(number)
        yield step


def choice_of(decision: Decision) -> Choice:
    """A decision with the probability of what was chosen."""
    probability = None if decision.name in UNDRAWN else math.exp(decision.log_prob)
    return Choice(decision.name, decision.slot, decision.choice, decision.options, probability)


def gate_of(decision: Decision | None, otherwise: bool) -> Gate:
    """A gate as it was drawn.

    Args:
        decision: The draw, ``None`` where there was none.
        otherwise: The outcome without one.
    """
    if decision is None:
        return Gate(otherwise, None)
    is_open = decision.choice == "yes"
    return Gate(is_open, math.exp(decision.log_prob) if is_open else -math.expm1(decision.log_prob))


def _gated(number: int, made: _Made, stored: Iterable[int], said: tuple[Said, ...], *, is_last: bool) -> Step:
    role, backbone = made.get(("role", 0)), made.get(("backbone", 0))
    others = (one for one in made.values() if one.name not in (*_GATES, "role", "backbone"))
    return Step(
        number,
        None if role is None else choice_of(role),
        None if backbone is None else choice_of(backbone),
        tuple(map(choice_of, others)),
        {record: gate_of(made.get(("retrieve", slot)), True) for slot, record in enumerate(stored)},
        gate_of(made.get(("write", 0)), True),
        # Without a draw, only the deepest step ends a trajectory.
        gate_of(made.get(("halt", 0)), is_last),
        said,
    )
