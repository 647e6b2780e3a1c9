"""MASRouter as a method of the suite: settings, pool, one trajectory, objective, update, training and test."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from baselines.masrouter.router import Choices, Choose, Decided, Embeddings, Router, Texts, Trace, draw_noise
from baselines.masrouter.team import MODES, Agent, Team, final_prompt, profile, profiles, with_all_tests, work
from harness.agents.roles import DOMAINS, Role, by_domain
from harness.agents.trajectory import Answered, Context, Decision
from harness.benchmarks.items import Item
from harness.errors import UserError
from harness.files import Declaration
from harness.llm.backbones import Backbone
from harness.llm.request import Turn
from harness.runner.method import ByBenchmark, Setting
from harness.training.checkpoint import Checkpoint
from harness.training.learning import Choices as ChoicesOf
from harness.training.learning import Learning, PolicyGradient, check_on_policy, network_of, seeded
from harness.training.loop import Training, TrainingStep

# Agents are told apart by letters.
MOST_AGENTS = len(string.ascii_uppercase)


class Config(Declaration):
    """The settings of MASRouter, with the released values where they do not depend on the benchmark (D-MR-9)."""

    epochs: ByBenchmark[NonNegativeInt]  # passes over the training questions
    kappa: ByBenchmark[NonNegativeFloat]  # weight κ of cost in the utility (D-MR-5)
    batch: PositiveInt = 16  # questions of one update
    max_agents: Annotated[int, Field(ge=1, le=MOST_AGENTS)] = 6
    lr: NonNegativeFloat = 0.01
    vae_weight: NonNegativeFloat = 0.001  # of the losses of the autoencoders
    # What tools may run: the examples that the question shows, or all tests where they are plain asserts (D-MR-2).
    visible_tests: Literal["first", "all"] = "first"


class Pool(NamedTuple):
    """The choices of a router: roles of the domain, which is given instead of being chosen (D-MR-1), and backbones."""

    domain: str
    roles: tuple[Role, ...]
    backbones: tuple[Backbone, ...]

    @property
    def label(self) -> int:
        """Index of the task that is given."""
        return DOMAINS.index(self.domain)


# Decisions of the router come before the first round.
PLANNING = 0


class TeamRollout:
    """Walks one question through planning, rounds and final node, and keeps the trace of its decisions."""

    def __init__(self, router: Router, pool: Pool, config: Config) -> None:
        self._router = router
        self._pool = pool
        self._config = config
        self.trace: Trace

    async def solve(self, item: Item, context: Context) -> str:
        """The answer of the final node."""
        self.trace = await self._plan(item, context)
        team = self._team(self.trace.choices)
        shown = with_all_tests(item) if self._config.visible_tests == "all" else item
        texts = await work(team, shown, context)
        # Of equally frequent ones the first: a Counter keeps the order of first sight.
        backbone = Counter(agent.backbone for agent in team.agents).most_common(1)[0][0]
        prompt = final_prompt(self._pool.domain, context.rules, item, texts)
        step = team.mode.rounds + 1
        reply = await context.ask(
            backbone, prompt, Turn("aggregate"), step=step, purpose="aggregate", is_step=False, temperature=None
        )
        return reply.text

    async def _plan(self, item: Item, context: Context) -> Trace:
        pool = self._pool
        question = await context.embed(item.question)
        uniform = context.uniform(PLANNING, "noise")
        noise = draw_noise(uniform, len(MODES), len(pool.roles), len(pool.backbones))
        with torch.inference_mode():
            decided = self._router.decide(question[None], [noise], self._drawing(context))
        self._note(decided, context)
        return Trace(question, noise, decided.choices[0], decided.log_prob.item())

    def _drawing(self, context: Context) -> Choose:
        names = {
            "mode": [mode.name for mode in MODES],
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
        context.decide(Decision(PLANNING, "task", 0, DOMAINS[guess], len(tasks), tasks[guess].item()))
        agents = str(len(decided.choices[0].roles))
        context.decide(Decision(PLANNING, "agents", 0, agents, self._config.max_agents, 0.0))

    def _team(self, choices: Choices) -> Team:
        pairs = zip(choices.roles, choices.backbones, strict=True)
        agents = (Agent(self._pool.roles[role], self._pool.backbones[backbone].key) for role, backbone in pairs)
        return Team(MODES[choices.mode], tuple(agents))


def utility(answered: Answered, kappa: float) -> float:
    """U = correct - κ · cost, with the cost of all calls, the final one included, in the paper's unit."""
    return float(answered.verdict.correct) - kappa * answered.trajectory.cost_total


def _of_decisions(decided: Decided, pool: Pool) -> dict[str, float]:
    count = len(decided.choices)
    chosen = Counter(choices.mode for choices in decided.choices)
    right = int((decided.tasks.argmax(dim=1) == pool.label).sum())
    return {
        "classifier_accuracy": right / count,
        **{f"share_{mode.name}": chosen[index] / count for index, mode in enumerate(MODES)},
        "agents": sum(len(choices.roles) for choices in decided.choices) / count,
        "entropy_mode": _mean_entropy(decided.modes.detach()),
        "entropy_backbone": _mean_entropy(decided.backbones.detach()),
    }


def _mean_entropy(rows: Tensor) -> float:
    return -(rows.exp() * rows).sum(dim=1).mean().item()


class MASRouter(PolicyGradient[Router, Router, Trace]):
    """A router of teams, trained by REINFORCE without a baseline and sampled at the test as well (D-MR-6)."""

    def __init__(self, setting: Setting, config: Config) -> None:
        super().__init__(epochs=setting.epochs(config.epochs), batch=config.batch, lr=config.lr)
        self.config = config
        self.pool = Pool(setting.domain, by_domain(setting.domain), tuple(setting.pool.values()))
        self._kappa = setting.of_benchmark(config.kappa)

    def utility(self, answered: Answered) -> float:
        """What training maximises of one trajectory: its reward less its cost."""
        return utility(answered, self._kappa)

    async def begin(self, training: Training) -> Router:
        """A router as initialised by the training seed."""

        async def embedded(profiles: Iterable[list[str]]) -> Embeddings:
            return np.stack([await training.embed(profile) for _, profile in profiles])

        choices = self.choices()
        texts = Texts(*[await embedded(choices[kind]) for kind in Texts._fields])
        return seeded(lambda: Router(texts, self.config.max_agents), "initial weights", training.seed)

    def like(self, checkpoint: Checkpoint) -> Router:
        """A router over the texts that the checkpoint holds, for teams of the same size."""
        most, trained = self.config.max_agents, checkpoint.facts["max_agents"]
        if trained != most:
            raise UserError(f"the checkpoint was trained with max_agents {trained} and is given {most}; train it again")
        tensors = network_of(checkpoint.tensors)
        texts = [tensors[f"{name}_texts"] for name in ("task", "mode", "role", "backbone")]
        return Router(Texts(*texts), most)  # type: ignore[arg-type]

    def choices(self) -> ChoicesOf:
        """The tasks, modes, roles and backbones of the pool."""
        return {
            "tasks": [[domain, profile] for domain, profile in profiles().items()],
            "modes": [[mode.name, mode.profile] for mode in MODES],
            "roles": [[role.key, profile(role)] for role in self.pool.roles],
            "backbones": [[backbone.key, backbone.profile] for backbone in self.pool.backbones],
        }

    def facts(self) -> Mapping[str, Any]:
        """The choices, and the largest team."""
        return {**self.choices(), "max_agents": self.config.max_agents}

    def rollout(self, policy: Router) -> TeamRollout:
        """One trajectory."""
        return TeamRollout(policy, self.pool, self.config)

    def learn(
        self, learning: Learning[Router], answered: Sequence[Answered], traces: Sequence[Trace], step: TrainingStep
    ) -> dict[str, float]:
        """Take one step of the optimiser; returns what the training log holds of it."""
        utilities = [self.utility(one) for one in answered]
        decided = learning.network.again(traces)
        if decided.choices != tuple(trace.choices for trace in traces):
            raise RuntimeError("computed again, teams have other sizes: the update is not on-policy")
        check_on_policy(decided.log_prob.detach().numpy(), [trace.log_prob for trace in traces])
        # Cross-entropy of the classifier on its logits (D-MR-3), and REINFORCE without a baseline, mean(-log π · u).
        task = F.cross_entropy(decided.tasks, torch.full((len(traces),), self.pool.label))
        policy = -(decided.log_prob * torch.tensor(utilities, dtype=torch.float64)).mean()
        vae = learning.network.vae_loss(traces)
        total = task + policy + self.config.vae_weight * vae
        learning.step(total)
        return {
            "utility": sum(utilities) / len(utilities),
            **_of_decisions(decided, self.pool),
            "loss": total.item(),
            "task_loss": task.item(),
            "policy_loss": policy.item(),
            "vae_loss": vae.item(),
        }


build = MASRouter
