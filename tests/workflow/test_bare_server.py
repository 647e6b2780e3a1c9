"""A server that says no more of a model than its name: from the health check to what is printed below a table."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
import yaml
from aiohttp import web

from analysis.claims.report import _backbones as of_claims
from analysis.frames import measure
from analysis.provenance import identity, provenance
from analysis.results import read
from harness.benchmarks.prepare import prepare
from harness.runner import cell, config, layout
from harness.runner.config import Cell
from harness.runner.plan import plan
from tests.fake_encoder import FakeEncoder
from tests.harness.llm.serving import completion, served_at
from workflow import health

BACKBONE, MODEL = "qwen-2.5-14B", "random/qwen-2.5-14B"


@pytest.fixture
def chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> config.Preset:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GMR_ENDPOINTS", str(tmp_path / "endpoints.yaml"))
    monkeypatch.setattr("harness.runner.setup.SentenceEncoder", FakeEncoder)
    # The questions need no program, and this machine need not be able to confine one.
    monkeypatch.setattr("harness.runner.setup.check_confinement", lambda *_: None)
    preset = config.preset("cpu_server", {"backbones": [BACKBONE], "methods": ["cot"], "benchmarks": ["gsm_hard"]})
    prepare(
        "gsm_hard", "embedded", "official", *(of(preset.name, "gsm_hard") for of in (layout.items, layout.manifest))
    )
    return preset


@pytest.mark.parametrize("entry", [{}, {"owned_by": None}, {"owned_by": 7}], ids=["absent", "null", "no text"])
async def test_it_passes_the_check_and_its_cell_can_be_reported(
    entry: dict[str, object], chosen: config.Preset
) -> None:
    async def chat(http: web.Request) -> web.Response:
        return web.json_response(completion("The answer is 7", (await http.json())["model"]))

    async def models(http: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": MODEL, **entry}]})

    async with served_at(chat=chat, models=models) as url:
        Path("endpoints.yaml").write_text(yaml.safe_dump({BACKBONE: {"url": url}}))
        (checked,) = await health.check(chosen, ["gsm_hard"])
        made = plan(chosen, Cell("cot", "gsm_hard", BACKBONE, 0))
        await cell.run(made)
    assert orjson.loads(checked.read_bytes())["backbones"][BACKBONE]["served_by"] is None
    found = read(made.folder)
    assert identity([found])["backbones"] == f"{BACKBONE}={MODEL}"
    assert dict(provenance([found]))["backbones"] == f"{BACKBONE} = {MODEL}"
    assert of_claims([found]) == {f"{BACKBONE}={MODEL}"}
    assert measure([found])
