"""The benchmarks: one module each, behind one interface."""

from harness.benchmarks.base import Benchmark, Tools
from harness.benchmarks.catalogue import benchmark, keys
from harness.benchmarks.items import Split

__all__ = ["Benchmark", "Split", "Tools", "benchmark", "keys"]
