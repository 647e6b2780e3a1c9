"""What learners with a network share, shown on a network of three weights."""

import subprocess
import sys

import pytest
import torch
from torch import nn

from harness.files import ROOT
from harness.training.learning import Learning, check_on_policy, seeded


def network(*key: object) -> nn.Linear:
    return seeded(lambda: nn.Linear(2, 1), *(key or ("start",)))


def test_a_network_is_a_function_of_its_key_and_leaves_the_generator_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first = network("a", 1)
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(first.weight, network("a", 1).weight)
    assert not torch.equal(first.weight, network("a", 2).weight)


class Halves(nn.Module):
    """Of which one has a gradient at the second step only."""

    def __init__(self) -> None:
        super().__init__()
        self.always, self.later = nn.Linear(3, 2), nn.Linear(3, 2, dtype=torch.float32)

    def forward(self, number: int) -> torch.Tensor:
        row = torch.linspace(-1, 1, 3)
        loss = self.always(row.double() * (1 + number)).square().sum()
        return loss + self.later(row).sum().exp() if number == 1 else loss


def test_a_step_is_that_of_torchs_adam_to_the_bit() -> None:
    ours, theirs = (seeded(Halves, "start") for _ in range(2))
    learning, optimiser = Learning(ours, 0.03), torch.optim.Adam(theirs.parameters(), lr=0.03)
    for number in range(4):
        learning.step(ours(number))
        optimiser.zero_grad()
        theirs(number).backward()
        optimiser.step()
    expected = {
        f"adam.{name}.{moment}": value
        for name, parameter in theirs.named_parameters()
        for moment, value in optimiser.state[parameter].items()
    }
    assert {name: value.tobytes() for name, value in learning.moments().items()} == {
        name: value.numpy().tobytes() for name, value in expected.items()
    }
    assert all(torch.equal(a, b) for a, b in zip(ours.parameters(), theirs.parameters(), strict=True))


@pytest.mark.nightly
def test_learning_does_not_load_the_compiler_of_torch() -> None:
    code = (
        "import sys, torch; from harness.training.learning import Learning; network = torch.nn.Linear(1, 1);"
        "learning = Learning(network, 0.1); learning.step(network(torch.ones(1, 1)).sum());"
        "learning.restore({**learning.learned(), **learning.moments()}); print('torch._dynamo' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True) == "False\n"


@pytest.mark.parametrize("log_prob", [-1.0 + 2e-5, float("nan")])
def test_draws_of_another_policy_are_refused(log_prob: float) -> None:
    check_on_policy([-1.0 + 5e-6, -2.0], [-1.0, -2.0])
    with pytest.raises(RuntimeError, match=r"differ from the sampled ones by .* the update is not on-policy"):
        check_on_policy([log_prob, -2.0], [-1.0, -2.0])
