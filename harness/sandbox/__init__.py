"""Execution of programs written by models: one fresh, confined process a program, never this process.

``docs/sandbox.md`` says what is promised; ``jail/confinement.py`` and ``jail/linux.py`` forbid the rest.
"""

from harness.sandbox.model import Execution, Limits, Outcome, Program
from harness.sandbox.pool import Sandbox

__all__ = ["Execution", "Limits", "Outcome", "Program", "Sandbox"]
