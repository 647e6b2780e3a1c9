"""Settings, training and test end to end, and one optimiser step."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.stats import entropy

from baselines.masrouter.method import Config, MASRouter
from baselines.masrouter.router import Router, Trace
from harness.agents.trajectory import Answered, Episode
from harness.runner.config import methods
from harness.scripted import setting
from harness.training.learning import Learning
from harness.training.loop import TrainingStep
from tests.baselines.masrouter.fixtures import MODE_NAMES, Reference, code_tools, method, router, walk
from tests.fixtures import ITEMS, Client, graded_rollouts, log, questions, trained


def test_the_released_values_are_the_defaults() -> None:
    config = Config(**methods()["masrouter"].config)
    assert (config.batch, config.max_agents, config.lr, config.vae_weight) == (16, 6, 0.01, 0.001)
    assert config.visible_tests == "first"
    settings = [setting(benchmark=key) for key in ("math", "gsm_hard", "mbpp", "humaneval", "mmlu_pro")]
    assert [one.of_benchmark(config.cost_weight) for one in settings] == [100, 200, 400, 200, 500]
    assert [one.epochs(config.epochs) for one in settings] == [5, 5, 10, 10, 10]


async def fitted(folder: Path, client: Client, number: int, **changes: Any) -> MASRouter:
    return await trained(method(**changes), folder, client, questions(number, "t"), code_tools=code_tools())


async def test_the_label_is_given_and_the_classifier_learns_it(tmp_path: Path) -> None:
    """Roles come from the domain of the benchmark whatever the classifier says (D-MR-1)."""
    for domain in ("Code", "Math"):
        folder = tmp_path / domain
        await fitted(folder, Client(), 8, domain=domain, epochs={"default": 4}, batch=4)
        rows = pq.read_table(folder / "training_decisions.parquet").to_pylist()
        assert {row["choice"].split("/")[0] for row in rows if row["name"] == "role"} == {domain}
        assert log(folder, "classifier_accuracy")[-1] == 1.0
        assert log(folder, "task_loss")[-1] < log(folder, "task_loss")[0]


async def rollouts(network: Router) -> tuple[list[Answered], list[Trace]]:
    return await graded_rollouts(walk(network, Client(), item, episode=Episode(1, 0)) for item in ITEMS)


@pytest.mark.parametrize("bias", [0, -9])
async def test_the_loss_and_the_log_against_plain_numpy(bias: int) -> None:
    """Of teams that differ in size, or have one agent each."""
    network = router(moved=0.1)
    network.number.head.weight.data.mul_(0 if bias else 30)
    network.number.head.bias.data.add_(bias)
    answered, traces = await rollouts(network)
    assert (len({len(trace.choices.roles) for trace in traces}) == 1) == (bias < 0)
    references = [Reference(network, trace) for trace in traces]
    vae = np.mean([network.vae_loss([trace]).item() for trace in traces])
    learning = Learning(network, 0.01)
    before = learning.learned()
    log = method().learn(learning, answered, traces, TrainingStep(1, 1, 1))
    still = {name for name, value in learning.learned().items() if np.array_equal(before[name], value)}
    assert still == {f"network.{kind}_texts" for kind in ("task", "mode", "role", "backbone")}
    utilities = [one.verdict.correct - 200 * sum(call.cost for call in one.trajectory.calls) for one in answered]
    policy = -np.mean([reference.log_prob * u for reference, u in zip(references, utilities, strict=True)])
    task = -np.mean([math.log(reference.tasks[1]) for reference in references])
    modes = [trace.choices.mode for trace in traces]
    expected = {
        "utility": np.mean(utilities),
        "classifier_accuracy": np.mean([reference.tasks.argmax() == 1 for reference in references]),
        **{f"share_{name}": modes.count(index) / 8 for index, name in enumerate(MODE_NAMES)},
        "agents": np.mean([len(trace.choices.roles) for trace in traces]),
        "entropy_mode": np.mean([entropy(reference.modes) for reference in references]),
        "entropy_backbone": np.mean([entropy(reference.backbones) for reference in references]),
        "task_loss": task,
        "policy_loss": policy,
        "vae_loss": vae,
        "loss": task + policy + 0.001 * vae,
    }
    assert log == pytest.approx(expected)
