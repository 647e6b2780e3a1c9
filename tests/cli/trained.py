"""A router as a finished cell leaves it, untrained, and backbones for it that need no model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gmr.config import Config, pool_of
from harness.benchmarks import benchmark
from harness.files import ROOT
from harness.llm.backbones import load as load_backbones
from harness.llm.request import Reply, Request, Served
from harness.runner import layout
from harness.runner.config import Cell
from harness.runner.method import Setting
from harness.training.checkpoint import Checkpoint
from harness.training.learning import Learning
from harness.training.loop import CHECKPOINT, checkpoint
from tests.fake_encoder import FakeEncoder
from tests.gmr.fixtures import new_router

VARIANT: Mapping[str, Any] = {"epochs": {"default": 1}, "role_subset": {"Math": 3}, "max_depth": 3, "halting_bias": 0.0}
BACKBONES = ("qwen-2.5-14B", "llama-3.1-8B")  # not the order of config/backbones.yaml
REPLY = "Added up, they are twelve.\nThe answer is 12"
TRAINED = layout.cell("smoke", Cell("gmr", "gsm_hard", "pool", 0)) / CHECKPOINT


class Backbones:
    """Simulated backbones that say the same to everybody, or refuse."""

    def __init__(self) -> None:
        self.asked = 0
        self.status = 200

    def served(self, model: str) -> Served:
        return Served(model, "simulated")

    def complete(self, request: Request) -> Reply:
        self.asked += 1
        if self.status != 200:
            return Reply.failed(request.model, f"Error code: {self.status} - no room left")
        return Reply(REPLY, 100, 10, "stop", request.model)


def setting() -> Setting:
    declared = load_backbones(ROOT / "config" / "backbones.yaml")
    pool = {key: declared[key] for key in BACKBONES}
    return Setting("pool", pool, "gsm_hard", benchmark("gsm_hard").role_domain, 0, None)


def write(path: Path, variant: Mapping[str, Any] = VARIANT, **changes: Any) -> Path:
    """Write an untrained router as a finished cell leaves it, with ``changes`` to its facts."""
    settings, encoder = Config(**variant), FakeEncoder()
    pool = pool_of(settings, setting())
    roles, backbones = (
        np.stack([encoder.encode(one.profile).vector for one in group]) for group in (pool.roles, pool.backbones)
    )
    facts = {
        **pool.to_facts(),
        "method": "gmr",
        "module": "gmr",
        "config": dict(variant),
        "preset": "smoke",
        "simulated": True,
        "benchmark": "gsm_hard",
        "backbone": "pool",
        "seed": 0,
        "training_seed": 0,
        "epoch": 2,
        "encoder": FakeEncoder.identity,
        **changes,
    }
    learning = Learning(new_router(settings, roles, backbones), settings.lr)
    checkpoint.save(path, Checkpoint(learning.learned(), facts))
    return path
