import numpy as np
import pytest
import torch

from gmr.halting import Halting, pool
from tests.gmr.made import router
from tests.gmr.reference import Reference


def test_state_and_probability_against_plain_numpy() -> None:
    made = router()
    halting, reference = made.halting, Reference(made)
    assert halting is not None
    state, expected = torch.zeros(1, 128).double(), np.zeros(128)
    for pooled in np.random.default_rng(0).normal(size=(4, 128)):
        state, expected = halting.advance(torch.from_numpy(pooled)[None], state), reference.gru(pooled, expected)
        assert state[0].detach().numpy() == pytest.approx(expected, abs=1e-12)
        assert torch.sigmoid(halting(state)).item() == pytest.approx(reference.halt(expected), abs=1e-12)


def test_the_pool_is_the_mean_of_what_is_stored_and_zero_of_nothing() -> None:
    tokens = torch.arange(12.0).double().reshape(2, 3, 2).requires_grad_()
    stored = torch.tensor([[True, True, False], [False, False, False]])
    pooled = pool(tokens, stored)
    assert pooled.tolist() == [[1.0, 2.0], [0.0, 0.0]]
    assert pool(tokens[:, :0], stored[:, :0]).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    pooled.sum().backward()
    assert tokens.grad is not None
    assert tokens.grad[:, :, 0].tolist() == [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]


def test_the_initial_bias_sets_the_probability_of_a_router_that_knows_nothing() -> None:
    torch.manual_seed(0)
    halting = Halting(-1.1)
    probabilities = torch.sigmoid(halting(torch.zeros(1, 128)))
    assert halting.mlp[2].bias.item() == pytest.approx(-1.1)
    assert probabilities.item() == pytest.approx(0.25, abs=0.03)
