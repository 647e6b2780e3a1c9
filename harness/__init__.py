"""Shared by all methods: benchmarks, backbones, agents, training, sandbox, simulator and runner."""
