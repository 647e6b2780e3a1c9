import numpy as np
import pytest
import torch

from gmr.config import Config
from gmr.router import Router
from tests.gmr.made import router, units
from tests.gmr.reference import Record, Reference

SWITCHES = ("role_allocator", "llm_router", "retrieval_gate", "write_gate", "halting")


def seeded(seed: int, **settings: bool) -> Router:
    torch.manual_seed(seed)
    rng = np.random.default_rng(0)
    return Router(Config(epochs={"default": 0}, **settings), units(rng, 3), units(rng, 2))


@pytest.mark.parametrize("score", ["dot", "cosine"])
async def test_every_decision_of_a_trajectory_against_plain_numpy(score: str) -> None:
    made = router(score=score, max_depth=5)
    reference, policy = Reference(made), made.snapshot()
    question, *responses = units(np.random.default_rng(0), 6)
    state, hidden, memory = policy.begin(question), np.zeros(128), list[Record]()
    for number, (response, written) in enumerate(zip(responses, (False, True, False, True, True), strict=True)):
        role, backbone = number % 7, (2 * number) % 5
        wide, y = question.astype(np.float64), response.astype(np.float64)
        context = reference.context(wide, memory)
        assert policy.roles(state) == pytest.approx(reference.roles(context), abs=1e-12)
        assert policy.backbones(state, role) == pytest.approx(reference.backbones(context, role), abs=1e-12)
        seen = [reference.retrieval(wide, role, backbone, record) for record in memory]
        assert policy.retrieval(state, role, backbone) == pytest.approx(np.array(seen), abs=1e-12)
        assert policy.write(state, response) == pytest.approx(reference.write(context, y, memory), abs=1e-12)
        after, halting = policy.advance(state, role, backbone, response, written)
        state = await policy.state(after)
        memory += [Record(role, backbone, y)] if written else []
        hidden = reference.gru(reference.pool(memory), hidden)
        # At the last step there is nothing left to decide.
        assert halting == (None if number == 4 else pytest.approx(reference.halt(hidden), abs=1e-12))


def test_distributions_are_distributions() -> None:
    policy = router().snapshot()
    state = policy.begin(units(np.random.default_rng(0)))
    for probabilities, count in ((policy.roles(state), 7), (policy.backbones(state, 0), 5)):
        assert probabilities.shape == (count,)
        assert probabilities.dtype == np.float64
        assert probabilities.sum() == pytest.approx(1, abs=1e-14)
        assert (probabilities > 0).all()
        assert np.ptp(probabilities) > 1e-6


async def test_trajectories_can_be_interleaved_and_steps_taken_twice() -> None:
    policy = router().snapshot()
    one, other, response = units(np.random.default_rng(0), 3)
    before = policy.begin(one)
    roles = policy.roles(before)
    after = await policy.state(policy.advance(before, 0, 0, response, True)[0])
    await policy.state(policy.advance(policy.begin(other), 1, 1, one, True)[0])
    again = await policy.state(policy.advance(before, 0, 0, response, True)[0])
    assert np.array_equal(policy.roles(before), roles)
    assert np.array_equal(policy.roles(after), policy.roles(again))
    assert not np.array_equal(policy.roles(after), roles)


@pytest.mark.parametrize("switch", SWITCHES)
async def test_a_module_that_is_off_does_not_exist_and_decides_nothing(switch: str) -> None:
    made = router(**{switch: False})
    assert getattr(made, switch) is None
    assert not any(name.startswith(switch) for name, _ in made.named_parameters())
    policy = made.snapshot()
    question, response = units(np.random.default_rng(0), 2)
    memory, halting = policy.advance(policy.begin(question), 1, 2, response, True)
    state = await policy.state(memory)
    uniform = {"role_allocator": np.full(7, 1 / 7), "llm_router": np.full(5, 1 / 5)}
    decided = {
        "role_allocator": policy.roles(state),
        "llm_router": policy.backbones(state, 0),
        "retrieval_gate": policy.retrieval(state, 0, 0),
        "write_gate": policy.write(state, response),
        "halting": halting,
    }
    for name, outcome in decided.items():
        is_off = outcome is None or np.array_equal(outcome, uniform.get(name))
        assert is_off == (name == switch)


def test_weights_follow_the_seed_and_ablations_share_them() -> None:
    full = dict(seeded(3).named_parameters())
    assert all(torch.equal(value, full[name]) for name, value in seeded(3).named_parameters())
    assert not any(torch.equal(value, full[name]) for name, value in seeded(4).named_parameters() if "W_" in name)
    for switch in SWITCHES:
        ablated = dict(seeded(3, **{switch: False}).named_parameters())
        assert 0 < len(ablated) < len(full)
        assert all(torch.equal(value, full[name]) for name, value in ablated.items())


def test_everything_is_float64_and_profiles_are_buffers_that_a_checkpoint_carries() -> None:
    made, other = router(0), router(1)
    assert {value.dtype for value in made.state_dict().values()} == {torch.float64}
    assert {name for name, _ in made.named_buffers()} == {"role_profiles", "backbone_profiles"}
    other.load_state_dict(made.state_dict())
    question = units(np.random.default_rng(0))
    decided = [policy.roles(policy.begin(question)) for policy in (made.snapshot(), other.snapshot())]
    assert np.array_equal(*decided)
    with pytest.raises(RuntimeError, match="size mismatch for role_profiles"):
        seeded(0).load_state_dict(made.state_dict())


async def test_a_snapshot_leaves_no_trace_for_the_gradient() -> None:
    made = router()
    policy = made.snapshot()
    question, response = units(np.random.default_rng(0), 2)
    memory, context = await policy.state(policy.advance(policy.begin(question), 0, 0, response, True)[0])
    assert not any(tensor.requires_grad for tensor in (context, memory.tokens, memory.records, memory.halting))
    assert torch.is_grad_enabled()
