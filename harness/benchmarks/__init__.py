"""The benchmarks: one module each, behind one interface."""

from harness.benchmarks.base import Benchmark, Tools
from harness.benchmarks.items import Split
from harness.benchmarks.registry import benchmark, keys

__all__ = ["Benchmark", "Split", "Tools", "benchmark", "keys"]
