"""Execution of programs written by models: one fresh, confined process a program, never this process."""

from harness.sandbox.model import Execution, Limits, Outcome, Program
from harness.sandbox.pool import Sandbox

__all__ = ["Execution", "Limits", "Outcome", "Program", "Sandbox"]
