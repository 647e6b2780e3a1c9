"""Roles as data: who an agent is, how it reasons and what happens around its call.

Texts and behaviours are in ``roles.yaml``; this module only reads and checks them. Names and domains
follow the paper's appendix on role profiles. The behaviours (feedback, hints, tools, second calls) follow the
published implementation of the catalogue, because the paper adopts it without describing them.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from harness.errors import unknown
from harness.files import Declaration, Line, read_entries

CATALOGUE = Path(__file__).with_name("roles.yaml")

Sees = Literal["plain", "test_feedback", "numeric_hints"]
Output = Literal["text", "code", "program", "formula", "answer", "keywords"]
Tool = Literal["none", "run_examples", "execute_answer", "execute_code", "lookup"]

DOMAINS = ("Code", "Commonsense", "Math")


class Role(Declaration):
    """One role profile."""

    # ``domain/name``; names alone repeat across domains.
    key: Annotated[str, Field(pattern=rf"^({'|'.join(DOMAINS)})/[A-Z][A-Za-z]*$")]
    description: Line  # one line on who the agent is; opens the system prompt
    instruction: Line  # how the agent should reason; follows the description in the system prompt
    # How records of earlier agents are shown to it. ``plain``: as they are. ``test_feedback``: a record that holds a
    # program is followed by the outcome of the visible examples. ``numeric_hints``: a line of candidate answers found
    # in the records is added.
    sees: Sees
    # What the first reply consists of. ``text``: prose. ``code``: the function asked for. ``program``: one that
    # computes the answer. ``formula``: a derivation and an answer line. ``answer``: prose and an answer line.
    # ``keywords``: a list of search terms.
    output: Output
    # What is done with the first reply. ``run_examples``: run its program on the visible examples. ``execute_answer``:
    # run its program and read the variable ``answer``. ``execute_code``: the same, but only where the reply holds a
    # program. ``lookup``: look its keywords up in an encyclopedia.
    tool: Tool
    # Instruction of a second call, which sees the first reply with what the tool added to it and which says what it
    # wants back; ``None`` for a role that is called once.
    second_call: Line | None

    @property
    def domain(self) -> str:
        """One of :data:`DOMAINS`."""
        return self.key.partition("/")[0]

    @property
    def name(self) -> str:
        """Name of the role within its domain; the heading of its records in a prompt."""
        return self.key.partition("/")[2]

    @property
    def profile(self) -> str:
        """The text that stands for the role in an embedding: ``domain/name: description``."""
        return f"{self.key}: {self.description}"


def load(path: Path) -> tuple[Role, ...]:
    """The roles declared in a file, in sorted order of their keys; raises UserError where the file has a slip."""
    entries = read_entries(path, Role)
    return tuple(entries[key] for key in sorted(entries))


@functools.cache
def catalogue() -> tuple[Role, ...]:
    """All 26 roles in sorted order of their keys, which is also the order of their indices in a policy."""
    return load(CATALOGUE)


def role(key: str) -> Role:
    """The role with a key such as ``"Math/Inspector"``; raises UserError with the nearest one if there is none."""
    for candidate in catalogue():
        if candidate.key == key:
            return candidate
    raise unknown("role", key, (known.key for known in catalogue()), "harness/agents/roles.yaml")


def by_domain(domain: str) -> tuple[Role, ...]:
    """The roles of one domain, sorted; raises UserError for an unknown one."""
    if domain not in DOMAINS:
        raise unknown("domain", domain, DOMAINS, "harness/agents/roles.yaml")
    return tuple(candidate for candidate in catalogue() if candidate.domain == domain)
