"""Simulated backbones (docs/simulator.md). They imitate no model; measurements on them have no meaning."""
