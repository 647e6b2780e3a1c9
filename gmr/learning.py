"""A router to train: as initialised, or of the shape a checkpoint was made for, and the draws of its autoencoders."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from gmr.config import Config
from gmr.pool import Pool
from gmr.router import Router
from harness.training.checkpoint import Checkpoint
from harness.training.learning import Learning, network_of, refuse_other_choices, seed_of, seeded


def new_router(config: Config, roles: NDArray[np.floating], backbones: NDArray[np.floating], seed: int) -> Router:
    """A router as initialised, a function of the training seed alone.

    Args:
        config: Which modules exist.
        roles: Embeddings of the role profiles, shape (R, 384).
        backbones: Embeddings of the backbone profiles, shape (M, 384).
        seed: Training seed.
    """
    return seeded(lambda: Router(config, roles, backbones), "initial weights", seed)


def vae_noise(router: Router, seed: int, update: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The standard normal draws of one update for both autoencoders: shapes (R, 128) and (M, 128)."""
    generator = torch.Generator().manual_seed(seed_of("vae", seed, update))
    shapes = [latents.shape for latents in router.latents()]
    roles, backbones = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)
    return roles, backbones


def restored(checkpoint: Checkpoint, config: Config, pool: Pool) -> Learning[Router]:
    """A router as a checkpoint left it, ready to decide or to go on learning.

    Raises:
        UserError: The checkpoint was trained for another configuration, other roles or other backbones.
    """
    refuse_other_choices(checkpoint.facts, pool.to_facts())
    tensors = network_of(checkpoint.tensors)
    router = Router(config, tensors["role_profiles"], tensors["backbone_profiles"])  # type: ignore[arg-type]
    learning = Learning(router, config.lr)
    learning.restore(checkpoint.tensors)
    return learning
