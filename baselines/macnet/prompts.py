"""What the agents are told (D-MAC-4).

Only solutions cross an edge: the critique made on it is shown to its own actor alone, and no prompt says which node
spoke.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.agents.prompts import Record, team_prompt
from harness.benchmarks.items import Item
from harness.llm.request import Message

# One line for every node of every benchmark (D-MAC-4).
PROFILE = "You are an expert in the field of the question."

SOLVE = (
    "Answer the question. Give a complete solution, since whoever goes on with it will see nothing else of your work."
)
CRITICISE = (
    "A colleague's solution stands below the question. Point out the single most important defect in it and say how to "
    "mend it. Be brief, and leave the writing of a new solution to the colleague."
)
REVISE = (
    "A solution and a critic's advice on it stand below the question. Revise the solution: follow the advice where it "
    "is right, keep what is sound, and mend what you see is faulty even if the advice is silent about it. Give the "
    "complete solution, since whoever goes on with it will see nothing else of your work."
)
MERGE = (
    "Candidate solutions stand below the question. Weigh the candidates against each other, and produce one complete "
    "solution that is better than each of them: build on what is sound and leave out what is wrong."
)

# What a critic looks at, by domain of the benchmark.
CHECKS: Mapping[str, str] = {
    "Math": "Check the logic of each deduction, the arithmetic, the units, and the form of the answer.",
    "Code": (
        "Check the signature that was asked for, the examples given in the question, edge cases such as empty or "
        "extreme input, and the syntax."
    ),
    "Commonsense": (
        "Check that each option was considered and the others were ruled out for good reasons, and that the answer is "
        "one letter in the form asked for."
    ),
}

NO_REVISION = "NO REVISION NEEDED"
_APPROVAL = f"If you find no defect, reply with these words alone: {NO_REVISION}"
_FORM = "The colleague, not you, has to keep to this form:"

NO_ADVICE = "None."
NOTHING_TO_REVISE = f"Advice: {NO_ADVICE}"

SOLUTION_HEADER = "The colleague's solution:"
ADVICE_HEADER = "The solution, and the advice on it:"
CANDIDATES_HEADER = "The candidates:"

_EMPHASIS = " \t*_`#>\"'.!"


def solve_prompt(rules: str, item: Item) -> tuple[Message, ...]:
    """For an agent that has no solution to start from; the place of the advice says that there is none."""
    return team_prompt((PROFILE, SOLVE, rules), item, (), NOTHING_TO_REVISE)


def critique_prompt(checks: str, rules: str, item: Item, solution: str) -> tuple[Message, ...]:
    """For the critic of an edge: the solution handed on, what to check, the words that approve it."""
    system = (PROFILE, CRITICISE, checks, _APPROVAL, f"{_FORM} {rules}" if rules else "")
    return team_prompt(system, item, [Record("Solution", solution)], header=SOLUTION_HEADER)


def revise_prompt(rules: str, item: Item, solution: str, advice: str) -> tuple[Message, ...]:
    """For the actor of an edge: the solution handed on, and the critic's advice, empty for none."""
    records = [Record("Solution", solution), Record("Advice", advice or NO_ADVICE)]
    return team_prompt((PROFILE, REVISE, rules), item, records, header=ADVICE_HEADER)


def merge_prompt(rules: str, item: Item, candidates: Sequence[str]) -> tuple[Message, ...]:
    """For a node with several edges to it: the task and each candidate once."""
    records = [Record("Candidate", candidate) for candidate in candidates]
    return team_prompt((PROFILE, MERGE, rules), item, records, header=CANDIDATES_HEADER)


def advice_in(critique: str) -> str:
    """The advice a critique holds: empty where nothing was said, or where a line of its own approves the solution.

    Case, emphasis and closing punctuation of that line do not matter. Approval inside a sentence does not count: what
    stands around it may well be a restriction.
    """
    lines = [line.strip(_EMPHASIS).upper() for line in critique.splitlines()]
    return "" if NO_REVISION in lines else critique.strip()
