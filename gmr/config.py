"""Settings of GMR and the pools it chooses from; every variant of the paper is one value of ``Config``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, NamedTuple

from annotated_types import MinLen
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt, model_validator

from harness.agents import rng
from harness.agents.roles import Role, by_domain, catalogue
from harness.errors import UserError
from harness.files import Declaration
from harness.llm.backbones import Backbone
from harness.runner.method import ByBenchmark, Setting

Score = Literal["cosine", "dot"]
VaeKL = Literal["sum", "mean"]
Advantage = Literal["centred", "standardised"]
Entropies = Literal["routing", "all"]


class Config(Declaration):
    """Settings of GMR, with the paper's values (Implementation Details); a module that is off draws nothing."""

    epochs: ByBenchmark[NonNegativeInt]  # passes over the training questions; 0 leaves the router as initialised
    batch: PositiveInt = 16  # questions B of one update
    group: PositiveInt = 6  # rollouts G of each question
    max_depth: PositiveInt = 6  # most steps φ of a trajectory
    lambda_c: NonNegativeFloat = 20.0  # weight λ_c of cost in the utility (D-GMR-5)
    lr: NonNegativeFloat = 0.01  # learning rate of Adam
    vae_weight: NonNegativeFloat = 0.001  # weight α of the loss of the two autoencoders
    vae_kl: VaeKL = "sum"  # how their KL divergence is reduced over the latent dimensions (D-GMR-12)
    entropy_weight: NonNegativeFloat = 0.01  # weight c_H of the mean policy entropy
    entropy_of: Entropies = "routing"  # what H̄ counts: role, backbone and halting, or every gate too (D-GMR-17)
    charged: Literal["steps", "total"] = "steps"  # calls whose cost the utility has: without the last, or all (D-GMR-7)
    halting_bias: float = -1.1  # of the halting logit at first: a probability to halt of about a quarter (D-GMR-2)
    score: Score = "cosine"  # logits of roles and backbones: cosine with a learned scale, or dot product (D-GMR-1)
    advantage: Advantage = "centred"  # utilities less the mean of their group, or that over its standard deviation
    # The ablations; without both memory gates this is Full-History routing.
    role_allocator: bool = True  # off: the role is uniform over the pool
    llm_router: bool = True  # off: the backbone is uniform over the pool
    retrieval_gate: bool = True  # off: an agent sees all that is stored
    write_gate: bool = True  # off: every response is stored
    halting: bool = True  # off: every trajectory has ``max_depth`` steps
    role_pool: Literal["all", "domain"] = "all"  # roles of the catalogue, or of the benchmark's domain (D-GMR-6)
    # How many roles of each domain are kept, drawn once by the training seed; all where ``None``.
    role_subset: Annotated[Mapping[str, int], MinLen(1)] | None = None
    decode: Literal["sample", "greedy"] = "sample"  # how decisions are made at test time
    # How backbones write: at temperature 0, or as their publishers have them sample (D-GEN-2).
    sampling: Literal["greedy", "published"] = "greedy"

    @model_validator(mode="after")
    def _role_subset_is_of_all(self) -> Config:
        if self.role_subset is not None and self.role_pool != "all":
            raise ValueError(f"role_subset draws from all roles, so role_pool cannot be {self.role_pool!r} with it")
        return self


class Pool(NamedTuple):
    """Roles and backbones of a router, in the order of their indices."""

    roles: tuple[Role, ...]
    backbones: tuple[Backbone, ...]


def pool_of(config: Config, setting: Setting) -> Pool:
    """Return the pools of a configuration; UserError if a role subset asks for more roles than there are, or none."""
    roles = by_domain(setting.domain) if config.role_pool == "domain" else catalogue()
    if config.role_subset is not None:
        roles = tuple(
            role for domain, count in config.role_subset.items() for role in _draw_roles(domain, count, setting)
        )
    return Pool(tuple(sorted(roles, key=lambda role: role.key)), tuple(setting.pool.values()))


def _draw_roles(domain: str, count: int, setting: Setting) -> list[Role]:
    roles = by_domain(domain)
    if not 1 <= count <= len(roles):
        raise UserError(f"role_subset asks for {count} roles of {domain}; choose between 1 and {len(roles)}")
    return sorted(roles, key=lambda role: rng.uniform("role subset", str(setting.seed), role.key))[:count]
