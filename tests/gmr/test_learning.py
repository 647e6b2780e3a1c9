"""The state of a training, saved and taken over; pools that a trained router does not fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from gmr.learning import new_router, restored, vae_noise
from gmr.pool import Pool
from gmr.router import Router
from harness.errors import UserError
from harness.training import checkpoint
from harness.training.checkpoint import Checkpoint
from harness.training.learning import Learning, refuse_other_choices
from tests.gmr.world import POOL, config, embedding

PROFILES = [np.stack([embedding(each.profile) for each in part]) for part in (POOL.roles, POOL.backbones)]
SETTINGS = config()


def learning(seed: int = 0, **changes: object) -> Learning[Router]:
    settings = SETTINGS.model_copy(update=changes)
    return Learning(new_router(settings, PROFILES[0], PROFILES[1], seed), settings.lr)


def train(made: Learning[Router], *numbers: int) -> None:
    """Steps down the loss of the autoencoders, which need no rollouts."""
    for number in numbers:
        made.step(made.network.vae_loss(*vae_noise(made.network, 0, number)))


def state(made: Learning[Router]) -> dict[str, bytes]:
    return {name: value.tobytes() for name, value in {**made.learned(), **made.moments()}.items()}


def saved(made: Learning[Router]) -> Checkpoint:
    return Checkpoint({**made.learned(), **made.moments()}, POOL.to_facts())


def test_learning_goes_on_from_a_file_as_if_it_had_never_stopped(tmp_path: Path) -> None:
    undisturbed = learning()
    train(undisturbed, 1, 2, 3, 4)
    first = learning()
    train(first, 1, 2)
    checkpoint.save(tmp_path / "x.safetensors", saved(first))
    found = checkpoint.load(tmp_path / "x.safetensors")
    second = restored(found, SETTINGS, POOL)
    assert state(second) == state(first)
    train(second, 3, 4)
    assert state(second) == state(undisturbed)


def test_without_its_moments_adam_would_go_another_way() -> None:
    first, second = learning(), learning()
    train(first, 1, 2)
    second.restore(first.learned())
    assert second.learned().keys() == first.learned().keys()
    assert second.moments() == {}
    train(first, 3)
    train(second, 3)
    assert state(first) != state(second)


def test_what_was_saved_does_not_move_with_the_router() -> None:
    made = learning()
    train(made, 1)
    before = saved(made)
    copies = {name: value.copy() for name, value in before.tensors.items()}
    train(made, 2)
    assert all(np.array_equal(value, copies[name]) for name, value in before.tensors.items())


def test_the_initial_weights_are_those_of_the_seed_and_leave_the_generator_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    base = state(learning(seed=0))
    assert torch.equal(torch.rand(3), expected)
    assert state(learning(seed=0)) == base
    other = state(learning(seed=1))
    moved = {name for name in base if base[name] != other[name]}
    assert {"network.encoder.W_q.weight", "network.encoder.position", "network.role_vae.mu.weight"} <= moved


def test_an_ablation_starts_from_the_weights_of_the_whole() -> None:
    whole, without = state(learning()), state(learning(write_gate=False))
    assert without.items() < whole.items()


def test_the_noise_of_an_update_is_fixed_by_seed_and_number() -> None:
    made = learning()
    roles, backbones = vae_noise(made.network, 0, 1)
    assert (tuple(roles.shape), tuple(backbones.shape)) == ((len(POOL.roles), 128), (len(POOL.backbones), 128))
    assert torch.equal(roles, vae_noise(made.network, 0, 1)[0])
    for key in ((0, 2), (1, 1)):
        assert not torch.equal(roles, vae_noise(made.network, *key)[0])
    assert abs(float(roles.mean())) < 0.2
    assert float(roles.std()) == pytest.approx(1, abs=0.1)


OTHER_PROFILE = POOL.backbones[0].model_copy(update={"description": "Grew overnight."})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Pool(POOL.roles[:-1], POOL.backbones), "trained with 4 roles and is given 3"),
        (Pool(POOL.roles, POOL.backbones[:1]), "trained with 2 backbones and is given 1"),
        (Pool(POOL.roles[1:], POOL.backbones), "'Commonsense/Critic' where its roles now have 'Commonsense/Historian'"),
        (Pool(POOL.roles, POOL.backbones[::-1]), "'small' where its backbones now have 'large'"),
        (Pool(POOL.roles, (OTHER_PROFILE, POOL.backbones[1])), "the profile of 'small' is not the one"),
    ],
)
def test_a_pool_that_differs_from_the_trained_one_is_refused(tmp_path: Path, given: Pool, message: str) -> None:
    path = tmp_path / "x.safetensors"
    checkpoint.save(path, saved(learning()))
    found = checkpoint.load(path)
    refuse_other_choices(found.facts, POOL.to_facts())
    with pytest.raises(UserError, match=message) as caught:
        restored(found, SETTINGS, given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("change", [{"write_gate": False}, {"max_depth": 4}, {"score": "cosine"}])
def test_a_configuration_of_another_shape_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(UserError, match="other modules or sizes") as caught:
        restored(saved(learning()), SETTINGS.model_copy(update=change), POOL)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
