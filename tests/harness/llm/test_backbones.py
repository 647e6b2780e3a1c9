"""The pool against the paper's price table, other weights of it, and the strictness of its files."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UserError
from harness.files import ROOT
from harness.llm.backbones import Backbone, load
from harness.llm.request import Sampling
from harness.runner import config, config_hash
from harness.runner.config import Cell

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
BACKBONES = pytest.mark.parametrize("backbone", load(POOL).values(), ids=lambda backbone: backbone.key)
TOKENS = st.integers(0, 10**9)


def test_the_pool_is_the_five_of_the_paper_in_its_order_sampled_as_their_publishers_state() -> None:
    """As their generation_config.json has it; the one of Mistral-Nemo names nothing, its model card a temperature."""
    llama, qwen = Sampling(0.6, 0.9), Sampling(0.7, 0.8, 20, 1.05)
    assert list(load(POOL)) == list(PRINTED)
    assert [backbone.sampling for backbone in load(POOL).values()] == [llama, llama, Sampling(0.3), qwen, qwen]


@BACKBONES
@given(prompt=TOKENS, completion=TOKENS)
def test_cost_and_flops_equal_exact_arithmetic_with_the_printed_prices(
    backbone: Backbone, prompt: int, completion: int
) -> None:
    size, price_in, price_out = PRINTED[backbone.key]
    cost = (prompt * Fraction(price_in) + completion * Fraction(price_out)) / 10**6
    assert backbone.cost(prompt, completion) == pytest.approx(float(cost), rel=1e-12)
    flops = 2 * size * 10**9 * (prompt + completion)
    assert backbone.flops(prompt, completion) == pytest.approx(flops, rel=1e-12)
    assert backbone.profile.endswith(
        f"{backbone.description} Price per million tokens: {price_in} input, {price_out} output."
    )


ENTRY = {
    "model": "a/b",
    "revision": None,
    "parameters_b": 1.5,
    "context_length": 4096,
    "description": "small",
    "generation": {"temperature": 0.5},
}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"parameters_b": 0}, "parameters_b: 0 should be greater than 0"),
        ({"generation": {"top_p": 0.9}}, "generation.temperature: missing; add it"),
        ({"weights": "awq"}, "weights: other weights are declared in config/weights.yaml"),
    ],
)
def test_a_wrong_field_is_refused(tmp_path: Path, change: dict[str, object], complaint: str) -> None:
    path = tmp_path / "pool.yaml"
    path.write_text(yaml.safe_dump({"small": {**ENTRY, **change}}))
    with pytest.raises(UserError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: small.{complaint}")


@pytest.mark.parametrize("name", list(WEIGHTS))
def test_weights_change_the_model_and_nothing_that_is_counted(name: str) -> None:
    original, other = load(POOL), load(POOL, name)
    assert list(other) == list(original)
    for key, backbone in other.items():
        assert backbone.model == WEIGHTS[name]["backbones"][key]["model"] != original[key].model
        assert backbone.weights == f"{name} ({WEIGHTS[name]['description']})"
        same = {"model": original[key].model, "revision": original[key].revision, "weights": None}
        assert backbone.model_copy(update=same) == original[key]


def test_the_identity_of_a_cell_names_its_weights_and_no_others() -> None:
    cell = Cell("single", "math", "qwen-2.5-14B", 0)
    paper, four = (config_hash.of_cell(config.preset(name), cell) for name in ("paper", "paper_4bit"))
    assert paper["backbones"]["qwen-2.5-14B"]["model"] == "Qwen/Qwen2.5-14B-Instruct"
    assert "weights" not in paper["backbones"]["qwen-2.5-14B"]
    assert four["backbones"]["qwen-2.5-14B"]["model"] == "Qwen/Qwen2.5-14B-Instruct-AWQ"
    assert four["backbones"]["qwen-2.5-14B"]["weights"].startswith("awq (4 bits a weight")
    assert {**four, "backbones": {}} == {**paper, "backbones": {}}


def test_weights_that_are_not_there_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"unknown weight set 'awk'; did you mean 'awq'\?"):
        config.preset("paper", {"weights": "awk"})
    with pytest.raises(UserError, match="has weights 'awq', but simulated backbones have none"):
        config.preset("embedded", {"weights": "awq"})
    preset: Any = config.preset("paper").model_copy(update={"weights": "awq"})
    entry = {**WEIGHTS["awq"], "backbones": {"llama-3.2-3B": WEIGHTS["awq"]["backbones"]["llama-3.2-3B"]}}
    (tmp_path / "weights.yaml").write_text(yaml.safe_dump({"awq": entry}))
    (tmp_path / "backbones.yaml").write_text(POOL.read_text())
    assert list(load(tmp_path / "backbones.yaml", "awq")) == ["llama-3.2-3B"]
    monkeypatch.setattr(config, "FOLDER", tmp_path)
    with pytest.raises(UserError, match=r"llama-3\.1-8B has no weights 'awq'; add them to config/weights\.yaml"):
        config._check_weights(preset, "paper.yaml")
