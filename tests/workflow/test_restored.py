"""A trained router is found, rebuilt from its checkpoint, and refused where it does not fit."""

from pathlib import Path
from typing import Any

import pytest

from gmr.config import Config, pool_of
from harness.errors import UserError
from harness.runner import config, layout
from harness.runner.config import Cell
from harness.training.checkpoint import Checkpoint
from harness.training.loop import CHECKPOINT, checkpoint
from tests.fake_encoder import FakeEncoder
from tests.workflow.trained import BACKBONES, VARIANT, setting, write
from workflow.trained_router import find, restore

pytestmark = pytest.mark.usefixtures("endpoint")


def test_the_only_trained_router_is_taken(trained: Path) -> None:
    smoke = config.preset("smoke")
    assert find(smoke, "gmr", None, 0) == find(smoke, "gmr", "gsm_hard", 0) == trained


def test_a_router_that_is_not_there_names_the_command_that_trains_it() -> None:
    smoke = config.preset("smoke", {"methods": ["gmr"]})
    path = "results/smoke/cells/gmr/gsm_hard/pool/seed0/trained.safetensors"
    with pytest.raises(UserError, match=f"no trained gmr of seed 0 on gsm_hard; .*`snakemake --cores all {path}`"):
        find(smoke, "gmr", "gsm_hard", 0)
    with pytest.raises(UserError, match=f"on any of {', '.join(smoke.benchmarks)}; train one with"):
        find(smoke, "gmr", None, 0)


def test_the_command_reaches_cells_beyond_the_preset() -> None:
    with pytest.raises(UserError, match=r"--config methods='\[full_history\]' seeds='\[7\]'`"):
        find(config.preset("smoke"), "full_history", "gsm_hard", 7)


def test_several_routers_are_named(trained: Path) -> None:
    smoke = config.preset("smoke")
    for key in smoke.benchmarks:
        write(layout.cell("smoke", Cell("gmr", key, "pool", 0)) / CHECKPOINT)
    with pytest.raises(UserError, match=f"trained on {', '.join(smoke.benchmarks)}; choose one with --benchmark"):
        find(smoke, "gmr", None, 0)


@pytest.mark.parametrize(
    ("method", "key", "message"),
    [
        ("cot", None, "cot is neither gmr nor a variant"),
        ("gmr_no_haltin", None, "did you mean 'gmr_no_halting'"),
        ("gmr", "gsm_hart", "did you mean 'gsm_hard'"),
    ],
)
def test_a_name_that_is_unknown_is_refused(method: str, key: str | None, message: str) -> None:
    with pytest.raises(UserError, match=message):
        find(config.preset("smoke"), method, key, 0)


def test_a_router_is_restored_with_its_own_pool_in_its_own_order(tmp_path: Path) -> None:
    found = restore(write(tmp_path / "one.safetensors"))
    assert [one.key for one in found.router.pool.backbones] == list(BACKBONES)
    assert found.router.config == Config(**VARIANT)
    assert restore(tmp_path / "one.safetensors", greedy=True).router.config.decode == "greedy"


def test_another_processor_is_no_other_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "one.safetensors", encoder="name-0123-fp32-torch2.9.0-avx512")
    monkeypatch.setattr(FakeEncoder, "identity", "name-0123-fp32-torch2.13.0+cpu-avx2")
    assert restore(path).setting == setting()
    monkeypatch.setattr(FakeEncoder, "identity", "name-4567-fp32-torch2.9.0-avx512")
    with pytest.raises(UserError, match=r"embeddings of name-0123-fp32, config/encoder\.yaml declares name-4567-fp32;"):
        restore(path)


def changed_roles(change: str) -> list[list[str]]:
    roles = pool_of(Config(**VARIANT), setting()).to_facts()["roles"]
    match change:
        case "fewer":
            return roles[:-1]
        case "swapped":
            return roles[::-1]
        case _:
            return [[roles[0][0], "Another profile."], *roles[1:]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"roles": changed_roles("fewer")}, "trained with 2 roles and is given 3"),
        ({"roles": changed_roles("swapped")}, "where its roles now have"),
        ({"roles": changed_roles("profile")}, "the profile of 'Math/.*' is not the one"),
        ({"backbones": [["gpt-2", "Old."]]}, "the backbone 'gpt-2', which config/backbones.yaml no longer has"),
        ({"backbones": [[key, "Cheap."] for key in BACKBONES]}, "the profile of 'qwen-2.5-14B' is not the one"),
        ({"module": "baselines.other", "method": "other"}, "holds no router of Gated-Memory Routing but other"),
        ({"config": {**VARIANT, "write_gate": False}}, "trained with other modules"),
    ],
)
def test_a_router_for_other_surroundings_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as refusal:
        restore(write(tmp_path / "one.safetensors", **changes))
    assert "\n" not in str(refusal.value)


def test_a_file_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    with pytest.raises(UserError, match="is not a checkpoint"):
        restore(tmp_path / "text")
    with pytest.raises(UserError, match="there is no checkpoint"):
        restore(tmp_path / "nothing")
    checkpoint.save(tmp_path / "bare", Checkpoint({}, {"module": "gmr"}))
    with pytest.raises(UserError, match="holds no router of Gated-Memory Routing but something else"):
        restore(tmp_path / "bare")
