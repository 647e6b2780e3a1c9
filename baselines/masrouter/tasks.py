"""The tasks that the classifier tells apart, one for each domain of roles."""

from __future__ import annotations

from harness.agents.roles import DOMAINS

_DESCRIPTIONS = {
    "Code": "Write a function in Python from a description of what it has to do and examples of its use.",
    "Commonsense": "Pick the right one of several options with knowledge of the world, of science and of society.",
    "Math": "Find a number or a formula by calculation, derivation or proof from what a problem states.",
}


def profiles() -> dict[str, str]:
    """By domain, in the order of their indices, the text that stands for a task in an embedding."""
    return {domain: f"{domain} : {_DESCRIPTIONS[domain]}" for domain in DOMAINS}
