"""AFlow (Zhang et al. 2025): a model edits a workflow, the training questions score it, the best one answers."""

from baselines.aflow.method import Config, build

__all__ = ["Config", "build"]
