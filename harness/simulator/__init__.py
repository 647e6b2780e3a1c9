"""Simulated backbones (docs/simulator.md): they imitate no model, and what a run on them measures says nothing."""
