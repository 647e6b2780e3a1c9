"""Other weights of a backbone are another backbone: in requests, in a cell's identity, in what artefacts say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.errors import UserError
from harness.files import ROOT
from harness.llm.backbones import load, load_weights
from harness.runner import config, config_hash
from harness.runner.config import Cell

POOL = ROOT / "config" / "backbones.yaml"
DECLARED = yaml.safe_load((ROOT / "config" / "weights.yaml").read_text())
CELL = Cell("single", "math", "qwen-2.5-14B", 0)


@pytest.mark.parametrize("name", list(DECLARED))
def test_weights_change_the_model_and_nothing_that_is_counted(name: str) -> None:
    original, other = load(POOL), load(POOL, name)
    assert list(other) == list(original)
    for key, backbone in other.items():
        assert backbone.model == DECLARED[name]["backbones"][key]["model"] != original[key].model
        assert backbone.weights == f"{name} ({DECLARED[name]['description']})"
        same = {"model": original[key].model, "revision": original[key].revision, "weights": None}
        assert backbone.model_copy(update=same) == original[key]


def test_the_identity_of_a_cell_names_its_weights_and_no_others(tmp_path: Path) -> None:
    paper, four = (config_hash.of_cell(config.preset(name), CELL) for name in ("paper", "paper_4bit"))
    assert paper["backbones"]["qwen-2.5-14B"]["model"] == "Qwen/Qwen2.5-14B-Instruct"
    assert "weights" not in paper["backbones"]["qwen-2.5-14B"]
    assert four["backbones"]["qwen-2.5-14B"]["model"] == "Qwen/Qwen2.5-14B-Instruct-AWQ"
    assert four["backbones"]["qwen-2.5-14B"]["weights"].startswith("awq (4 bits a weight")
    assert {**four, "backbones": {}} == {**paper, "backbones": {}}


def test_the_preset_of_4_bits_differs_from_the_paper_in_its_weights_alone() -> None:
    paper, four = config.preset("paper"), config.preset("paper_4bit")
    same = {"name": paper.name, "description": paper.description, "weights": None}
    assert four.model_copy(update=same) == paper


def test_weights_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"unknown weight set 'awk'; did you mean 'awq'\?"):
        config.preset("paper", {"weights": "awk"})
    with pytest.raises(UserError, match="has weights 'awq', but simulated backbones have none"):
        config.preset("embedded", {"weights": "awq"})


def test_a_backbone_without_such_weights_is_refused(tmp_path: Path) -> None:
    entry = {**DECLARED["awq"], "backbones": {"llama-3.2-3B": DECLARED["awq"]["backbones"]["llama-3.2-3B"]}}
    (tmp_path / "weights.yaml").write_text(yaml.safe_dump({"awq": entry}))
    (tmp_path / "backbones.yaml").write_text(POOL.read_text())
    assert list(load(tmp_path / "backbones.yaml", "awq")) == ["llama-3.2-3B"]
    with pytest.raises(UserError, match=r"qwen-2\.5-14B has no weights 'awq'; add them to config/weights\.yaml"):
        load_weights(tmp_path / "weights.yaml", "awq").of("qwen-2.5-14B")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"description": ""}, "awq.description: '' should match"),
        ({"descripton": "4 bits"}, "did you mean 'description'?"),
        ({"backbones": {"a": {"model": "x y", "revision": None}}}, "awq.backbones.a.model: 'x y' should match"),
    ],
)
def test_a_slip_is_one_line(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "weights.yaml"
    path.write_text(yaml.safe_dump({"awq": {**DECLARED["awq"], **change}}))
    with pytest.raises(UserError) as caught:
        load_weights(path, "awq")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
