from tests.harness.benchmarks.conftest import mirror

__all__ = ["mirror"]
