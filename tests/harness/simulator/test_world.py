from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
from pathlib import Path

import pytest

from harness.errors import UserError
from harness.llm.backbones import Backbone
from harness.sandbox import Limits, Sandbox
from harness.simulator import SimulatedEndpoint, World
from harness.simulator.build import build_world
from harness.simulator.parameters import Settings

from .samples import Questions, request_for


def test_the_same_questions_give_the_same_bytes(
    pools: dict[str, Questions], settings: Settings, backbones: dict[str, Backbone], tmp_path: Path
):
    some = {"gsm_hard": pools["gsm_hard"], "mbpp": Questions(pools["mbpp"].pool[:2])}
    other = {key: Questions(some[key].pool[::-1]) for key in reversed(some)}

    async def build(name: str, chosen: dict[str, Questions], workers: int) -> bytes:
        async with Sandbox(Limits(cpu_s=5), workers=workers) as sandbox:
            await build_world(tmp_path / name, chosen, settings, backbones, sandbox)
        return (tmp_path / name).read_bytes()

    assert asyncio.run(build("a.json", some, 2)) == asyncio.run(build("b.json", other, 1))


def test_a_loaded_world_answers_like_the_one_that_was_built(
    endpoint: SimulatedEndpoint, world_path: Path, pools: dict[str, Questions]
):
    assert endpoint.world.fingerprint == hashlib.sha256(world_path.read_bytes()).hexdigest()
    loaded = SimulatedEndpoint(World.load(world_path, pools))
    assert loaded.models() == endpoint.models()
    for pool in pools.values():
        for item in pool.pool[:5]:
            assert loaded.chat(request_for(item)) == endpoint.chat(request_for(item))


def test_some_of_the_benchmarks_are_enough(world: World, world_path: Path, pools: dict[str, Questions]):
    loaded = World.load(world_path, {"math": pools["math"]})
    assert loaded.index.find(pools["math"].pool[0].question) is not None
    assert loaded.index.find(pools["gsm_hard"].pool[0].question) is None


def test_other_questions_are_refused(world: World, world_path: Path, pools: dict[str, Questions]):
    changed = [dataclasses.replace(pools["math"].pool[0], gold="other"), *pools["math"].pool[1:]]
    with pytest.raises(UserError, match="other questions of math"):
        World.load(world_path, {"math": Questions(changed)})


def test_an_uncalibrated_benchmark_is_refused(
    world: World, world_path: Path, pools: dict[str, Questions], tmp_path: Path
):
    record = json.loads(world_path.read_text())
    del record["benchmarks"]["math"]
    (tmp_path / "w.json").write_text(json.dumps(record))
    with pytest.raises(UserError, match="not math"):
        World.load(tmp_path / "w.json", pools)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "make it with `snakemake"),
        ("{", "not JSON"),
        ("[]", "not a world of format 1"),
        ('{"format": 0}', "not a world of format 1"),
        ('{"format": 1}', "not a complete world"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, content: str | None, message: str):
    path = tmp_path / "w.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UserError, match=message) as caught:
        World.load(path, {})
    assert str(path) in str(caught.value)


def test_world_states_everything_it_answers_from(world_path: Path, world: World, settings: Settings):
    record = json.loads(world_path.read_text())
    assert record["settings"] == json.loads(json.dumps(settings.document))
    assert {entry["model"] for entry in record["backbones"]} == {one.model for one in world.backbones}
    for key, entry in record["benchmarks"].items():
        assert len(entry["checksum"]) == 64
        assert set(entry["calibration"]["ability"]) == {one.key for one in world.backbones}, key
