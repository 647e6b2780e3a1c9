"""The operators a workflow can be made of: what each is for, and which of them a domain offers (docs/baselines.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator, as the optimizer is told of it.

    Attributes:
        name: How a workflow calls it.
        what: What it does, in a sentence or two.
        instructed: Whether a node may give it an instruction.
        needs_result: Whether it works on results of earlier nodes and can do nothing with the question alone.
        judges: Whether it ends with a status, ``passed`` or ``failed``, that a later node can look at.
    """

    name: str
    what: str
    instructed: bool = False
    needs_result: bool = False
    judges: bool = False


CUSTOM = Operator(
    "Custom",
    "One call with an instruction of yours, which may be empty, and the results of its inputs.",
    instructed=True,
)
CODE_GENERATE = Operator(
    "CustomCodeGenerate",
    "One call with an instruction of yours, which may be empty; of the reply only the program is passed on.",
    instructed=True,
)
ANSWER_GENERATE = Operator("AnswerGenerate", "One call that thinks first and then gives a short answer.")
ENSEMBLE = Operator(
    "ScEnsemble",
    "One call that sees every result of its inputs as a candidate and picks the one that agrees best with the others. "
    "It makes sense after a node with a repeat, or after several nodes.",
    needs_result=True,
)
PROGRAMMER = Operator(
    "Programmer",
    "Has a Python program written that computes the answer, and runs it; what went wrong goes into the next of at most "
    "three attempts. Its status is failed when none of them gave a value.",
    judges=True,
)
TEST = Operator(
    "Test",
    "Runs the program of its input on the examples in the question. While it fails, it is rewritten, three times at "
    "most. Its status is that of the last run.",
    needs_result=True,
    judges=True,
)

OFFERED: Mapping[str, tuple[Operator, ...]] = {
    "Code": (CUSTOM, CODE_GENERATE, ENSEMBLE, TEST),
    "Math": (CUSTOM, ENSEMBLE, PROGRAMMER),
    "Commonsense": (CUSTOM, ANSWER_GENERATE, ENSEMBLE),
}
START: Mapping[str, Operator] = {"Code": CODE_GENERATE, "Math": CUSTOM, "Commonsense": CUSTOM}


def offered(domain: str) -> dict[str, Operator]:
    """The operators of a domain, by name."""
    return {operator.name: operator for operator in OFFERED[domain]}
