from typing import Literal

import numpy as np
import pytest
import torch

from gmr.allocation import PoolSoftmax
from tests.gmr.made import router
from tests.gmr.reference import Reference

SCORES: tuple[Literal["dot"], Literal["cosine"]] = ("dot", "cosine")


@pytest.mark.parametrize("score", SCORES)
def test_roles_and_backbones_against_plain_numpy(score: str) -> None:
    made = router(score=score)
    reference, (roles, backbones) = Reference(made), made.latents()
    contexts = np.random.default_rng(0).normal(size=(4, 256))
    rows = torch.from_numpy(contexts)
    assert made.role_allocator is not None
    assert made.llm_router is not None
    by_role = made.role_allocator(rows, roles).exp().detach().numpy()
    assert by_role == pytest.approx(np.stack([reference.roles(context) for context in contexts]), abs=1e-12)
    acting = [3, 0, 6, 3]
    by_backbone = made.llm_router(rows, roles[acting], backbones).exp().detach().numpy()
    expected = [reference.backbones(context, role) for context, role in zip(contexts, acting, strict=True)]
    assert by_backbone == pytest.approx(np.stack(expected), abs=1e-12)


def test_the_learned_scale_starts_at_five_and_bounds_the_cosine() -> None:
    query, pool = torch.eye(128)[:1] * 1000, torch.eye(128)[:3]
    softmax = PoolSoftmax("cosine")
    odds = (softmax(query, pool)[0, 0] - softmax(query, pool)[0, 1]).item()
    assert odds == pytest.approx(5.0, rel=1e-6)
    assert PoolSoftmax("dot").scale is None
    assert PoolSoftmax("dot")(query, pool)[0, 0].item() == pytest.approx(0.0)


@pytest.mark.parametrize("score", SCORES)
def test_a_saturated_choice_keeps_finite_log_probabilities_and_gradients(score: Literal["dot", "cosine"]) -> None:
    softmax, pool = PoolSoftmax(score).double(), torch.eye(128).double()[:4]
    query = (1e6 * torch.ones(1, 128).double() * torch.tensor([1.0] + 127 * [-1.0])).requires_grad_()
    log_probs = softmax(query, pool)
    log_probs[0, 3].backward()
    assert log_probs.isfinite().all()
    assert query.grad is not None
    assert query.grad.isfinite().all()
