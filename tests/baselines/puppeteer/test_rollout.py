"""Paths: actions, calls, visible context, programs, the answer; network, rewards and update against plain NumPy."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import entropy

from baselines.puppeteer import agents
from baselines.puppeteer.agents import KEYS, TERMINATE
from baselines.puppeteer.method import Puppeteer, returns
from baselines.puppeteer.policy import STATE, ActionChoice, Config, Policy, PuppeteerRollout, Trace
from harness.agents.code_tools import NO_PROGRAM, CodeTools
from harness.agents.prompts import RECORDS_HEADER
from harness.agents.trajectory import TEST, Episode, Trajectory, sample
from harness.benchmarks.items import CodeTask, Item
from harness.benchmarks.programs import fenced
from harness.llm.request import Message, Reply, Request, Sampling
from harness.sandbox import Execution, Outcome
from harness.scripted import setting
from harness.training.learning import Learning, seeded
from harness.training.loop import TrainingStep
from tests.fixtures import (
    FAILED,
    ITEMS,
    RULES,
    Client,
    FakeSandbox,
    embedding,
    graded_rollouts,
    runtime,
    sampling,
    walked,
)

MATHS = Item("q0", "toy", "What is 6 times 7?", "right")
VISIBLE = ("assert double(1) == 2", "assert double('a') == 'aa'")
CODE = Item("c0", "toy", "Write double(x).", "", code=CodeTask("double", "", "assert 0  # hidden", VISIBLE))


def config(**changes: Any) -> Config:
    return Config(**{"epochs": {"default": 1}, **changes})


def method(seed: int = 0, max_epochs: int | None = None, **changes: Any) -> Puppeteer:
    return Puppeteer(setting(seed=seed, benchmark="toy", max_epochs=max_epochs), config(**changes))


class Counting(Client):
    """Client whose n-th reply is the n-th text. The last text repeats with its number; without texts, n is the answer.

    The n-th reply reports 90 + n prompt tokens.
    """

    def __init__(self, *texts: str | Reply) -> None:
        super().__init__(self._next)
        self.texts = texts

    def _next(self, backbone: str, request: Request) -> Reply:
        number = len(self.asked)
        text: str | Reply = f"Text {number}. The answer is {number}"
        if self.texts:
            text = self.texts[number - 1] if number <= len(self.texts) else f"{self.texts[-1]} #{number}"
        return text if isinstance(text, Reply) else Reply(text, 90 + number, 10, "stop", request.model)


class Certain:
    """Fake policy with a scripted order of preferred actions for each step."""

    def __init__(self, *plans: str) -> None:
        self.plans = [plan.split() for plan in plans]
        self.states: list[NDArray[np.float64]] = []

    def log_probs(self, state: NDArray[np.float64], step: int) -> NDArray[np.float64]:
        if step == len(self.states):
            self.states.append(state)
        plan = self.plans[step] if step < len(self.plans) else ["terminate"]
        logits = np.full(len(KEYS), -200.0)
        for rank, key in enumerate(plan):
            logits[KEYS.index(key)] = 50.0 - 60 * rank
        logits[[TERMINATE] if step == 0 else []] = -np.inf
        return logits - np.log(np.exp(logits).sum())


async def walk(
    policy: Any,
    client: Client,
    item: Item = MATHS,
    *,
    code_tools: Any = None,
    seed: int = 0,
    episode: Episode = TEST,
    **changes: Any,
) -> tuple[Trajectory, Trace]:
    rollout = PuppeteerRollout(policy, "small", config(**changes))
    return await walked(rollout, client, item, seed, episode, code_tools=code_tools)


async def planned(*keys: str, client: Client, item: Item = MATHS, code_tools: Any = None) -> Trajectory:
    trajectory, _ = await walk(Certain(*keys), client, item, code_tools=code_tools)
    assert [decision.choice for decision in trajectory.decisions][: len(keys)] == list(keys)
    return trajectory


ACTION = {action.key: action for action in agents.ACTIONS}
QUESTION = "Question:\nWhat is 6 times 7?"


def system(key: str) -> str:
    action = ACTION[key]
    blocks = [action.persona, action.instruction, *([RULES] if key not in ("planning", "critique") else [])]
    return "\n\n".join(blocks)


async def test_every_agent_sees_the_whole_path_and_the_final_call_sees_question_and_candidates() -> None:
    client = Counting()
    trajectory = await planned("reasoning", "critique", "modify", "terminate", client=client)
    first, second, third = (f"Text {number}. The answer is {number}" for number in (1, 2, 3))
    shown = [f"[1] Reasoner:\n{first}", f"[2] Critic:\n{second}"]
    candidates = "[1] Reasoner:\nThe answer is 1\n\n[2] Modifier:\nThe answer is 3"
    turns = {
        system("reasoning"): QUESTION,
        system("critique"): f"{QUESTION}\n\n{RECORDS_HEADER}\n\n{shown[0]}",
        system("modify"): f"{QUESTION}\n\n{RECORDS_HEADER}\n\n{shown[0]}\n\n{shown[1]}",
        f"{agents.AGGREGATE}\n\n{RULES}": f"{QUESTION}\n\n{agents.CANDIDATES_HEADER}\n\n{candidates}",
    }
    assert client.conversations == [(Message("system", told), Message("user", seen)) for told, seen in turns.items()]
    assert third not in client.users[-1]
    assert trajectory.answer == "Text 4. The answer is 4"
    calls = [(call.step, call.slot, call.purpose, call.role, call.backbone, call.is_step) for call in trajectory.calls]
    steps = [(at, 0, "act", key, "small", True) for at, key in enumerate(("reasoning", "critique", "modify"), 1)]
    assert calls == [*steps, (4, 0, "aggregate", "", "small", False)]
    decisions = [(draw.step, draw.name, draw.slot, draw.choice, draw.options) for draw in trajectory.decisions]
    assert [decisions[0], decisions[3]] == [(1, "action", 0, "reasoning", 9), (4, "action", 0, "terminate", 10)]
    assert (trajectory.depth, trajectory.embedded) == (3, 4)
    assert {sampling(request) for request in client.requests} == {Sampling(temperature=0.1)}
    assert len({request.draw for request in client.requests}) == 4


async def test_a_gsm_hard_question_is_posed_as_its_released_task_poses_it() -> None:
    item = dataclasses.replace(MATHS, benchmark="gsm_hard")
    client, policy = Counting(), Certain("reasoning", "critique", "terminate")
    await walk(policy, client, item)
    line = "The following mathematical problem is to be solved by writing a Python program:"
    assert [user.count(f"Question:\n{line}\n{item.question}") for user in client.users] == [1, 1, 0]
    assert client.users[2].startswith(f"{QUESTION}\n\n{agents.CANDIDATES_HEADER}")
    np.testing.assert_allclose(policy.states[0][:384], embedding(f"{line}\n{item.question}"), atol=1e-12)


async def test_an_agent_used_again_continues_its_own_conversation_and_sees_the_whole_path_anew() -> None:
    client = Counting()
    await planned("reasoning", "critique", "reasoning", "reasoning", "terminate", client=client)
    first, other, second, third, _ = client.conversations
    assert other[0].content.startswith(ACTION["critique"].persona)
    records = "\n\n".join(
        f"[{number}] {name}:\nText {number}. The answer is {number}"
        for number, name in ((1, "Reasoner"), (2, "Critic"), (3, "Reasoner"))
    )
    assert second[:3] == (*first, Message("assistant", "Text 1. The answer is 1"))
    two, _, _ = records.partition("\n\n[3]")
    assert second[3:] == (Message("user", f"{agents.AGAIN}\n\n{RECORDS_HEADER}\n\n{two}"),)
    assert third[:5] == (*second, Message("assistant", "Text 3. The answer is 3"))
    assert third[5:] == (Message("user", f"{agents.AGAIN}\n\n{RECORDS_HEADER}\n\n{records}"),)


async def test_six_steps_are_the_most_and_the_forced_end_counts_as_if_chosen() -> None:
    client = Counting()
    keys = ["reasoning", "question", "summarize", "conclude", "modify", "reflect"]
    trajectory, trace = await walk(Certain(*keys, "reasoning planning"), client)
    assert [messages[-1].content.count("The answer is") for messages in client.conversations[:-1]] == list(range(6))
    assert [call.role for call in trajectory.calls] == [*keys, ""]
    last = trajectory.decisions[-1]
    assert (last.step, last.choice, last.options) == (7, "terminate", 10)
    assert last.log_prob == pytest.approx(-250)
    assert (trace[-1].action, trace[-1].step, trace[-1].tokens) == (TERMINATE, 6, 0)


async def test_the_final_call_is_told_where_nobody_has_answered() -> None:
    client = Counting("I would rather not say.")
    await planned("reasoning", "planning", "terminate", client=client)
    assert client.users[-1] == f"{QUESTION}\n\n{agents.NO_CANDIDATES}"


async def test_the_policy_sees_question_last_output_and_the_mean_of_all() -> None:
    policy = Certain("reasoning", "critique", "terminate")
    await walk(policy, Counting())
    question, first, second = (
        embedding(text).astype(float) for text in (MATHS.question, "Text 1. The answer is 1", "Text 2. The answer is 2")
    )
    nothing = np.zeros(384)
    expected = [(question, nothing, nothing), (question, first, first), (question, second, (first + second) / 2)]
    assert len(policy.states) == 3
    for state, parts in zip(policy.states, expected, strict=True):
        np.testing.assert_allclose(state, np.concatenate(parts), atol=1e-12)


async def test_a_failed_call_is_an_empty_contribution_and_leaves_no_conversation() -> None:
    client = Counting(FAILED, *(f"Text {number}. The answer is {number}" for number in (2, 3, 4)))
    trajectory = await planned("reasoning", "reasoning", "critique", "terminate", client=client)
    assert [call.error for call in trajectory.calls] == ["gone", None, None, None]
    assert [len(messages) for messages in client.conversations] == [2, 2, 2, 2]
    assert client.users[1] == f"{QUESTION}\n\n{RECORDS_HEADER}\n\n[1] Reasoner:"
    assert "[1] Reasoner:\nThe answer is 2" in client.users[-1]
    assert trajectory.answer == "Text 4. The answer is 4"


async def test_sampling_follows_the_keyed_number_of_the_step() -> None:
    policy = seeded(Policy, "any")
    for seed in range(5):
        context = runtime(Counting(), seed).context(MATHS)
        trajectory, trace = await walk(policy, Counting(), seed=seed)
        for choice in trace[: trajectory.depth]:
            probabilities = np.exp(policy.log_probs(choice.state, choice.step))
            assert choice.action == sample(probabilities, context.uniform(choice.step + 1, "action", 0))


PROGRAM = "```python\nanswer = 42\n```"
RIGHT, WRONG = "def double(x):\n    return 2 * x\n", "def double(x):\n    return x\n"


async def test_a_program_that_ran_is_followed_by_a_second_call_in_its_conversation() -> None:
    """Both calls are charged, and the final call is not."""
    client = Counting(PROGRAM, "So the answer is 42", "Seen.", "The answer is 42.")
    sandbox = FakeSandbox()
    trajectory, trace = await walk(Certain("python", "reasoning", "terminate"), client, code_tools=CodeTools(sandbox))
    question = f"Question:\n{MATHS.question}"
    opening, second, reasoning, final = client.conversations
    assert [program.source for program in sandbox.given] == ["answer = 42\n"]
    assert opening[1] == Message("user", f"{question}\n\n{agents.COMPUTE}")
    told = "The program was executed; its variable answer holds 42"
    assert second == (*opening, Message("assistant", PROGRAM), Message("user", f"{told}\n\n{agents.STATE}"))
    assert reasoning[1].content.endswith(f"{RECORDS_HEADER}\n\n[1] Programmer:\n{told}\n\nSo the answer is 42")
    assert final[1].content.endswith("[1] Programmer:\nThe answer is 42")
    purposes = [(1, "act"), (1, "second_call"), (2, "act"), (3, "aggregate")]
    assert [(call.step, call.purpose) for call in trajectory.calls] == purposes
    # The n-th call reports 90 + n and 10 tokens.
    assert [choice.tokens for choice in trace] == [101 + 102, 103, 0]


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        ("I need no program. The answer is 5", NO_PROGRAM),
        ('{"code": "print(42)", "answer is":', NO_PROGRAM),
        (PROGRAM, "The program gave no value: ZeroDivisionError."),
    ],
)
async def test_a_program_that_did_not_run_is_told_to_others_and_has_no_second_call(reply: str, failure: str) -> None:
    tools = CodeTools(FakeSandbox(Execution(Outcome.EXCEPTION, "ZeroDivisionError")))
    client = Counting(reply, "Then by hand. The answer is 42", "Closing.")
    trajectory = await planned("python", "reasoning", "terminate", client=client, code_tools=tools)
    assert [call.purpose for call in trajectory.calls] == ["act", "act", "aggregate"]
    assert client.users[1].endswith(f"[1] Programmer:\n{reply}\n\n{failure}")
    # Not even an answer that the reply states next to its program is a candidate.
    assert client.users[2].endswith("oldest first:\n\n[1] Reasoner:\nThe answer is 42")


async def test_a_second_call_that_fails_leaves_the_value_and_the_first_reply() -> None:
    client = Counting(PROGRAM, FAILED, PROGRAM, PROGRAM)
    trajectory = await planned("python", "python", "terminate", client=client)
    assert [call.error for call in trajectory.calls] == [None, "gone", None, None, None]
    assert client.conversations[2][2] == Message("assistant", PROGRAM)
    assert len(client.conversations[2]) == 4
    assert client.users[2].endswith("[1] Programmer:\nThe program was executed; its variable answer holds 42")


async def test_the_programmer_runs_the_visible_examples_with_one_call(code_tools: CodeTools) -> None:
    client = Counting(fenced(WRONG), "Hm.", f"```python\n{RIGHT}```", "Fine.")
    keys = ["python", "critique", "python", "summarize", "terminate"]
    trajectory = await planned(*keys, client=client, item=CODE, code_tools=code_tools)
    assert [call.purpose for call in trajectory.calls] == ["act"] * 4
    assert client.users[0] == f"Question:\n{CODE.question}\n\n{agents.IMPLEMENT}"
    failed, passed = [await code_tools.examples(CODE, fenced(source)) for source in (WRONG, RIGHT)]
    first = f"[1] Programmer:\n```python\n{WRONG}```\n\n{failed}"
    assert client.users[1].endswith(f"{RECORDS_HEADER}\n\n{first}")
    assert client.users[2] == f"{agents.AGAIN}\n\n{agents.IMPLEMENT}\n\n{RECORDS_HEADER}\n\n{first}\n\n[2] Critic:\nHm."
    assert client.users[3].endswith(f"{first}\n\n[2] Critic:\nHm.\n\n[3] Programmer:\n{fenced(RIGHT)}\n\n{passed}")
    assert "hidden" not in "".join(client.users)


async def test_a_turn_without_a_program_keeps_the_last_valid_one(code_tools: CodeTools) -> None:
    broken = "```python\ndef double(x:\n```"
    other = "```python\ndef triple(x):\n    return 3 * x\n```"
    client = Counting(fenced(RIGHT), broken, other, "No program at all.")
    keys = ["reasoning", "modify", "conclude", "python", "terminate"]
    trajectory = await planned(*keys, client=client, item=CODE, code_tools=code_tools)
    assert trajectory.answer == fenced(RIGHT)
    assert len(trajectory.calls) == 4


async def test_a_path_without_a_program_ends_with_a_call_that_writes_one(code_tools: CodeTools) -> None:
    client = Counting("Words 1.", "Words 2.", fenced(RIGHT))
    trajectory = await planned("python", "critique", "terminate", client=client, item=CODE, code_tools=code_tools)
    assert trajectory.answer == fenced(RIGHT)
    *steps, last = trajectory.calls
    assert [call.purpose for call in steps] == ["act", "act"]
    assert (last.step, last.slot, last.purpose, last.role, last.is_step) == (3, 0, "aggregate", "", False)
    records = [f"[1] Programmer:\nWords 1.\n\n{NO_PROGRAM}", "[2] Critic:\nWords 2."]
    assert client.conversations[-1] == (
        Message("system", f"{agents.WRITE}\n\n{RULES}"),
        Message("user", "\n\n".join([f"Question:\n{CODE.question}", RECORDS_HEADER, *records])),
    )


def test_an_answer_counts_only_where_it_is_stated() -> None:
    stating = {
        "The answer is 12.": "12.",
        "The answer is 3, or rather: the answer is 4": "4",
        "Thus $\\boxed{\\frac{1}{2}}$ in all.": "\\boxed{\\frac{1}{2}}",
        "The answer is \\boxed{B}": "\\boxed{B}",
        **dict.fromkeys(("Three steps, 14 items.", "The answer is", "\\boxed{}", ""), None),
    }
    assert {text: agents.answer_in(text) for text in stating} == stating


def plain(policy: Policy, state: np.ndarray, barred: tuple[int, ...]) -> np.ndarray:
    *inner, weight, bias = [value.numpy() for value in policy.state_dict().values()]
    hidden = state
    for layer in range(0, len(inner), 2):
        hidden = np.maximum(inner[layer] @ hidden + inner[layer + 1], 0)
    logits = weight @ hidden + bias
    logits[list(barred)] = -np.inf
    return logits - logsumexp(logits)


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=6), st.floats(0, 1), st.floats(0, 50), st.booleans())
def test_returns_are_discounted_sums(tokens: list[int], gamma: float, parameters_b: float, correct: bool) -> None:
    steps = [ActionChoice(at, np.zeros(STATE), 1, -1.0, used) for at, used in enumerate(tokens)]
    trace = (*steps, ActionChoice(len(tokens), np.zeros(STATE), TERMINATE, -1.0))
    values = returns(trace, correct, parameters_b, config(gamma=gamma))
    weights = [-0.1 * math.log(1 + (at + 1) / 7) / math.log(2) for at in range(len(tokens))]
    rewards = [weight * 2 * parameters_b * used / 1e5 for weight, used in zip(weights, tokens, strict=True)]
    rewards.append(1.0 if correct else -1.0)
    for at in range(len(rewards)):
        expected = sum(gamma**later * reward for later, reward in enumerate(rewards[at:]))
        assert values[at] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("limit", [6, 2])
async def test_loss_and_log_of_an_update_are_those_of_plain_numpy(limit: int) -> None:
    settings, learner = config(max_steps=limit, entropy_weight=0.3), Learning(seeded(Policy, "learning"), 1e-3)
    shapes = [tuple(value.shape) for value in learner.network.parameters() if value.dim() == 2]
    assert shapes == [(512, 1152), (128, 512), (32, 128), (10, 32)]
    episode, puppeteer = Episode(1, 0), Puppeteer(setting("large"), settings)
    walks = (walk(learner.network, Counting(), item, episode=episode, max_steps=limit) for item in ITEMS[:6])
    answered, traces = await graded_rollouts(walks)
    assert (limit == 2) <= any(choice.step == limit for trace in traces for choice in trace)
    expected, gains_of_all = 0.0, []
    for rollout, trace in zip(answered, traces, strict=True):
        gains = returns(trace, rollout.verdict.correct, 10, settings)
        gains_of_all.append(gains)
        assert puppeteer.utility(rollout) == pytest.approx(gains[0], abs=1e-12)
        entropies = []
        for choice, gain in zip(trace, gains, strict=True):
            log_probs = plain(learner.network, choice.state, () if choice.step else (TERMINATE,))
            # What is computed again is what was sampled.
            assert log_probs[choice.action] == pytest.approx(choice.log_prob, abs=1e-12)
            if choice.step < limit:
                entropies.append(entropy(np.exp(log_probs)))
            expected -= log_probs[choice.action] * gain
        expected -= 0.3 * np.mean(entropies)
    before = learner.learned()
    log = puppeteer.learn(learner, answered, traces, TrainingStep(1, 1, 1))
    assert log["loss"] == pytest.approx(expected, abs=1e-9)
    learned = learner.learned()
    assert all(np.isfinite(value).all() and not np.array_equal(value, before[name]) for name, value in learned.items())
    decisions = [decision for rollout in answered for decision in rollout.trajectory.decisions]
    for key in KEYS:
        share = sum(decision.choice == key for decision in decisions) / len(decisions)
        assert log[f"share_{key}"] == pytest.approx(share)
    assert log["at_step_limit"] == pytest.approx(sum(decision.step == limit + 1 for decision in decisions) / 6)
    assert log["utility"] == pytest.approx(np.mean([gains[0] for gains in gains_of_all]))
    assert log["return"] == pytest.approx(np.concatenate(gains_of_all).mean())
    assert 2 < log["entropy"] <= math.log(10)
