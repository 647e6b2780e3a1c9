"""Worlds with a changed parameter."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from pathlib import Path

import pytest

from harness.benchmarks.prepare import prepare
from harness.errors import UserError
from harness.llm.backbones import Backbone
from harness.runner import config, layout
from harness.runner.config import Preset
from harness.sandbox import Limits, Sandbox
from harness.simulator import World, build
from harness.simulator.build import build_world, build_world_file, changed_world
from harness.simulator.parameters import load_settings

from .samples import Questions

CHANGE = {"slope": 4.0}


def preset_of(name: str) -> Preset:
    return dataclasses.replace(config.preset(name), benchmarks=("gsm_hard",))


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the questions of one benchmark without programs."""
    monkeypatch.chdir(tmp_path)
    prepare("gsm_hard", "embedded", "official", layout.items("smoke", "gsm_hard"), layout.manifest("smoke", "gsm_hard"))


def test_known_programs_make_the_world_that_trying_them_again_would_make(
    pools: dict[str, Questions], backbones: dict[str, Backbone], world: World, tmp_path: Path
):
    some = {key: pools[key] for key in ("gsm_hard", "mbpp")}
    changed = changed_world(tmp_path / "quick.json", some, load_settings(overrides=CHANGE), backbones, world)

    async def whole() -> World:
        async with Sandbox(Limits(cpu_s=5)) as sandbox:
            return await build_world(tmp_path / "whole.json", some, load_settings(overrides=CHANGE), backbones, sandbox)

    assert asyncio.run(whole()).fingerprint == changed.fingerprint
    assert (tmp_path / "quick.json").read_bytes() == (tmp_path / "whole.json").read_bytes()
    assert changed.benchmarks["mbpp"].wrong == world.benchmarks["mbpp"].wrong
    assert changed.benchmarks["gsm_hard"].calibration != world.benchmarks["gsm_hard"].calibration


def test_a_preset_that_changes_a_parameter_is_built_from_the_one_it_changes(
    prepared: None, monkeypatch: pytest.MonkeyPatch
):
    asyncio.run(build_world_file(preset_of("smoke")))
    monkeypatch.setattr(build, "Sandbox", None)
    asyncio.run(build_world_file(preset_of("smoke@slope=4.0")))
    stated, changed = (json.loads(layout.world(name).read_bytes()) for name in ("smoke", "smoke@slope=4.0"))
    assert stated["settings"]["parameters"]["slope"]["value"] == 5.0
    assert changed["settings"]["parameters"]["slope"]["value"] == 4.0
    assert changed["benchmarks"]["gsm_hard"]["checksum"] == stated["benchmarks"]["gsm_hard"]["checksum"]
    assert changed["benchmarks"]["gsm_hard"]["calibration"] != stated["benchmarks"]["gsm_hard"]["calibration"]


def test_without_the_world_it_changes_there_is_none(prepared: None):
    with pytest.raises(UserError, match=r"results/smoke/world\.json cannot be read .*make it with `snakemake"):
        asyncio.run(build_world_file(preset_of("smoke@slope=4.0")))
    assert not layout.world("smoke@slope=4.0").exists()


@pytest.mark.parametrize(("name", "message"), [("slop", "did you mean 'slope'"), ("unparsable_share", "unparsable")])
def test_an_impossible_change_is_refused_before_anything_is_built(prepared: None, name: str, message: str):
    with pytest.raises(UserError, match=message):
        asyncio.run(build_world_file(preset_of(f"smoke@{name}=4.0")))


def test_a_number_for_a_list_or_mapping_is_a_factor_on_every_entry():
    stated, moved = load_settings().parameters, load_settings(overrides={"role_fit": 2.0}).parameters
    for domain, benchmarks in stated.role_fit.items():
        for key, value in benchmarks.items():
            assert moved.role_fit[domain][key] == 2 * value
    assert load_settings(overrides={"wrong_weights": 0.5}).parameters.wrong_weights == [0.225, 0.125, 0.1, 0.05]
    assert load_settings(overrides={"wrong_weights": [1.0, 2.0, 3.0, 4.0]}).parameters.wrong_weights == [1, 2, 3, 4]
    assert load_settings().parameters == stated
