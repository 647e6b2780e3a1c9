"""What a router chooses from: roles and backbones, in the order of their indices."""

from __future__ import annotations

from dataclasses import dataclass

from gmr.config import Config
from harness import rng
from harness.agents.roles import Role, by_domain, catalogue
from harness.errors import UserError
from harness.llm.backbones import Backbone
from harness.runner.method import Setting


@dataclass(frozen=True, slots=True)
class Pool:
    """The choices of a router."""

    roles: tuple[Role, ...]
    backbones: tuple[Backbone, ...]

    def to_facts(self) -> dict[str, list[list[str]]]:
        """Key and profile of every choice, in the order of the indices: what a trained router is bound to.

        Lists, because the objects of a checkpoint's facts have no order.
        """
        return {
            "roles": [[role.key, role.profile] for role in self.roles],
            "backbones": [[backbone.key, backbone.profile] for backbone in self.backbones],
        }


def pool_of(config: Config, setting: Setting) -> Pool:
    """The roles that the configuration grants and the backbones of the setting.

    Raises:
        UserError: The configuration leaves no role, or asks for more of a domain than there are.
    """
    roles = by_domain(setting.domain) if config.role_pool == "domain" else catalogue()
    if config.role_subset is not None:
        roles = tuple(role for domain, count in config.role_subset.items() for role in _some(domain, count, setting))
    return Pool(tuple(sorted(roles, key=lambda role: role.key)), tuple(setting.pool.values()))


def _some(domain: str, count: int, setting: Setting) -> list[Role]:
    roles = by_domain(domain)
    if not 1 <= count <= len(roles):
        raise UserError(f"role_subset asks for {count} roles of {domain}; choose between 1 and {len(roles)}")
    drawn = sorted(roles, key=lambda role: rng.uniform("role subset", str(setting.seed), role.key))
    return drawn[:count]
