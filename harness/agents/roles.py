"""Roles, read from ``roles.yaml``: who an agent is, how it reasons and what happens around its call.

Names and domains follow the paper's appendix on role profiles. Feedback, hints, tools and second calls follow the
published implementation of the catalogue, because the paper adopts it without describing them.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from harness.errors import check_names
from harness.files import Declaration, Line, read_entries

CATALOGUE = Path(__file__).with_name("roles.yaml")

Sees = Literal["plain", "test_feedback", "numeric_hints"]
Output = Literal["text", "code", "program", "formula", "answer", "keywords"]
Tool = Literal["none", "run_examples", "execute_answer", "execute_code", "lookup"]

DOMAINS = ("Code", "Commonsense", "Math")


class Role(Declaration):
    """Role profile."""

    # ``domain/name``; a name alone may repeat in another domain.
    key: Annotated[str, Field(pattern=rf"^({'|'.join(DOMAINS)})/[A-Z][A-Za-z]*$")]
    description: Line  # one line on who the agent is; opens the system prompt
    instruction: Line  # how the agent should reason; follows the description in the system prompt
    # How records of earlier agents are shown to it. ``plain``: as they are. ``test_feedback``: a record with a program
    # is followed by its results on the visible examples. ``numeric_hints``: a line of the candidate answers in the
    # records is added.
    sees: Sees
    # Content of the first reply. ``text``: prose. ``code``: the function asked for. ``program``: one that
    # computes the answer. ``formula``: a derivation and an answer line. ``answer``: prose and an answer line.
    # ``keywords``: a list of search terms.
    output: Output
    # Tool used on the first reply. ``run_examples``: run its program on the visible examples. ``execute_answer``: run
    # its program and read the variable ``answer``. ``execute_code``: the same, but without a word where the reply holds
    # no program. ``lookup``: look its keywords up in an encyclopedia.
    tool: Tool
    # Instruction of a second call, which sees the first reply with the output of the tool; ``None`` for no second call.
    second_call: Line | None

    @property
    def domain(self) -> str:
        """Return the domain, one of :data:`DOMAINS`."""
        return self.key.partition("/")[0]

    @property
    def name(self) -> str:
        """Return the name within the domain, the heading of its records in a prompt."""
        return self.key.partition("/")[2]

    @property
    def profile(self) -> str:
        """Return the text that represents the role in an embedding: ``domain/name: description``."""
        return f"{self.key}: {self.description}"


@functools.cache
def catalogue() -> tuple[Role, ...]:
    """Return all 26 roles, sorted by key, which is also the order of their indices in a policy."""
    entries = read_entries(CATALOGUE, Role)
    return tuple(entries[key] for key in sorted(entries))


@functools.cache
def by_key() -> Mapping[str, Role]:
    """Return all roles by keys such as ``"Math/Inspector"``."""
    return {role.key: role for role in catalogue()}


def by_domain(domain: str) -> tuple[Role, ...]:
    """Return the roles of a domain, sorted by key; UserError if there is no such domain."""
    check_names("domain", [domain], DOMAINS, "harness/agents/roles.yaml")
    return tuple(role for role in catalogue() if role.domain == domain)
