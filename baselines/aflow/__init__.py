"""AFlow (Zhang et al. 2025): an LLM edits a workflow, training questions score it, the best one is tested."""

from baselines.aflow.method import Config, build

__all__ = ["Config", "build"]
