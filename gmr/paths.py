"""Paths of GMR with one or two steps: actions that a policy chooses, and the calls that follow from them."""

from itertools import product
from typing import NamedTuple

from gmr.config import Config, pool_of
from gmr.rollout import aggregate
from harness.agents.activation import Team, act
from harness.agents.prompts import Record
from harness.agents.roles import Role, ToolOutput
from harness.method import CallSpec, Context, Item, Solve
from harness.runner.setting import Setting


class Second(NamedTuple):
    """Second action of a path."""

    role: Role
    backbone: str
    reads: bool
    stored: bool = False
    temperature: float = 0.0
    slot: int = 0


class Branch(NamedTuple):
    """Path of one or two actions."""

    role: Role
    backbone: str
    stored: bool
    second: Second | None = None
    closes: bool = True  # whether the final call is made; if not, the last step's text is graded
    tool_output: ToolOutput = "last"

    async def solve(self, item: Item, context: Context) -> str:
        """Act once or twice and aggregate. Also embeds all texts that a router needs."""
        await context.embed(item.question)
        team = Team(tool_output=self.tool_output)
        text = await act(self.role, self.backbone, item, (), context, team=team)
        await context.embed(text)
        record, used = Record(self.role.name, text), [self.backbone]
        memory = [record] if self.stored else []
        if (second := self.second) is not None:
            shown = [record] if second.reads else ()
            is_sample = second.temperature > 0
            spec = CallSpec(2, slot=second.slot, temperature=second.temperature, is_sample=is_sample)
            text = await act(second.role, second.backbone, item, shown, context, spec, team)
            await context.embed(text)
            memory += [Record(second.role.name, text)] if second.stored else []
            used.append(second.backbone)
        return await aggregate(item, memory, used, context) if self.closes else text


def stored_paths(config: Config, setting: Setting) -> dict[str, Solve]:
    """Return the paths of one step that is stored, by name: every role on every backbone of the pool."""
    pool = pool_of(config, setting)
    branches = (Branch(role, backbone.key, True) for backbone, role in product(pool.backbones, pool.roles))
    return {f"{branch.role.key} of {branch.backbone}": branch.solve for branch in branches}
