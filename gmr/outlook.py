"""What a router would do with a question: its first decisions with their probabilities."""

from __future__ import annotations

from dataclasses import dataclass

from gmr.method import GMR
from gmr.trace import Vector


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
