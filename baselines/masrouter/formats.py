"""What a role is told of the form of its replies, and the text that stands for it in an embedding (D-MR-10)."""

from __future__ import annotations

import json
from collections.abc import Mapping

from harness.agents.activation import Formats
from harness.agents.roles import Output, Role

_ANSWER = (
    "Close with a line that states the result alone, without a unit and without further words: The answer is <result>. "
    "Where the question has options, the result is the letter of an option."
)
TEXTS: Mapping[Output, str] = {
    "text": "",
    "code": (
        "Write the whole function in one fenced Python block, and keep its name and the types of its parameters as the "
        "task gives them."
    ),
    "program": (
        "Work the problem out in functions without parameters, and let the last line call them and assign the result "
        "to a variable named answer. Put the whole program into one fenced Python block."
    ),
    "formula": f"State the formula that the problem calls for, then put the numbers in and calculate. {_ANSWER}",
    "answer": _ANSWER,
    "keywords": (
        "Give at most three short keywords on one line, with commas between them; none where nothing needs looking up."
    ),
}


def formats_of(role: Role) -> Formats:
    """The role's own formats, as released: of its first call, and of a second one.

    A second call of the role itself ends in what its domain asks for; one that the mode of collaboration adds repeats
    the format of the first.
    """
    first = TEXTS[role.output]
    second = _second(role)
    return Formats(first, first if second is None else TEXTS[second])


def profile(role: Role) -> str:
    """The whole profile as JSON, with the fields of the released files in their order."""
    fields = {
        "Name": role.name,
        "MessageAggregation": role.sees,
        "Description": f"{role.description} {role.instruction}",
        "OutputFormat": role.output,
        "PostProcess": role.tool,
        "PostDescription": role.second_call,
        "PostOutputFormat": _second(role),
    }
    return json.dumps({name: "none" if value is None else value for name, value in fields.items()})


def _second(role: Role) -> Output | None:
    """What a second call of the role itself gives back."""
    if role.second_call is None:
        return None
    return "code" if role.domain == "Code" else "answer"
