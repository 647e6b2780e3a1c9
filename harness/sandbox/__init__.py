"""Execution of programs written by models: one fresh, confined process a program, never this process.

From the caller down: :mod:`.pool`, :mod:`.worker`, and :mod:`.jail` in a worker's processes.
"""

from harness.sandbox.model import Execution, Limits, Outcome, Program
from harness.sandbox.pool import Sandbox

__all__ = ["Execution", "Limits", "Outcome", "Program", "Sandbox"]
