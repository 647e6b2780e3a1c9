"""Puppeteer's policy (D-PUP-1), and its rollout on one question."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt
from torch import Tensor, nn

from baselines.puppeteer.agents import ACTIONS, KEYS, TEMPERATURE, TERMINATE, Work, act, final, with_preamble
from harness.agents.trajectory import sample
from harness.benchmarks.programs import fenced
from harness.files import Declaration
from harness.llm.encoder import EMBEDDING
from harness.method import CallSpec, Context, Decision, Item
from harness.runner.setting import ByBenchmark


class Config(Declaration):
    """Settings of Puppeteer with the released values."""

    epochs: ByBenchmark[NonNegativeInt]  # passes over the training questions
    batch: PositiveInt = 1  # questions per update; 1 as upstream, which makes training sequential (D-PUP-8)
    max_steps: PositiveInt = 6  # maximum number of steps D (D-PUP-3)
    lr: NonNegativeFloat = 1e-4
    gamma: NonNegativeFloat = 0.99  # discount factor
    entropy_weight: NonNegativeFloat = 1.0  # weight c_H of a question's mean entropy (D-PUP-8)
    cost_weight: NonNegativeFloat = 1.0  # factor κ on step costs (D-PUP-6)


Vector = NDArray[np.float32]
Array = NDArray[np.float64]
STATE = 3 * EMBEDDING


def state_of(question: Vector, outputs: Sequence[Vector]) -> Array:
    """Concatenate question, last output and mean output, shape (1152,). Zeros before the first output."""
    past = np.asarray(outputs, dtype=np.float64).reshape(-1, EMBEDDING)
    last, mean = (past[-1], past.mean(axis=0)) if len(past) else (np.zeros(EMBEDDING), np.zeros(EMBEDDING))
    return np.concatenate([question.astype(np.float64), last, mean])


class ActionChoice(NamedTuple):
    """One choice of the policy."""

    step: int  # number ℓ of finished steps
    state: Array  # shape (1152,)
    action: int
    log_prob: float
    tokens: int = 0  # prompt plus completion tokens of the resulting step; 0 for termination


# The choices of one question, in order.
Trace = tuple[ActionChoice, ...]


_SIZES = (STATE, 512, 128, 32, len(ACTIONS))


class Evaluation(NamedTuple):
    """Log-probabilities and entropies (nats) of choices, shape (choices,) each."""

    log_prob: Tensor
    entropy: Tensor


class Policy(nn.Module):
    """MLP 1152-512-128-32-10 with ReLU, float64."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for inputs, outputs in itertools.pairwise(_SIZES):
            layers += [nn.Linear(inputs, outputs, dtype=torch.float64), nn.ReLU()]
        self.layers = nn.Sequential(*layers[:-1])

    def forward(self, states: Tensor, steps: Tensor) -> Tensor:
        """Map states (rows, 1152) after ``steps`` (rows,) to log-probabilities (rows, 10).

        Termination has -inf before the first step (D-PUP-5).
        """
        barred = (steps[:, None] == 0) & (torch.arange(len(ACTIONS)) == TERMINATE)
        return torch.log_softmax(self.layers(states).masked_fill(barred, -torch.inf), dim=1)

    def evaluate(self, choices: Sequence[ActionChoice]) -> Evaluation:
        """Compute log-probabilities and entropies of choices, with gradient."""
        states = torch.from_numpy(np.stack([choice.state for choice in choices]))
        log_probs = self(states, torch.tensor([choice.step for choice in choices]))
        actions = torch.tensor([[choice.action] for choice in choices])
        # 0 · (-inf) is NaN, also in the gradient.
        finite = log_probs.masked_fill(log_probs.isneginf(), 0.0)
        return Evaluation(log_probs.gather(1, actions).squeeze(1), -(log_probs.exp() * finite).sum(dim=1))

    @torch.no_grad()
    def log_probs(self, state: Array, step: int) -> Array:
        """Compute log-probabilities (10,) in one state (1152,) after ``step`` steps."""
        return self(torch.from_numpy(state)[None], torch.tensor([step]))[0].numpy()


class PuppeteerRollout:
    """One question under a fixed policy. ``solve`` sets ``trace``."""

    def __init__(self, policy: Policy, backbone: str, config: Config) -> None:
        self._policy = policy
        self._backbone = backbone
        self._max_steps = config.max_steps
        self.trace: Trace

    async def solve(self, item: Item, context: Context) -> str:
        """Act until the policy terminates or the step limit is reached, then answer."""
        posed_item = with_preamble(item)
        question = await context.embed(posed_item.question)
        path: Work = ()
        choices: list[ActionChoice] = []
        outputs: list[Vector] = []
        while (choice := self._choose(question, outputs, context)).action != TERMINATE:
            path = (*path, await act(ACTIONS[choice.action], self._backbone, posed_item, path, context))
            outputs.append(await context.embed(path[-1].text))
            choices.append(choice._replace(tokens=path[-1].tokens))
        self.trace = (*choices, choice)
        return await self._close(path, item, context)

    def _choose(self, question: Vector, outputs: Sequence[Vector], context: Context) -> ActionChoice:
        """Draw and record an action. Forced termination at the step limit is recorded too, as upstream."""
        state = state_of(question, outputs)
        log_probs = self._policy.log_probs(state, len(outputs))
        step, action = len(outputs) + 1, TERMINATE
        if step <= self._max_steps:
            action = int(sample(np.exp(log_probs), context.uniform(step, "action")))
        log_prob = float(log_probs[action])
        context.decide(Decision(step, "action", 0, KEYS[action], len(KEYS) - (not outputs), log_prob))
        return ActionChoice(len(outputs), state, action, log_prob)

    async def _close(self, path: Work, item: Item, context: Context) -> str:
        """Return the last valid program (D-PUP-11). If there is none, return the reply to a final call (D-PUP-7)."""
        programs = [step.program for step in path if step.program is not None]
        if programs:
            return fenced(programs[-1])
        prompt = final(item, context.rules, path)
        spec = CallSpec(len(path) + 1, "aggregate", temperature=TEMPERATURE, is_step=False)
        return (await context.ask(self._backbone, prompt, spec)).text
