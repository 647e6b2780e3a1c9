"""Benchmarks: one module and subclass of :class:`base.Benchmark` each. See ``docs/adding.md`` to add one."""
