"""The optimiser and the state that a checkpoint holds: parameters, Adam's moments, the pool they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gmr.config import Config
from gmr.pool import Pool
from gmr.router import Router
from harness import draws
from harness.checkpoint import Checkpoint
from harness.errors import UserError

Tensors = Mapping[str, NDArray[np.generic]]
_ADAM = ("exp_avg", "exp_avg_sq", "step")


class Learning:
    """A router and the Adam that trains it (methods §7.10: default betas, no decay).

    Args:
        router: The router; its parameters are changed in place.
        lr: Learning rate.
    """

    def __init__(self, router: Router, lr: float) -> None:
        self.router = router
        self.optimiser = torch.optim.Adam(router.parameters(), lr=lr)

    def step(self, loss: torch.Tensor) -> None:
        """One optimiser step down a loss."""
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()

    def learned(self) -> Tensors:
        """The router: its parameters and the profiles of its pool."""
        return {f"router.{name}": value.numpy().copy() for name, value in self.router.state_dict().items()}

    def moments(self) -> Tensors:
        """What Adam remembers; a parameter that never had a gradient has nothing to remember."""
        return {
            f"adam.{name}.{moment}": self.optimiser.state[parameter][moment].numpy().copy()
            for name, parameter in self.router.named_parameters()
            for moment in _ADAM
            if parameter in self.optimiser.state
        }

    def restore(self, tensors: Tensors) -> None:
        """Take over what :meth:`learned` and, to go on learning, :meth:`moments` gave."""
        weights = {name.removeprefix("router."): value for name, value in tensors.items() if name.startswith("router.")}
        self.router.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in weights.items()})
        for name, parameter in self.router.named_parameters():
            moments = {moment: tensors.get(f"adam.{name}.{moment}") for moment in _ADAM}
            if moments["step"] is not None:
                self.optimiser.state[parameter] = {
                    moment: torch.from_numpy(value.copy()) for moment, value in moments.items() if value is not None
                }


def new_router(config: Config, roles: NDArray[np.floating], backbones: NDArray[np.floating], seed: int) -> Router:
    """A router as initialised, a function of the training seed alone.

    Args:
        config: Which modules exist.
        roles: Embeddings of the role profiles, shape (R, 384).
        backbones: Embeddings of the backbone profiles, shape (M, 384).
        seed: Training seed.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_seed("initial weights", seed))
        return Router(config, roles, backbones)


def vae_noise(router: Router, seed: int, update: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The standard normal draws of one update for both autoencoders: shapes (R, 128) and (M, 128)."""
    generator = torch.Generator().manual_seed(_seed("vae", seed, update))
    shapes = [latents.shape for latents in router.latents()]
    roles, backbones = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)
    return roles, backbones


def router_from(checkpoint: Checkpoint, config: Config, pool: Pool) -> Router:
    """An empty router of the shape a checkpoint was made for.

    Raises:
        UserError: The checkpoint was trained for another configuration, other roles or other backbones.
    """
    refuse_other_pool(checkpoint.facts, pool)
    tensors = checkpoint.tensors
    if not {"router.role_profiles", "router.backbone_profiles"} <= tensors.keys():
        raise UserError("the file holds what the optimiser remembers and no router; name one without .optimiser")
    router = Router(config, tensors["router.role_profiles"], tensors["router.backbone_profiles"])  # type: ignore[arg-type]
    given = {name.removeprefix("router."): value.shape for name, value in tensors.items() if name.startswith("router.")}
    if given != {name: tuple(value.shape) for name, value in router.state_dict().items()}:
        raise UserError(
            "the checkpoint was trained with other modules or another max_depth than this configuration has; train it "
            "again"
        )
    return router


def refuse_other_pool(facts: Mapping[str, Any], pool: Pool) -> None:
    """Refuse a pool that differs from the one a router was trained with, in a name, an order or a profile.

    Raises:
        UserError: Names the first difference.
    """
    now = pool.to_facts()
    for kind in ("roles", "backbones"):
        trained, given = facts[kind], now[kind]
        for (old, old_profile), (new, new_profile) in zip(trained, given, strict=False):
            if old != new:
                raise UserError(
                    f"the router was trained with {old!r} where its {kind} now have {new!r}; train it again"
                )
            if old_profile != new_profile:
                raise UserError(f"the profile of {new!r} is not the one the router was trained with; train it again")
        if len(trained) != len(given):
            raise UserError(
                f"the router was trained with {len(trained)} {kind} and is given {len(given)}; train it again, or give "
                f"the same {kind}"
            )


def _seed(*key: object) -> int:
    return int(draws.uniform(*map(str, key)) * (1 << 53))
