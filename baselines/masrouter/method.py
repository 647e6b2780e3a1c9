"""MASRouter as a method of the suite: settings, pool, one trajectory, objective, update, training and test."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from baselines.masrouter.router import Choices, Choose, Decided, Embeddings, Router, Texts, Trace, draw_noise
from baselines.masrouter.team import MODES, Agent, Mode, Team, final_prompt, profile, profiles, with_all_tests, work
from harness.agents.results import Answered, Utility
from harness.agents.roles import Role, by_domain
from harness.agents.sampling import most_frequent
from harness.agents.trajectory import Context, Decision
from harness.benchmarks.items import Item
from harness.errors import UserError
from harness.files import Declaration
from harness.llm.backbones import Backbone
from harness.runner.method import ByBenchmark, Setting
from harness.training.checkpoint import Checkpoint
from harness.training.learning import Learning, check_on_policy, network_of, refuse_other_choices, seeded, train
from harness.training.loop import Training, TrainingStep

VisibleTests = Literal["first", "all"]
# Agents are told apart by letters.
MOST_AGENTS = len(string.ascii_uppercase)


class Config(Declaration):
    """The settings of MASRouter, with the released values where they do not depend on the benchmark (D-MR-9).

    Attributes:
        epochs: Passes over the training questions, by benchmark, with a ``default`` for those not named; 0 leaves the
            router as initialised.
        kappa: Weight κ of cost in the utility, in the same form (D-MR-5).
        batch: Questions of one update.
        max_agents: Most agents of a team.
        lr: Learning rate of Adam.
        vae_weight: Weight of the losses of the autoencoders.
        visible_tests: What tools may run: the examples that the question shows, the ``first`` test on MBPP, or ``all``
            tests where they are plain asserts (D-MR-2).
    """

    epochs: ByBenchmark[NonNegativeInt]
    kappa: ByBenchmark[NonNegativeFloat]
    batch: PositiveInt = 16
    max_agents: Annotated[int, Field(ge=1, le=MOST_AGENTS)] = 6
    lr: NonNegativeFloat = 0.01
    vae_weight: NonNegativeFloat = 0.001
    visible_tests: VisibleTests = "first"


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


def utility(answered: Answered, kappa: float) -> float:
    """What an attempt is worth: u = correct - κ · cost, with the cost of all its calls, the final one included.

    Args:
        answered: A graded trajectory.
        kappa: Weight κ of cost, which is in the paper's unit.
    """
    return float(answered.verdict.correct) - kappa * answered.trajectory.cost_total


def policy_loss(decided: Decided, utilities: Sequence[float]) -> Tensor:
    """mean(-log π · u): REINFORCE without a baseline."""
    return -(decided.log_prob * torch.tensor(utilities, dtype=decided.log_prob.dtype)).mean()


def task_loss(decided: Decided, label: int) -> Tensor:
    """Cross-entropy of the classifier, on its logits (D-MR-3).

    Args:
        decided: A pass over questions of one benchmark.
        label: Index of the task of all of them.
    """
    return F.cross_entropy(decided.tasks, torch.full((len(decided.tasks),), label))


def learn(
    learning: Learning[Router],
    answered: Sequence[Answered],
    traces: Sequence[Trace],
    pool: Pool,
    *,
    utility: Utility,
    vae_weight: float,
) -> dict[str, float]:
    """Take one step of the optimiser.

    Args:
        learning: The router that sampled the traces, unchanged since; it is changed here.
        answered: The graded trajectories.
        traces: Their decisions, in the same order.
        pool: What the router chooses from.
        utility: What a trajectory is worth.
        vae_weight: Weight of the autoencoders.

    Returns:
        What the training log holds of the update.

    Raises:
        RuntimeError: The log-probabilities computed again differ from those sampled.
    """
    utilities = [utility(one) for one in answered]
    decided = learning.network.again(traces)
    check_choices(decided, traces)
    check_on_policy(decided.log_prob.detach().numpy(), [trace.log_prob for trace in traces])
    task, policy = task_loss(decided, pool.label), policy_loss(decided, utilities)
    vae = learning.network.vae_loss(traces)
    total = task + policy + vae_weight * vae
    learning.step(total)
    return {
        "utility": sum(utilities) / len(utilities),
        **_of_decisions(decided, pool),
        "loss": total.item(),
        "task_loss": task.item(),
        "policy_loss": policy.item(),
        "vae_loss": vae.item(),
    }


def check_choices(decided: Decided, traces: Sequence[Trace]) -> None:
    """Refuse to learn where the pass computed again comes to other choices, such as another number of agents.

    Raises:
        RuntimeError: It does.
    """
    for choices, trace in zip(decided.choices, traces, strict=True):
        if choices != trace.choices:
            raise RuntimeError(
                f"computed again, there are {len(choices.roles)} agents where there were "
                f"{len(trace.choices.roles)}: the update is not on-policy"
            )


def _of_decisions(decided: Decided, pool: Pool) -> dict[str, float]:
    count = len(decided.choices)
    chosen = Counter(choices.mode for choices in decided.choices)
    right = int((decided.tasks.argmax(dim=1) == pool.label).sum())
    return {
        "classifier_accuracy": right / count,
        **{f"share_{mode.name}": chosen[index] / count for index, mode in enumerate(pool.modes)},
        "agents": sum(len(choices.roles) for choices in decided.choices) / count,
        "entropy_mode": _mean_entropy(decided.modes.detach()),
        "entropy_backbone": _mean_entropy(decided.backbones.detach()),
    }


def _mean_entropy(rows: Tensor) -> float:
    """Mean entropy in nats of distributions given by their log-probabilities."""
    return -(rows.exp() * rows).sum(dim=1).mean().item()


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


class MASRouter:
    """A router that plans a team for each question, trained by REINFORCE without a baseline.

    Args:
        setting: Where it works.
        config: How it is trained, and what its tools may see.
    """

    def __init__(self, setting: Setting, config: Config) -> None:
        self.config = config
        self.pool: Pool = pool_of(setting)
        self._setting = setting
        self._trained: Router | None = None

    @property
    def router(self) -> Router:
        """The router as it decides now.

        Raises:
            RuntimeError: It was neither trained nor loaded.
        """
        if self._trained is None:
            raise RuntimeError("the router has no weights yet: call fit or load first")
        return self._trained

    async def solve(self, item: Item, context: Context) -> str:
        """One trajectory."""
        return await Rollout(self.router, self.pool, self.config).solve(item, context)

    def utility(self, answered: Answered) -> float:
        """What training maximises of one trajectory: its reward less its cost."""
        return utility(answered, self._setting.of_benchmark(self.config.kappa))

    def load(self, checkpoint: Checkpoint) -> None:
        """Take over a trained router.

        Raises:
            UserError: It was trained with other tasks, modes, roles or backbones.
        """
        self._trained = self.restored(checkpoint).network

    async def fit(self, training: Training) -> None:
        """Train for the epochs of the benchmark, one rollout a question, a checkpoint after each epoch."""
        epochs = self._setting.epochs(self.config.epochs)
        self._trained = await train(self, training, epochs=epochs, batch=self.config.batch)

    async def begin(self, training: Training) -> Learning[Router]:
        """A router as initialised by the training seed."""

        async def embedded(profiles: Iterable[list[str]]) -> Embeddings:
            return np.stack([await training.embed(profile) for _, profile in profiles])

        facts = self.pool.to_facts()
        texts = Texts(*[await embedded(facts[kind]) for kind in Texts._fields])
        return Learning(new_router(self.config, texts, training.seed), self.config.lr)

    def restored(self, checkpoint: Checkpoint) -> Learning[Router]:
        """A router as a checkpoint left it; see :func:`restored`."""
        return restored(checkpoint, self.config, self.pool)

    def facts(self) -> Mapping[str, Any]:
        """The choices and the largest team that a trained router is bound to."""
        return {**self.pool.to_facts(), "max_agents": self.config.max_agents}

    def rollouts(self, network: Router) -> Callable[[], Rollout]:
        """Trajectories of the router."""
        return lambda: Rollout(network, self.pool, self.config)

    def learn(
        self, learning: Learning[Router], answered: Sequence[Answered], traces: Sequence[Trace], step: TrainingStep
    ) -> dict[str, float]:
        """One step of the optimiser."""
        weight = self.config.vae_weight
        return learn(learning, answered, traces, self.pool, utility=self.utility, vae_weight=weight)


def build(setting: Setting, config: Config) -> MASRouter:
    """The method for one setting."""
    return MASRouter(setting, config)
