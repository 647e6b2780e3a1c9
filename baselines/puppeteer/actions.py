"""The ten actions: eight ways to reason, a program, and the end of the path (D-PUP-2).

Upstream's personas are replaced by texts of this project. Those that only prepare or judge an answer are not told the
benchmark's output rules: a plan that has to end in an answer line would be a solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.llm.request import Kind as Turn
from harness.llm.request import Style

# What the released code sends with every call (D-GEN-2).
TEMPERATURE = 0.1

Kind = Literal["reasoning", "program", "end"]


@dataclass(frozen=True, slots=True)
class Action:
    """One choice of the policy.

    Attributes:
        key: Name in decisions and calls.
        name: How its contributions are signed.
        kind: ``reasoning`` is one call; ``program`` a call whose program is run; ``end`` no call at all.
        persona: Who the agent is.
        instruction: What it does.
        turn: What its turns are for.
        style: How explicitly it is to reason.
        answers: Whether it is told the output rules and commits to an answer.
    """

    key: str
    name: str
    kind: Kind
    persona: str
    instruction: str
    turn: Turn = "solve"
    style: Style = "direct"
    answers: bool = True

    @property
    def profile(self) -> str:
        """What a trained policy has learned this action to be."""
        return f"{self.persona} {self.instruction}".strip()


ACTIONS: tuple[Action, ...] = (
    Action(
        "planning",
        "Planner",
        "reasoning",
        "You are the planner of a small team.",
        "Make a plan for the question: which conditions matter, which steps lead to the result and in which order, and "
        "where a slip is likely. Leave the steps to your colleagues and do not solve the question yourself.",
        turn="plan",
        answers=False,
    ),
    Action(
        "reasoning",
        "Reasoner",
        "reasoning",
        "You are the reasoner of a small team, who leaves no gap in an argument.",
        "Reason step by step from what is given, and from what your colleagues have established, to a full solution.",
        style="step_by_step",
    ),
    Action(
        "critique",
        "Critic",
        "reasoning",
        "You are the critic of a small team, fair and hard to convince.",
        "Go through the work of your colleagues and point out the most important defect in it: a wrong step, a gap, a "
        "condition misread. Where there is none, say so and say why. Leave the repair to others.",
        turn="critique",
        answers=False,
    ),
    Action(
        "reflect",
        "Reflector",
        "reasoning",
        "You are the member of a small team who looks back before going on.",
        "Reflect on how the work has gone: what was taken for granted, what was overlooked, what another way would "
        "have shown. Then revise the solution in the light of it.",
        turn="revise",
    ),
    Action(
        "question",
        "Questioner",
        "reasoning",
        "You are the member of a small team who asks what nobody has asked.",
        "Pose the one further question on which the solution hangs most, answer it, and carry what follows from it "
        "through to the result.",
    ),
    Action(
        "summarize",
        "Summarizer",
        "reasoning",
        "You keep the record of a small team.",
        "Sum up what has been established so far, leave dead ends out, and state the result that it supports.",
    ),
    Action(
        "conclude",
        "Concluder",
        "reasoning",
        "You bring the work of a small team to its end.",
        "Draw the conclusion from what has been established so far, close what is still open, and commit to one "
        "complete solution.",
    ),
    Action(
        "modify",
        "Modifier",
        "reasoning",
        "You are the editor of a small team.",
        "Rewrite the solution of your colleagues: keep what holds, put right what does not, and give it as a whole.",
        turn="revise",
    ),
    Action(
        "python",
        "Programmer",
        "program",
        "You are the programmer of a small team.",
        "You settle by a short Python program what is tedious or risky to settle by hand.",
    ),
    Action("terminate", "Terminator", "end", "", "The work of the team ends here."),
)
KEYS: tuple[str, ...] = tuple(action.key for action in ACTIONS)
TERMINATE = KEYS.index("terminate")


def to_facts() -> dict[str, list[list[str]]]:
    """Key and profile of every action, in the order of the indices: what a trained policy is bound to."""
    return {"actions": [[action.key, action.profile] for action in ACTIONS]}
