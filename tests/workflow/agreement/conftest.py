from __future__ import annotations

from tests.harness.benchmarks.conftest import mirror, runner, tools

__all__ = ["mirror", "runner", "tools"]
