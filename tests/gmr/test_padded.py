"""Log-probabilities and entropies of whole batches against the walk in plain NumPy, and where their gradient goes."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gmr.padded import Evaluation, evaluate
from gmr.rollout import Step, Trace
from gmr.router import Router
from tests.gmr.reference import Reference, total
from tests.gmr.world import BACKBONES, MODULES, ROLES, router, trace, units

MADE: dict[str, Router] = {score: router(score=score) for score in ("dot", "cosine")}


@st.composite
def batches(draw: st.DrawFn) -> list[Trace]:
    """One to three trajectories of any depth, any pattern of storing, seeing and halting."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    made = []
    for _ in range(draw(st.integers(1, 3))):
        steps: list[Step] = []
        stored = 0
        for _ in range(draw(st.integers(1, 6))):
            seen = tuple(draw(st.lists(st.booleans(), min_size=stored, max_size=stored)))
            written, halted = draw(st.booleans()), draw(st.sampled_from([None, True, False]))
            choice = draw(st.integers(0, ROLES - 1)), draw(st.integers(0, BACKBONES - 1))
            steps.append(Step(*choice, seen, units(rng), written, halted, 0.0))
            stored += written
        made.append(Trace(units(rng), tuple(steps)))
    return made


def compare(made: Router, traces: list[Trace]) -> None:
    """The padded pass against the walk in plain NumPy, in everything it reports."""
    found, reference = evaluate(made, traces), Reference(made)
    walks = [reference.walk(each) for each in traces]
    expected = [sum(walk.log_prob.values()) for walk in walks]
    assert found.log_prob.detach().numpy() == pytest.approx(np.array(expected), abs=1e-9)
    steps = sum(len(each.steps) for each in traces)
    assert set(found.entropies) == {name for switch, (name, _) in MODULES.items() if getattr(made.config, switch)}
    for name, entropy in found.entropies.items():
        assert entropy.draws == total((walk.draws for walk in walks), name)
        assert entropy.total.item() == pytest.approx(total((walk.entropy for walk in walks), name), abs=1e-9)
    policy = sum(total((walk.entropy for walk in walks), name) for name in ("role", "backbone", "halt"))
    assert found.mean_entropy.item() == pytest.approx(policy / steps, abs=1e-9)
    assert set(found.top) == {"role", "backbone"} & set(found.entropies)
    for name, top in found.top.items():
        assert top == pytest.approx(total((walk.top for walk in walks), name) / steps)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(traces=batches(), score=st.sampled_from(["dot", "cosine"]))
def test_a_batch_against_plain_numpy(traces: list[Trace], score: str) -> None:
    compare(MADE[score], traces)


OFF = [*((name,) for name in MODULES), ("retrieval_gate", "write_gate"), tuple(MODULES)]


@pytest.mark.parametrize("off", OFF, ids=str)
def test_a_module_that_is_off_adds_neither_log_probability_nor_entropy(off: tuple[str, ...]) -> None:
    rng = np.random.default_rng(8)
    traces = [trace(rng, depth, last=last) for depth, last in ((1, True), (5, False), (6, None))]
    compare(router(**dict.fromkeys(off, False)), traces)


def altered(given: Trace) -> Iterator[tuple[str, Trace]]:
    """The trace with one stored decision changed, each in turn."""
    for number, step in enumerate(given.steps):
        changes = {
            "role": replace(step, role=(step.role + 1) % ROLES),
            "backbone": replace(step, backbone=(step.backbone + 1) % BACKBONES),
            "response": replace(step, response=-step.response),
            "halted": replace(step, halted=not step.halted),
            "no halting draw": replace(step, halted=None),
        }
        for place, seen in enumerate(step.retrieved):
            retrieved = (*step.retrieved[:place], not seen, *step.retrieved[place + 1 :])
            changes[f"retrieved {place}"] = replace(step, retrieved=retrieved)
        for name, change in changes.items():
            steps = (*given.steps[:number], change, *given.steps[number + 1 :])
            yield f"{name} at {number}", replace(given, steps=steps)
    last = given.steps[-1]
    yield "written at the end", replace(given, steps=(*given.steps[:-1], replace(last, written=not last.written)))
    yield "question", replace(given, question=-given.question)


def test_an_altered_decision_shows() -> None:
    given = trace(np.random.default_rng(5), depth=4, written=1.0)
    [value] = evaluate(MADE["dot"], [given]).log_prob.tolist()
    names, traces = zip(*altered(given), strict=True)
    for name, other in zip(names, evaluate(MADE["dot"], traces).log_prob.tolist(), strict=True):
        assert abs(other - value) > 1e-4, name
    assert len(names) == 4 * 5 + 6 + 2


def test_a_batch_is_its_trajectories_in_any_order() -> None:
    rng = np.random.default_rng(2)
    traces = [trace(rng, depth, written=share) for depth in (1, 6, 3) for share in (0.0, 0.5, 1.0)]
    together = evaluate(MADE["dot"], traces).log_prob
    turned = evaluate(MADE["dot"], traces[::-1]).log_prob.flip(0)
    alone = torch.cat([evaluate(MADE["dot"], [each]).log_prob for each in traces])
    assert torch.allclose(together, turned, rtol=0, atol=1e-12)
    assert torch.allclose(together, alone, rtol=0, atol=1e-12)


def gradients(made: Router, traces: list[Trace]) -> tuple[Evaluation, dict[str, torch.Tensor]]:
    made.zero_grad()
    found = evaluate(made, traces)
    noise = torch.ones(ROLES, 128).double(), torch.ones(BACKBONES, 128).double()
    (found.log_prob.sum() + found.mean_entropy + made.vae_loss(*noise)).backward()
    return found, {name: value.grad for name, value in made.named_parameters() if value.grad is not None}


@pytest.mark.parametrize("off", [(), *OFF[:-1]], ids=str)
def test_every_parameter_learns_from_stored_records_and_no_buffer_does(off: tuple[str, ...]) -> None:
    made, rng = router(score="cosine", **dict.fromkeys(off, False)), np.random.default_rng(3)
    _, found = gradients(made, [trace(rng, depth=6, written=0.8) for _ in range(4)])
    assert set(found) == {name for name, _ in made.named_parameters()}
    always = {"encoder", "role_vae", "backbone_vae"}
    assert {name.split(".")[0] for name in found} == always | set(MODULES) - set(off)
    assert all(gradient.isfinite().all() and gradient.any() for gradient in found.values())
    assert all(buffer.grad is None and not buffer.requires_grad for buffer in made.buffers())


def test_without_records_the_networks_that_read_them_learn_nothing_and_nothing_breaks() -> None:
    made, rng = router(), np.random.default_rng(3)
    _, found = gradients(made, [trace(rng, depth, written=0.0) for depth in (1, 2, 6)])
    assert all(gradient.isfinite().all() for gradient in found.values())
    learned = {name for name, gradient in found.items() if gradient.any()}
    reading = ("encoder.W_g", "encoder.position", "encoder.layers", "encoder.attention", "retrieval_gate")
    assert not [name for name in learned if name.startswith(reading)]
    assert learned >= {"encoder.h_empty", "encoder.W_q.weight", "write_gate.a", "halting.gru.weight_hh"}


def test_gradients_against_finite_differences_of_plain_numpy() -> None:
    made, rng = router(score="cosine"), np.random.default_rng(6)
    traces = [trace(rng, depth=4, written=0.7) for _ in range(2)]
    made.zero_grad()
    evaluate(made, traces).log_prob.sum().backward()
    scalars = (
        "write_gate.a write_gate.beta write_gate.theta retrieval_gate.s retrieval_gate.b role_allocator.softmax.scale"
    )
    for name in [*scalars.split(), "encoder.h_empty", "halting.mlp.2.bias", "encoder.position", "encoder.W_g.weight"]:
        gradient = made.get_parameter(name).grad
        assert gradient is not None
        place = np.unravel_index(int(gradient.abs().argmax()), gradient.shape)
        values = []
        for shift in (1e-5, -1e-5):
            reference = Reference(made)
            reference.weights[name][place] += shift
            values.append(sum(sum(reference.walk(each).log_prob.values()) for each in traces))
        assert gradient[place].item() == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-5), name


def test_a_router_sure_of_everything_still_gives_finite_numbers() -> None:
    found, gradient = gradients(router(moved=3.0), [trace(np.random.default_rng(9), depth=6) for _ in range(3)])
    assert found.entropies["role"].total.item() < 0.5
    assert all(entropy.total.isfinite() and entropy.total >= 0 for entropy in found.entropies.values())
    assert all(value.isfinite().all() for value in gradient.values())


def test_equal_input_gives_equal_bytes() -> None:
    traces = [trace(np.random.default_rng(seed), depth=5) for seed in range(4)]
    one, other = (gradients(MADE["dot"], traces) for _ in range(2))
    assert torch.equal(one[0].log_prob, other[0].log_prob)
    assert all(torch.equal(gradient, other[1][name]) for name, gradient in one[1].items())


def test_retrieval_draws_must_match_the_records() -> None:
    given = trace(np.random.default_rng(0), depth=2, written=1.0)
    first, second = given.steps
    with pytest.raises(ValueError, match="step 1 of the batch has 0 retrieval draws for 1 records"):
        evaluate(MADE["dot"], [replace(given, steps=(first, replace(second, retrieved=())))])
