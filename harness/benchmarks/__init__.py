"""The benchmarks: one module each, a subclass of :class:`Benchmark`; ``docs/adding.md`` adds one."""

from harness.benchmarks.base import Benchmark, Tools
from harness.benchmarks.catalogue import benchmark, keys
from harness.benchmarks.items import Split

__all__ = ["Benchmark", "Split", "Tools", "benchmark", "keys"]
