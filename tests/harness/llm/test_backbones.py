"""The pool against the paper's price table, alternative weights, and validation of its files."""

from fractions import Fraction

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UserError
from harness.files import ROOT
from harness.llm.backbones import Backbone, forward_flops, load, with_weights
from harness.llm.request import Message, Sampling
from harness.runner.preset import resolve

POOL = ROOT / "config" / "backbones.yaml"
# The paper's table of the pool: billions of parameters, price of a million prompt and completion tokens.
PRINTED = {
    "llama-3.2-3B": (3, "0.009", "0.03"),
    "llama-3.1-8B": (8, "0.024", "0.08"),
    "mistral-nemo-12B": (12, "0.036", "0.12"),
    "qwen-2.5-14B": (14, "0.042", "0.14"),
    "qwen-2.5-32B": (32, "0.096", "0.32"),
}
WEIGHTS = yaml.safe_load((ROOT / "config" / "weights.yaml").read_text())
TOKENS = st.integers(0, 10**9)


def test_the_pool_is_the_five_of_the_paper_in_its_order_sampled_as_their_publishers_state() -> None:
    """As their generation_config.json has it; the one of Mistral-Nemo names nothing, its model card a temperature."""
    llama, qwen = Sampling(0.6, 0.9), Sampling(0.7, 0.8, 20, 1.05)
    assert list(load(POOL)) == list(PRINTED)
    assert [backbone.sampling for backbone in load(POOL).values()] == [llama, llama, Sampling(0.3), qwen, qwen]


@pytest.mark.parametrize("backbone", load(POOL).values(), ids=lambda backbone: backbone.key)
@given(prompt=TOKENS, completion=TOKENS)
def test_cost_and_flops_are_exact_at_the_printed_prices(backbone: Backbone, prompt: int, completion: int) -> None:
    size, price_in, price_out = PRINTED[backbone.key]
    cost = (prompt * Fraction(price_in) + completion * Fraction(price_out)) / 10**6
    assert backbone.cost(prompt, completion) == pytest.approx(float(cost), rel=1e-12)
    flops = 2 * size * 10**9 * (prompt + completion)
    assert forward_flops(backbone.parameters_b, prompt + completion) == pytest.approx(flops, rel=1e-12)
    assert backbone.profile.endswith(
        f"{backbone.description} Price per million tokens: {price_in} input, {price_out} output."
    )


def test_a_call_has_what_the_entry_says() -> None:
    entry = {"stop": ("END",), "extra_body": {"seed": 1}, "max_tokens": 7, "system": "merge", "revision": "r1"}
    prompt = (Message("system", "Think."), Message("user", "2 + 2?"))
    call = load(POOL)["llama-3.1-8B"].model_copy(update=entry).request(prompt, Sampling(0.7), draw=3)
    assert call.messages == (Message("user", "Think.\n\n2 + 2?"),)
    assert (call.stop, call.extra_body, call.max_tokens, call.revision) == (("END",), {"seed": 1}, 7, "r1")
    assert (call.temperature, call.draw) == (0.7, 3)


@pytest.mark.parametrize("name", list(WEIGHTS))
def test_weights_change_the_model_and_nothing_that_is_counted(name: str) -> None:
    original = load(POOL)
    other = with_weights(original, POOL.with_name("weights.yaml"), name)
    assert list(other) == list(original)
    for key, backbone in other.items():
        assert backbone.model == WEIGHTS[name]["backbones"][key]["model"] != original[key].model
        assert backbone.weights == f"{name} ({WEIGHTS[name]['description']})"
        assert backbone.stand_in == (name == "random")
        changed = {"model", "revision", "weights", "stand_in"}
        assert backbone.model_dump(exclude=changed) == original[key].model_dump(exclude=changed)


def test_backbones_of_a_preset_have_its_weights_or_are_refused() -> None:
    found = resolve("paper", {"weights": "q4_k_m"}).declared
    assert found["qwen-2.5-14B"].model == WEIGHTS["q4_k_m"]["backbones"]["qwen-2.5-14B"]["model"]
    for name, weights, message in (
        ("open_single", "awq", r"unknown backbone 'qwen-coder-0\.5B'.* with weights awq"),
        ("paper", "awk", r"unknown weight set 'awk'; did you mean 'awq'\?"),
        ("embedded", "awq", "has weights or a pool, but simulated backbones have none"),
    ):
        with pytest.raises(UserError, match=message):
            resolve(name, {"weights": weights})
