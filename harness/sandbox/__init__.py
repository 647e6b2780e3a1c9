"""Execution of programs written by models: one fresh, confined process a program, never this process.

The pieces, from the caller down: :mod:`.pool` (how many at once, retries), :mod:`.worker` (one warm worker),
:mod:`.verdict` (what its report means), :mod:`.levels` (how well this machine can confine) and :mod:`.jail` (what
runs in the processes of a worker: the nursery that programs are forked from, the program, its checks).
"""

from harness.sandbox.model import Execution, Limits, Outcome, Program
from harness.sandbox.pool import Sandbox

__all__ = ["Execution", "Limits", "Outcome", "Program", "Sandbox"]
