"""MASRouter as a method of the suite: settings, rollout, objective and update."""

import string
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, NamedTuple

import torch
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from baselines.masrouter.router import Embeddings, Router, TeamPlan, Trace, Uniforms, draw_noise
from baselines.masrouter.team import MODES, TASKS, Agent, final_prompt, profile, with_all_tests, work
from harness.agents.activation import most_frequent
from harness.agents.roles import DOMAINS, Role, by_domain
from harness.files import Declaration
from harness.llm.backbones import Backbone
from harness.method import Answered, CallSpec, Context, Decision, Item
from harness.runner.setting import ByBenchmark, Setting
from harness.training.learning import Choices, Learning, PolicyGradient, check_on_policy
from harness.training.loop import TrainingStep

# Agents are labelled by letters.
MOST_AGENTS = len(string.ascii_uppercase)


class Config(Declaration):
    """Settings of MASRouter. Defaults are the released values that do not depend on the benchmark (D-MR-9)."""

    epochs: ByBenchmark[NonNegativeInt]  # passes over the training questions
    cost_weight: ByBenchmark[NonNegativeFloat]  # weight κ of cost in the utility (D-MR-5)
    batch: PositiveInt = 16  # questions per update
    max_agents: Annotated[int, Field(ge=1, le=MOST_AGENTS)] = 6
    lr: NonNegativeFloat = 0.01
    vae_weight: NonNegativeFloat = 0.001  # weight of the autoencoders' losses
    # Tests that tools can run: only tests shown in the question, or all if they are plain asserts (D-MR-2).
    visible_tests: Literal["first", "all"] = "first"


class Pool(NamedTuple):
    """Backbones, and roles of the benchmark's domain. The domain is given, not predicted (D-MR-1)."""

    domain: str
    roles: tuple[Role, ...]
    backbones: tuple[Backbone, ...]

    @property
    def label(self) -> int:
        """Class index of the given task."""
        return DOMAINS.index(self.domain)


# Step number of the router's decisions. Rounds start at 1.
PLANNING = 0


class TeamRollout:
    """One question: planning, rounds and final node. ``solve`` sets ``trace``."""

    def __init__(self, router: Router, pool: Pool, config: Config) -> None:
        self._router = router
        self._pool = pool
        self._config = config
        self.trace: Trace

    async def solve(self, item: Item, context: Context) -> str:
        pool, config = self._pool, self._config
        question = await context.embed(item.question)
        noise = draw_noise(context.uniform(PLANNING, "noise"), len(MODES), len(pool.roles), len(pool.backbones))
        with torch.inference_mode():
            plan = self._router.decide([question], [noise], _uniforms(context, config.max_agents))
        [choices] = plan.choices
        self.trace = Trace(question, noise, choices, plan.log_prob.item())
        self._record(plan, context)
        agents = tuple(
            Agent(pool.roles[role], pool.backbones[backbone].key)
            for role, backbone in zip(choices.roles, choices.backbones, strict=True)
        )
        mode = MODES[choices.mode]
        texts = await work(mode, agents, with_all_tests(item) if config.visible_tests == "all" else item, context)
        backbone = most_frequent([agent.backbone for agent in agents])
        prompt = final_prompt(pool.domain, context.rules, item, texts)
        spec = CallSpec(mode.rounds + 1, "aggregate", temperature=None, is_step=False)
        return (await context.ask(backbone, prompt, spec)).text

    def _record(self, plan: TeamPlan, context: Context) -> None:

        def record(name: str, agent: int, index: int, options: Sequence[str], log_probs: Tensor) -> None:
            context.decide(Decision(PLANNING, name, agent, options[index], len(options), log_probs[index].item()))

        [choices], tasks = plan.choices, torch.log_softmax(plan.tasks[0], dim=0)
        roles, backbones = ([member.key for member in members] for members in (self._pool.roles, self._pool.backbones))
        record("task", 0, int(tasks.argmax()), DOMAINS, tasks)
        record("mode", 0, choices.mode, [mode.key for mode in MODES], plan.modes[0])
        for agent, (role, backbone) in enumerate(zip(choices.roles, choices.backbones, strict=True), 1):
            record("role", agent, role, roles, plan.roles[0, agent - 1])
            record("backbone", agent, backbone, backbones, plan.backbones[0])
        size = str(len(choices.roles))
        context.decide(Decision(PLANNING, "agents", 0, size, self._config.max_agents, 0.0))


def _uniforms(context: Context, max_agents: int) -> Uniforms:
    """Draw the uniform numbers of one plan. Agents are numbered from 1."""
    agents = range(1, max_agents + 1)
    roles, backbones = ([context.uniform(PLANNING, name, agent) for agent in agents] for name in ("role", "backbone"))
    return Uniforms(
        mode=torch.tensor([context.uniform(PLANNING, "mode")], dtype=torch.float64),
        roles=torch.tensor([roles], dtype=torch.float64),
        backbones=torch.tensor([backbones], dtype=torch.float64),
    )


def _measures(plan: TeamPlan, pool: Pool) -> dict[str, float]:
    count = len(plan.choices)
    modes = Counter(choices.mode for choices in plan.choices)
    right = int((plan.tasks.argmax(dim=1) == pool.label).sum())
    return {
        "classifier_accuracy": right / count,
        **{f"share_{mode.key}": modes[index] / count for index, mode in enumerate(MODES)},
        "agents": sum(len(choices.roles) for choices in plan.choices) / count,
        "entropy_mode": _mean_entropy(plan.modes.detach()),
        "entropy_backbone": _mean_entropy(plan.backbones.detach()),
    }


def _mean_entropy(rows: Tensor) -> float:
    return -(rows.exp() * rows).sum(dim=1).mean().item()


class MASRouter(PolicyGradient[Router, Trace]):
    """Team router, trained by REINFORCE without a baseline. Samples at test time too (D-MR-6)."""

    def __init__(self, setting: Setting, config: Config) -> None:
        super().__init__(epochs=setting.epochs(config.epochs), batch=config.batch, lr=config.lr)
        self.config = config
        self.pool = Pool(setting.domain, by_domain(setting.domain), tuple(setting.pool.values()))
        self._cost_weight = setting.of_benchmark(config.cost_weight) * setting.cost_factor

    def utility(self, answered: Answered) -> float:
        """Compute u = correct - κ · cost. All calls count, and the cost is relative to the pool (D-MR-5)."""
        return float(answered.verdict.correct) - self._cost_weight * answered.trajectory.cost_total

    def build(self, profiles: Mapping[str, Embeddings]) -> Router:
        """Build a router from embeddings of tasks, modes, roles and backbones, shape (options, 384) each."""
        return Router(profiles, self.config.max_agents)

    def choices(self) -> Choices:
        return {
            "tasks": [[task.key, task.profile] for task in TASKS.values()],
            "modes": [[mode.key, mode.profile] for mode in MODES],
            "roles": [[role.key, profile(role)] for role in self.pool.roles],
            "backbones": [[backbone.key, backbone.profile] for backbone in self.pool.backbones],
        }

    def rollout(self, network: Router) -> TeamRollout:
        return TeamRollout(network, self.pool, self.config)

    def learn(
        self, learning: Learning[Router], answered: Sequence[Answered], traces: Sequence[Trace], step: TrainingStep
    ) -> dict[str, float]:
        utilities = [self.utility(rollout) for rollout in answered]
        plan = learning.network.evaluate(traces)
        if plan.choices != tuple(trace.choices for trace in traces):
            raise RuntimeError("the update replayed other choices than were sampled: it is not on-policy")
        check_on_policy(plan.log_prob.detach().numpy(), [trace.log_prob for trace in traces])
        # Classifier: cross-entropy on logits (D-MR-3). Policy: REINFORCE without a baseline, mean(-log π · u).
        task = F.cross_entropy(plan.tasks, torch.full((len(traces),), self.pool.label))
        policy = -(plan.log_prob * torch.tensor(utilities, dtype=torch.float64)).mean()
        vae = learning.network.vae_loss(traces)
        total = task + policy + self.config.vae_weight * vae
        learning.step(total)
        return {
            "utility": sum(utilities) / len(utilities),
            **_measures(plan, self.pool),
            "loss": total.item(),
            "task_loss": task.item(),
            "policy_loss": policy.item(),
            "vae_loss": vae.item(),
        }


build = MASRouter
