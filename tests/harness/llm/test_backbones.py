"""The pool against the paper's price table, and the strictness of its file."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UserError
from harness.files import ROOT
from harness.llm.backbones import Backbone, load
from harness.llm.request import Sampling

POOL = ROOT / "config" / "backbones.yaml"
# The paper's table of the pool: billions of parameters, price of a million prompt and completion tokens.
PRINTED = {
    "llama-3.2-3B": (3, "0.009", "0.03"),
    "llama-3.1-8B": (8, "0.024", "0.08"),
    "mistral-nemo-12B": (12, "0.036", "0.12"),
    "qwen-2.5-14B": (14, "0.042", "0.14"),
    "qwen-2.5-32B": (32, "0.096", "0.32"),
}
BACKBONES = pytest.mark.parametrize("backbone", load(POOL).values(), ids=lambda backbone: backbone.key)
TOKENS = st.integers(0, 10**9)


def test_pool_is_the_five_of_the_paper_in_its_order() -> None:
    assert list(load(POOL)) == list(PRINTED)


@BACKBONES
def test_prices_are_the_printed_ones(backbone: Backbone) -> None:
    size, price_in, price_out = PRINTED[backbone.key]
    assert backbone.parameters_b == size
    assert backbone.price_in == pytest.approx(float(price_in), rel=1e-12)
    assert backbone.price_out == pytest.approx(float(price_out), rel=1e-12)


@BACKBONES
@given(prompt=TOKENS, completion=TOKENS)
def test_cost_and_flops_equal_exact_arithmetic(backbone: Backbone, prompt: int, completion: int) -> None:
    size, price_in, price_out = PRINTED[backbone.key]
    cost = (prompt * Fraction(price_in) + completion * Fraction(price_out)) / 10**6
    assert backbone.cost(prompt, completion) == pytest.approx(float(cost), rel=1e-12)
    flops = 2 * size * 10**9 * (prompt + completion)
    assert backbone.flops(prompt, completion) == pytest.approx(flops, rel=1e-12)


@BACKBONES
def test_profile_states_name_size_and_both_prices_as_printed(backbone: Backbone) -> None:
    size, price_in, price_out = PRINTED[backbone.key]
    assert backbone.profile.startswith(f"{backbone.key}: {size} billion parameters. ")
    assert backbone.profile.endswith(f" {price_in} input, {price_out} output.")
    assert backbone.description in backbone.profile
    assert not any(digit in backbone.description for digit in (price_in, price_out))


@BACKBONES
def test_identity_of_the_weights(backbone: Backbone) -> None:
    owner = {"llama": "meta-llama/", "mistral": "mistralai/", "qwen": "Qwen/"}[backbone.key.split("-")[0]]
    assert backbone.model.startswith(owner)
    assert "Instruct" in backbone.model
    assert backbone.context_length == (32768 if owner == "Qwen/" else 131072)


def test_generation_is_what_the_publishers_state() -> None:
    """As their generation_config.json has it; the one of Mistral-Nemo names nothing, its model card a temperature."""
    llama, qwen = Sampling(0.6, 0.9), Sampling(0.7, 0.8, 20, 1.05)
    assert [backbone.sampling for backbone in load(POOL).values()] == [llama, llama, Sampling(0.3), qwen, qwen]


ENTRY = {
    "model": "a/b",
    "revision": None,
    "parameters_b": 1.5,
    "context_length": 4096,
    "description": "small",
    "generation": {"temperature": 0.5},
}


def write(path: Path, document: object) -> Path:
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


def test_any_other_pool_loads_in_the_order_of_its_file(tmp_path: Path) -> None:
    path = write(tmp_path / "pool.yaml", {"z": ENTRY, "a": {**ENTRY, "revision": "0e9e39f"}})
    pool = load(path)
    assert list(pool) == ["z", "a"]
    assert pool["a"].revision == "0e9e39f"
    assert pool["z"].profile.startswith("z: 1.5 billion parameters. small Price per million tokens: 0.0045 input")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"model": "has space"}, "model: 'has space' should match pattern"),
        ({"model": None}, "model: None should be text"),
        ({"revision": 7}, "revision: 7 should be text"),
        ({"parameters_b": 0}, "parameters_b: 0 should be greater than 0"),
        ({"parameters_b": "8B"}, "parameters_b: '8B' should be a number"),
        ({"context_length": 1.5}, "context_length: 1.5 should be a whole number"),
        ({"description": ""}, "description: '' should match pattern"),
        ({"generation": {"top_p": 0.9}}, "generation.temperature: missing; add it"),
        ({"generation": {"temperature": 0}}, "generation.temperature: 0 should be greater than 0"),
        ({"generation": {"temperature": 1, "top_k": 0}}, "generation.top_k: 0 should be greater than 0"),
        ({"weights": "awq"}, "weights: other weights are declared in config/weights.yaml"),
    ],
)
def test_a_wrong_field_is_refused(tmp_path: Path, change: dict[str, object], complaint: str) -> None:
    path = write(tmp_path / "pool.yaml", {"small": {**ENTRY, **change}})
    with pytest.raises(UserError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: small.{complaint}")


@pytest.mark.parametrize("field", list(ENTRY))
def test_a_missing_field_is_refused(tmp_path: Path, field: str) -> None:
    path = write(tmp_path / "pool.yaml", {"small": {k: v for k, v in ENTRY.items() if k != field}})
    with pytest.raises(UserError, match=rf"small\.{field}: missing"):
        load(path)


def test_a_backbone_declared_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pool.yaml"
    path.write_text(POOL.read_text() + "\nqwen-2.5-14B: {}\n")
    with pytest.raises(UserError, match=r"duplicate key 'qwen-2\.5-14B'"):
        load(path)


@pytest.mark.parametrize("document", [{}, [ENTRY], {"with/slash": ENTRY}, {3: ENTRY}])
def test_a_file_that_is_no_pool_is_refused(tmp_path: Path, document: object) -> None:
    with pytest.raises(UserError, match=r"pool\.yaml: .* should "):
        load(write(tmp_path / "pool.yaml", document))
