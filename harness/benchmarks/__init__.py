"""The benchmarks: one module each, a subclass of :class:`base.Benchmark`; ``docs/adding.md`` adds one."""
