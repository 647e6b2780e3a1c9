"""One trajectory of MASRouter: the router plans a team, the team works, the final node answers."""

from __future__ import annotations

import torch
from torch import Tensor

from baselines.masrouter.config import Config
from baselines.masrouter.final import final_prompt
from baselines.masrouter.pool import Pool
from baselines.masrouter.router import Choose, Decided, Router
from baselines.masrouter.tasks import profiles
from baselines.masrouter.team import Agent, Team, with_all_tests, work
from baselines.masrouter.trace import Choices, Trace, draw_noise
from harness.agents.sampling import most_frequent
from harness.agents.trajectory import Context, Decision
from harness.benchmarks.items import Item

# Decisions of the router come before the first round.
PLANNING = 0


class Rollout:
    """Walks one question through planning, rounds and final node, and keeps the trace of its decisions.

    Args:
        router: As it is now; it does not change while rollouts are under way.
        pool: What its indices stand for.
        config: What tools may see.
    """

    def __init__(self, router: Router, pool: Pool, config: Config) -> None:
        self._router = router
        self._pool = pool
        self._config = config
        self.trace: Trace

    async def solve(self, item: Item, context: Context) -> str:
        """The answer of the final node; decisions are sampled at the test as well (D-MR-6)."""
        self.trace = await self._plan(item, context)
        team = self._team(self.trace.choices)
        shown = with_all_tests(item) if self._config.visible_tests == "all" else item
        texts = await work(team, shown, context)
        backbone = most_frequent([agent.backbone for agent in team.agents])
        prompt = final_prompt(self._pool.domain, context.rules, item, texts)
        step = team.mode.rounds + 1
        reply = await context.ask(
            backbone, prompt, step=step, purpose="aggregate", kind="aggregate", is_step=False, temperature=None
        )
        return reply.text

    async def _plan(self, item: Item, context: Context) -> Trace:
        pool = self._pool
        question = await context.embed(item.question)
        uniform = context.uniform(PLANNING, "noise")
        noise = draw_noise(uniform, len(pool.modes), len(pool.roles), len(pool.backbones))
        with torch.inference_mode():
            decided = self._router.decide(question[None], [noise], self._drawing(context))
        self._note(decided, context)
        return Trace(question, noise, decided.choices[0], decided.log_prob.item())

    def _drawing(self, context: Context) -> Choose:
        """Draws every choice by its own number, and records it."""
        names = {
            "mode": [mode.name for mode in self._pool.modes],
            "role": [role.key for role in self._pool.roles],
            "backbone": [backbone.key for backbone in self._pool.backbones],
        }

        def draw(name: str, agent: int, log_probs: Tensor) -> list[int]:
            index = context.draw(PLANNING, name, names[name], log_probs[0].exp().numpy(), agent)
            choice = names[name][index]
            context.decide(Decision(PLANNING, name, agent, choice, len(names[name]), log_probs[0, index].item()))
            return [index]

        return draw

    def _note(self, decided: Decided, context: Context) -> None:
        """Record what is no draw: the task the classifier would have chosen, and the number of agents."""
        tasks = torch.log_softmax(decided.tasks[0], dim=0)
        guess = int(tasks.argmax())
        context.decide(Decision(PLANNING, "task", 0, list(profiles())[guess], len(tasks), tasks[guess].item()))
        agents = str(len(decided.choices[0].roles))
        context.decide(Decision(PLANNING, "agents", 0, agents, self._config.max_agents, 0.0))

    def _team(self, choices: Choices) -> Team:
        pairs = zip(choices.roles, choices.backbones, strict=True)
        agents = (Agent(self._pool.roles[role], self._pool.backbones[backbone].key) for role, backbone in pairs)
        return Team(self._pool.modes[choices.mode], tuple(agents))
