import numpy as np
import pytest
import torch
from torch import Tensor

from gmr.state_encoder import StateEncoder
from tests.gmr.made import router, units
from tests.gmr.reference import Record, Reference


def memories(rows: int, records: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Projected questions, tokens, and memories of 0, 1, 2 ... records."""
    draw = torch.Generator().manual_seed(seed)
    q_hat = torch.randn(rows, 128, generator=draw, dtype=torch.float64)
    tokens = torch.randn(rows, records, 128, generator=draw, dtype=torch.float64)
    return q_hat, tokens, torch.arange(records) < torch.arange(rows)[:, None] % (records + 1)


@pytest.mark.parametrize("records", range(6))
def test_tokens_and_context_against_plain_numpy(records: int) -> None:
    made = router()
    reference, encoder = Reference(made), made.encoder
    question, *responses = units(np.random.default_rng(records), 1 + records).astype(np.float64)
    memory = [Record(rank % 3, (rank + 1) % 5, response) for rank, response in enumerate(responses)]
    roles, backbones = made.latents()
    rows = [encoder.token(roles[e.role], backbones[e.backbone], torch.from_numpy(e.response)) for e in memory]
    tokens = torch.stack(rows)[None] if rows else torch.zeros(1, 0, 128).double()
    assert tokens[0].detach().numpy() == pytest.approx(np.array([reference.token(e) for e in memory]).reshape(-1, 128))
    q_hat = encoder.W_q(torch.from_numpy(question))[None]
    context = encoder(q_hat, tokens, torch.ones(1, records, dtype=torch.bool))
    assert context[0].detach().numpy() == pytest.approx(reference.context(question, memory), abs=1e-12)


def test_a_batch_is_its_rows_and_what_pads_them_does_not_matter() -> None:
    encoder = router().encoder
    q_hat, tokens, stored = memories(9, 4)
    padded = encoder(q_hat, torch.where(stored[:, :, None], tokens, 1e3), stored)
    for row, records in enumerate(stored.sum(dim=1).tolist()):
        alone = encoder(q_hat[row, None], tokens[row, None, :records], stored[row, None, :records])
        assert torch.allclose(padded[row], alone[0], rtol=0, atol=1e-12)


def test_a_question_without_records_gets_the_learned_vector_and_clean_gradients() -> None:
    encoder = router().encoder
    q_hat, tokens, stored = memories(10, 4)
    q_hat.requires_grad_()
    tokens.requires_grad_()
    context = encoder(q_hat, tokens, stored)
    assert torch.equal(context[0], torch.cat([q_hat[0], encoder.h_empty]))
    (context**2).sum().backward()
    used = {name: parameter for name, parameter in encoder.named_parameters() if name[:2] != "W_"}
    assert all(parameter.grad.isfinite().all() and parameter.grad.any() for parameter in used.values())
    assert q_hat.grad.isfinite().all()
    assert torch.equal(tokens.grad.any(dim=2), stored)


def test_only_empty_memories_train_nothing_but_the_empty_vector() -> None:
    encoder = router().encoder
    q_hat, tokens, stored = memories(3, 4)
    encoder(q_hat, tokens, torch.zeros_like(stored)).sum().backward()
    learning = {name for name, parameter in encoder.named_parameters() if parameter.grad is not None}
    assert learning == {"h_empty"}
    assert encoder.h_empty.grad.tolist() == [3.0] * 128


def test_the_order_of_records_counts() -> None:
    encoder = router().encoder
    q_hat, tokens, stored = memories(5, 4)
    turned = encoder(q_hat[4:], tokens[4:].flip(1), stored[4:])
    assert not torch.allclose(turned, encoder(q_hat[4:], tokens[4:], stored[4:]), atol=1e-6)
    with torch.no_grad():
        encoder.position.zero_()
    turned = encoder(q_hat[4:], tokens[4:].flip(1), stored[4:])
    assert torch.allclose(turned, encoder(q_hat[4:], tokens[4:], stored[4:]), atol=1e-12)


def test_evaluation_mode_gives_the_bytes_of_training_mode() -> None:
    made = router()
    arguments = memories(10, 4)
    trained = made.encoder(*arguments)
    made.eval()
    with torch.no_grad():
        assert torch.equal(made.encoder(*arguments), trained)


def test_starts_with_small_positions_no_empty_vector_and_two_different_layers() -> None:
    torch.manual_seed(0)
    encoder = StateEncoder(max_depth=10)
    assert encoder.position.shape == (10, 128)
    assert encoder.position.std().item() == pytest.approx(0.02, rel=0.1)
    assert not encoder.h_empty.any()
    assert not torch.equal(encoder.layers[0].linear1.weight, encoder.layers[1].linear1.weight)
    assert all(layer.norm_first and layer.dropout.p == 0 and layer.self_attn.dropout == 0 for layer in encoder.layers)
