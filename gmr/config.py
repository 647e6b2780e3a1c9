"""Hyperparameters of GMR and its role and backbone pools. Each variant in the paper is one ``Config``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, NamedTuple

from annotated_types import MinLen
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt, model_validator

from harness.agents import rng
from harness.agents.roles import Role, ToolOutput, by_domain, by_key, catalogue
from harness.errors import UserError, check_names
from harness.files import Declaration
from harness.llm.backbones import Backbone
from harness.runner.setting import ByBenchmark, Setting

Score = Literal["cosine", "dot"]
VaeKL = Literal["sum", "mean"]
Advantage = Literal["centred", "standardised"]
Entropies = Literal["routing", "all"]


class Config(Declaration):
    """Hyperparameters of GMR, with the values that the paper states (Implementation Details)."""

    epochs: ByBenchmark[NonNegativeInt]  # passes over the training questions; 0 leaves the router as initialised
    batch: PositiveInt = 16  # questions per update, B
    group: PositiveInt = 6  # rollouts per question, G
    max_depth: PositiveInt = 6  # maximum number of steps φ
    lambda_c: NonNegativeFloat = 20.0  # weight λ_c of cost in the utility (D-GMR-5)
    lr: NonNegativeFloat = 0.01  # learning rate of Adam
    vae_weight: NonNegativeFloat = 0.001  # weight α of L_VAE
    vae_kl: VaeKL = "sum"  # reduction of the KL divergence over latent dimensions (D-GMR-12)
    entropy_weight: NonNegativeFloat = 0.01  # weight c_H of the mean policy entropy H̄
    entropy_of: Entropies = "routing"  # H̄ over role, backbone and halting, or over all decisions (D-GMR-17)
    # Which calls the utility charges: every step but the final aggregation, or all (D-GMR-7).
    charged: Literal["steps", "total"] = "steps"
    halting_bias: float = -1.1  # initial bias of the halting logit: P(halt) is about 0.25 (D-GMR-2)
    score: Score = "cosine"  # role and backbone logits: cosine with learned scale, or dot product (D-GMR-1)
    advantage: Advantage = "centred"  # utility minus group mean; "standardised" also divides by the deviation
    # Ablations. With both memory gates off, the method is Full-History routing.
    role_allocator: bool = True  # off: the role is uniform over the pool
    llm_router: bool = True  # off: the backbone is uniform over the pool
    retrieval_gate: bool = True  # off: an agent sees every stored record
    write_gate: bool = True  # off: every response is stored
    halting: bool = True  # off: every trajectory takes ``max_depth`` steps
    role_pool: Literal["all", "domain"] = "all"  # all roles, or the roles of the benchmark's domain
    # Number of roles per domain, sampled once with the training seed. None keeps all roles.
    role_subset: Annotated[Mapping[str, int], MinLen(1)] | None = None
    roles: Annotated[Sequence[str], MinLen(1)] | None = None  # keys of the roles, instead of a whole pool
    tool_output: ToolOutput = "last"  # where a record has the output of its role's tool (D-GMR-18)
    decode: Literal["sample", "greedy"] = "sample"  # policy at test time
    # Sampling of the backbones: temperature 0, or the publisher's parameters (D-GEN-2).
    sampling: Literal["greedy", "published"] = "greedy"

    @model_validator(mode="after")
    def _roles_are_given_once(self) -> Config:
        if self.roles is not None and (self.role_subset is not None or self.role_pool != "all"):
            raise ValueError("roles lists the roles, so role_subset and role_pool cannot be given with it")
        if self.role_subset is not None and self.role_pool != "all":
            raise ValueError(f"role_subset draws from all roles, so role_pool cannot be {self.role_pool!r} with it")
        return self


class Pool(NamedTuple):
    """Role and backbone pools. The order gives the action indices."""

    roles: tuple[Role, ...]
    backbones: tuple[Backbone, ...]


def pool_of(config: Config, setting: Setting) -> Pool:
    """Build the pools. Raises UserError for an unknown role, or if ``role_subset`` asks for 0 or too many."""
    roles = by_domain(setting.domain) if config.role_pool == "domain" else catalogue()
    if config.roles is not None:
        check_names("role", config.roles, by_key(), "harness/agents/roles.yaml")
        roles = tuple(by_key()[key] for key in config.roles)
    if config.role_subset is not None:
        roles = ()
        for domain, count in config.role_subset.items():
            known = by_domain(domain)
            if not 1 <= count <= len(known):
                raise UserError(f"role_subset asks for {count} roles of {domain}; choose between 1 and {len(known)}")
            roles += tuple(
                sorted(known, key=lambda role: rng.uniform("role subset", str(setting.seed), role.key))[:count]
            )
    return Pool(tuple(sorted(roles, key=lambda role: role.key)), tuple(setting.pool.values()))
