"""A router to train: as initialised, or of the shape a checkpoint was made for."""

from __future__ import annotations

from baselines.masrouter.config import Config
from baselines.masrouter.pool import Pool
from baselines.masrouter.router import Router, Texts
from harness.errors import UserError
from harness.training.checkpoint import Checkpoint
from harness.training.learning import Learning, network_of, refuse_other_choices, seeded


def new_router(config: Config, texts: Texts, seed: int) -> Router:
    """A router as initialised, a function of the training seed alone."""
    return seeded(lambda: Router(texts, config.max_agents), "initial weights", seed)


def restored(checkpoint: Checkpoint, config: Config, pool: Pool) -> Learning[Router]:
    """A router as a checkpoint left it, ready to decide or to go on learning; it needs no encoder.

    Raises:
        UserError: The checkpoint was trained with other tasks, modes, roles, backbones or team sizes.
    """
    refuse_other_choices(checkpoint.facts, pool.to_facts())
    trained = checkpoint.facts["max_agents"]
    if trained != config.max_agents:
        raise UserError(
            f"the checkpoint was trained with max_agents {trained} and is given {config.max_agents}; train it again"
        )
    tensors = network_of(checkpoint.tensors)
    texts = Texts(*(tensors[f"{name}_texts"] for name in ("task", "mode", "role", "backbone")))  # type: ignore[arg-type]
    learning = Learning(Router(texts, config.max_agents), config.lr)
    learning.restore(checkpoint.tensors)
    return learning
