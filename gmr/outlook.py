"""What a router would do with a question, and what it did with one: its decisions with their probabilities."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from gmr.method import GMR
from gmr.trace import Vector
from harness.trajectory import Call, Decision, Trajectory


@dataclass(frozen=True, slots=True)
class Option:
    """One role or backbone, and the probability with which the router takes it."""

    key: str
    probability: float


@dataclass(frozen=True, slots=True)
class Outlook:
    """The first step of a trajectory before any model is asked; of later ones nothing can be said without replies.

    Attributes:
        roles: All roles, the most probable first.
        backbones: All backbones given the first of the roles, in the order of the pool.
    """

    roles: tuple[Option, ...]
    backbones: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate as it was drawn.

    Attributes:
        is_open: The outcome.
        probability: That of the gate being open; ``None`` where nothing was drawn: the outcome is then the only one.
    """

    is_open: bool
    probability: float | None


@dataclass(frozen=True, slots=True)
class Walked:
    """One step of a trajectory.

    Attributes:
        number: Step, counted from 1.
        role: Who acted.
        backbone: The model behind the role.
        retrieved: For each record in memory, by the number of the step that stored it, whether the agent saw it.
        written: Whether the contribution was stored.
        halted: Whether the trajectory ended here.
        calls: What was asked of the backbone.
    """

    number: int
    role: Option
    backbone: Option
    retrieved: dict[int, Gate]
    written: Gate
    halted: Gate
    calls: tuple[Call, ...]


def outlook(router: GMR, question: Vector) -> Outlook:
    """What a router would do first.

    Args:
        router: Trained or loaded.
        question: Embedding of the question, shape (384,).
    """
    state = router.policy.begin(question)
    roles = router.policy.roles(state)
    order = sorted(range(len(roles)), key=lambda index: -roles[index])
    backbones = router.policy.backbones(state, order[0])
    return Outlook(
        tuple(Option(router.pool.roles[index].key, float(roles[index])) for index in order),
        tuple(Option(one.key, float(p)) for one, p in zip(router.pool.backbones, backbones, strict=True)),
    )


def walk(trajectory: Trajectory) -> tuple[Walked, ...]:
    """The steps of a trajectory of Gated-Memory Routing, read from its records."""
    made = {(decision.step, decision.name, decision.slot): decision for decision in trajectory.decisions}
    steps: list[Walked] = []
    for number in range(1, trajectory.depth + 1):
        stored = [step.number for step in steps if step.written.is_open]
        steps.append(
            Walked(
                number,
                _option(made[number, "role", 0]),
                _option(made[number, "backbone", 0]),
                {record: _gate(made.get((number, "retrieve", slot)), True) for slot, record in enumerate(stored)},
                _gate(made.get((number, "write", 0)), True),
                # Without a draw, only the deepest step ends a trajectory.
                _gate(made.get((number, "halt", 0)), number == trajectory.depth),
                tuple(call for call in trajectory.calls if call.is_step and call.step == number),
            )
        )
    return tuple(steps)


def aggregated(steps: Iterable[Walked], empty_memory: str) -> tuple[int, ...]:
    """Numbers of the steps whose contributions the aggregator read (methods §7.9).

    Args:
        steps: All steps.
        empty_memory: What it gets where nothing was stored; see :class:`~gmr.config.Config`.
    """
    numbers = {step.number: step.written.is_open for step in steps}
    stored = tuple(number for number, written in numbers.items() if written)
    return stored or ((max(numbers),) if empty_memory == "last_response" else ())


def _option(decision: Decision) -> Option:
    return Option(decision.choice, math.exp(decision.log_prob))


def _gate(decision: Decision | None, otherwise: bool) -> Gate:
    if decision is None:
        return Gate(otherwise, None)
    is_open = decision.choice == "yes"
    return Gate(is_open, math.exp(decision.log_prob) if is_open else -math.expm1(decision.log_prob))
