import numpy as np
import pytest
import torch

from gmr.gates import RetrievalGate, WriteGate
from tests.gmr.made import router, units
from tests.gmr.reference import Record, Reference


def vectors(rows: int, seed: int = 0) -> np.ndarray:
    return units(np.random.default_rng(seed), rows).astype(np.float64)


def test_retrieval_against_plain_numpy() -> None:
    made = router()
    gate, reference, (roles, backbones) = made.retrieval_gate, Reference(made), made.latents()
    assert gate is not None
    questions, responses = torch.from_numpy(vectors(2)), torch.from_numpy(vectors(3, seed=1))
    records = gate.record(roles[[4, 0, 4]], backbones[[1, 2, 3]], responses)
    logits = gate(questions, roles[[2, 6]], backbones[[4, 0]], records.expand(2, 3, 128))
    memory = [Record(r, m, y.numpy()) for r, m, y in zip((4, 0, 4), (1, 2, 3), responses, strict=True)]
    expected = [
        [reference.retrieval(question.numpy(), role, backbone, record) for record in memory]
        for question, role, backbone in zip(questions, (2, 6), (4, 0), strict=True)
    ]
    assert torch.sigmoid(logits).detach().numpy() == pytest.approx(np.array(expected), abs=1e-12)


def test_retrieval_starts_as_five_times_the_cosine_and_without_records_draws_nothing() -> None:
    gate = RetrievalGate().double()
    assert (gate.s.item(), gate.b.item()) == (5.0, 0.0)
    question, latent = torch.from_numpy(vectors(2)), torch.zeros(2, 128).double()
    assert gate(question, latent, latent, torch.zeros(2, 0, 128).double()).shape == (2, 0)
    along = torch.nn.functional.normalize(gate.W_p(torch.cat([question, latent, latent], dim=1)), dim=1)
    logits = gate(question, latent, latent, torch.stack([along, -along], dim=1))
    assert logits.detach().numpy() == pytest.approx(np.array([[5.0, -5.0]] * 2))


@pytest.mark.parametrize("records", [0, 1, 3])
def test_write_against_plain_numpy(records: int) -> None:
    made = router()
    gate, reference = made.write_gate, Reference(made)
    assert gate is not None
    context = np.random.default_rng(7).normal(size=256)
    response, *stored = vectors(1 + records, seed=records)
    directions = gate.direction(torch.from_numpy(np.array(stored).reshape(1, records, 384)))
    full = torch.ones(1, records, dtype=torch.bool)
    logit = gate(torch.from_numpy(context)[None], gate.direction(torch.from_numpy(response)[None]), directions, full)
    expected = reference.write(context, response, [Record(0, 0, y) for y in stored])
    assert torch.sigmoid(logit).item() == pytest.approx(expected, abs=1e-12)


def test_rows_with_and_without_records_go_together_and_padding_counts_for_nothing() -> None:
    gate = router().write_gate
    assert gate is not None
    context = torch.randn(3, 256, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    response = gate.direction(torch.from_numpy(vectors(3)))
    # The padding is the response itself: the likest record there could be.
    records = torch.stack([gate.direction(torch.from_numpy(vectors(3, seed=1))), response], dim=1)
    stored = torch.tensor([[False, False], [True, False], [True, True]])
    logits = gate(context, response, records, stored)
    for row, count in enumerate((0, 1, 2)):
        one = slice(row, row + 1)
        alone = gate(context[one], response[one], records[one, :count], stored[one, :count])
        assert logits[row].item() == pytest.approx(alone.item(), abs=1e-13)
    logits.sum().backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in gate.parameters())


def test_write_starts_undecided_and_a_copy_is_less_welcome_than_news() -> None:
    gate = WriteGate().double()
    assert torch.nn.functional.softplus(gate.beta).item() == pytest.approx(5.0, rel=1e-12)
    assert (torch.sigmoid(gate.a).item(), gate.theta.item()) == (0.5, 0.0)
    response = gate.direction(torch.from_numpy(vectors(1)))
    context, stored = torch.ones(1, 256).double(), torch.ones(1, 1, dtype=torch.bool)
    first = gate(context, response, response[None, :, :][:, :0], stored[:, :0])
    copy, opposite = (gate(context, response, sign * response[None], stored) for sign in (1, -1))
    assert (first - copy).item() == pytest.approx(2.5)
    assert (opposite - first).item() == pytest.approx(2.5)
    # A first record has no novelty: its weight stays λ, and it can be refused.
    relevance = torch.nn.functional.normalize(gate.P_c(context)) @ response.T
    assert first.item() == pytest.approx(2.5 * relevance.item())
