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
from harness.choosing import most_frequent
from harness.items import Item
from harness.trajectory import Decision, Desk

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

    async def solve(self, item: Item, desk: Desk) -> str:
        """The answer of the final node; decisions are sampled at the test as well (D-MR-6)."""
        self.trace = await self._plan(item, desk)
        team = self._team(self.trace.choices)
        shown = with_all_tests(item) if self._config.visible_tests == "all" else item
        texts = await work(team, shown, desk)
        backbone = most_frequent([agent.backbone for agent in team.agents])
        prompt = final_prompt(self._pool.domain, desk.rules, item, texts)
        step = team.mode.rounds + 1
        reply = await desk.ask(backbone, prompt, step=step, purpose="aggregate", is_step=False, temperature=None)
        return reply.text

    async def _plan(self, item: Item, desk: Desk) -> Trace:
        pool = self._pool
        question = await desk.embed(item.question)
        uniform = desk.uniform(PLANNING, "noise")
        noise = draw_noise(uniform, len(pool.modes), len(pool.roles), len(pool.backbones))
        with torch.inference_mode():
            decided = self._router.decide(question[None], [noise], self._drawing(desk))
        self._note(decided, desk)
        return Trace(question, noise, decided.choices[0], decided.log_prob.item())

    def _drawing(self, desk: Desk) -> Choose:
        """Draws every choice by its own number, and records it."""
        names = {
            "mode": [mode.name for mode in self._pool.modes],
            "role": [role.key for role in self._pool.roles],
            "backbone": [backbone.key for backbone in self._pool.backbones],
        }

        def draw(name: str, agent: int, log_probs: Tensor) -> list[int]:
            index = desk.draw(PLANNING, name, names[name], log_probs[0].exp().numpy(), agent)
            choice = names[name][index]
            desk.decide(Decision(PLANNING, name, agent, choice, len(names[name]), log_probs[0, index].item()))
            return [index]

        return draw

    def _note(self, decided: Decided, desk: Desk) -> None:
        """Record what is no draw: the task the classifier would have chosen, and the number of agents."""
        tasks = torch.log_softmax(decided.tasks[0], dim=0)
        guess = int(tasks.argmax())
        desk.decide(Decision(PLANNING, "task", 0, list(profiles())[guess], len(tasks), tasks[guess].item()))
        agents = str(len(decided.choices[0].roles))
        desk.decide(Decision(PLANNING, "agents", 0, agents, self._config.max_agents, 0.0))

    def _team(self, choices: Choices) -> Team:
        pairs = zip(choices.roles, choices.backbones, strict=True)
        agents = (Agent(self._pool.roles[role], self._pool.backbones[backbone].key) for role, backbone in pairs)
        return Team(self._pool.modes[choices.mode], tuple(agents))
