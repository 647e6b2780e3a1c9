"""What the router chooses from, in the order of its indices."""

from __future__ import annotations

from dataclasses import dataclass

from baselines.masrouter.formats import profile
from baselines.masrouter.modes import MODES, Mode
from baselines.masrouter.tasks import profiles
from harness.agents.roles import Role, by_domain
from harness.llm.backbones import Backbone
from harness.runner.method import Setting


@dataclass(frozen=True, slots=True)
class Pool:
    """The choices of a router.

    Attributes:
        domain: The task that is given instead of being chosen (D-MR-1).
        roles: The roles of this domain, sorted.
        backbones: The backbones that may be asked.
    """

    domain: str
    roles: tuple[Role, ...]
    backbones: tuple[Backbone, ...]

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The modes of collaboration, the same in every pool."""
        return MODES

    @property
    def label(self) -> int:
        """Index of the task that is given."""
        return list(profiles()).index(self.domain)

    def to_facts(self) -> dict[str, list[list[str]]]:
        """Key and profile of every choice, in the order of the indices: what a trained router is bound to."""
        return {
            "tasks": [[domain, profile] for domain, profile in profiles().items()],
            "modes": [[mode.name, mode.profile] for mode in self.modes],
            "roles": [[role.key, profile(role)] for role in self.roles],
            "backbones": [[backbone.key, backbone.profile] for backbone in self.backbones],
        }


def pool_of(setting: Setting) -> Pool:
    """The roles of the benchmark's domain and the backbones of the setting."""
    return Pool(setting.domain, by_domain(setting.domain), tuple(setting.pool.values()))
