"""A preset's own pool of backbones: its entries, its servers, and what a backbone says of its calls."""

import re
from typing import Any

import pytest
import yaml

from harness.errors import UserError
from harness.files import ROOT
from harness.llm.backbones import ABOUT
from harness.llm.endpoints import ENDPOINTS
from harness.llm.request import Message, Request
from harness.runner import config, config_hash
from harness.runner.config import POOL, Cell

ENTRY = {"model": "me/mine", "parameters_b": 2, "description": "A model of my own."}
URL = {"url": "http://localhost:9/v1"}


def preset(*names: str, **changes: Any) -> config.Preset:
    """Return a preset with a pool of its own."""
    names = names or ("mine", "other")
    pool = {name: {**ENTRY, "model": f"me/{name}", **changes.pop(name, {})} for name in names}
    servers = {name: {"url": f"http://localhost:{place}/v1"} for place, name in enumerate(names, 1)}
    keys = {"backbones": list(names), "large": None, "pool": pool, "servers": servers, "endpoints": "served"}
    return config.preset("embedded", {**keys, **changes})


def test_methods_take_the_backbones_that_the_preset_has() -> None:
    rows: dict[str, list[str]] = {}
    for cell in config.cells(preset(large=["other"], benchmarks=["math"], methods=["single", "cot", "gmr"])):
        rows.setdefault(cell.method, []).append(cell.backbone)
    assert rows == {"single": ["mine", "other"], "cot": ["other"], "gmr": [POOL]}
    everyone = config.cells(preset(benchmarks=["math"], methods=["cot"]))
    assert [cell.backbone for cell in everyone] == ["mine", "other"], "without large ones all are"
    mixed = preset("mine", backbones=["qwen-2.5-32B", "mine"])
    assert list(config.backbones_of(mixed, Cell("gmr", "math", POOL, 0))) == ["qwen-2.5-32B", "mine"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"endpoints": "simulated"}, "only backbones of config/backbones.yaml can be simulated"),
        ({"pool": {"qwen-2.5-14B": ENTRY}}, "qwen-2.5-14B is in config/backbones.yaml already"),
        ({"pool": {"mine": {"model": "me/mine"}, "other": ENTRY}}, "mine.parameters_b: missing; add it"),
        ({"pool": {"mine": {**ENTRY, "prise": 1}}}, "unknown key 'prise'; did you mean 'price'?"),
        ({"large": ["othr"]}, "unknown large backbone 'othr'; did you mean 'other'?"),
        ({"mine": {"price": {"input": 1, "output": 2}}}, "mine has a price and other has none"),
        ({"other": {"model": "me/mine"}}, "two backbones are 'me/mine'"),
    ],
)
def test_a_slip_in_a_pool_is_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        preset(**changes)
    assert "\n" not in str(caught.value)


def test_servers_are_those_of_the_environment_then_of_the_preset(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(ENDPOINTS, raising=False)
    assert config.servers(preset(), ["other"])["other"].url == "http://localhost:2/v1"
    with pytest.raises(UserError, match=r"unknown endpoint for backbone 'third'.* servers of preset embedded"):
        config.servers(preset(), ["third"])
    (tmp_path / "served.yaml").write_text('other: {url: "http://elsewhere:7/v1"}')
    monkeypatch.setenv(ENDPOINTS, str(tmp_path / "served.yaml"))
    assert config.servers(preset(), ["other"])["other"].url == "http://elsewhere:7/v1"


def test_only_what_changes_replies_or_costs_is_of_a_cells_identity() -> None:
    cell = Cell("cot", "math", "other", 0)
    base = config_hash.of_cell(preset(), cell)
    for change in ({"max_tokens": 64}, {"stop": ["Question:"]}, {"system": "merge"}, {"parameters_b": 3}):
        assert config_hash.of_cell(preset(other=change), cell) != base
        assert config_hash.of_cell(preset(mine=change), cell) == base
    for name in ABOUT:
        assert config_hash.of_cell(preset(other={name: "Somebody"}), cell) == base
    assert config_hash.of_cell(preset(servers={}), cell) == base


def test_a_price_is_what_calls_cost_and_a_router_is_told() -> None:
    chosen = preset("mine", mine={"price": {"input": 0.5, "output": 1.5}})
    backbone = config.backbones(chosen)["mine"]
    assert backbone.cost(2_000_000, 1_000_000) == 2.5
    assert backbone.profile.endswith("Price per million tokens: 0.5 input, 1.5 output.")


def test_a_template_without_a_system_role_gets_one_message() -> None:
    system, user, reply = Message("system", "Be brief."), Message("user", "2 + 2?"), Message("assistant", "4")
    mine, other = (config.backbones(preset(mine={"system": "merge"}))[key] for key in ("mine", "other"))
    assert mine.prompt((system, user, reply)) == (Message("user", "Be brief.\n\n2 + 2?"), reply)
    assert mine.prompt((user,)) == (user,)
    assert other.prompt((system, user)) == (system, user)


def test_a_stop_is_sent_and_part_of_the_call_only_where_it_is_stated() -> None:
    plain, stopped = (Request("m", None, (Message("user", "hi"),), stop=stop) for stop in (None, ("Question:",)))
    assert "stop" not in plain.body()
    assert b"stop" not in plain.record
    assert stopped.body()["stop"] == ("Question:",)
    assert stopped.key != plain.key


def test_the_page_on_models_of_ones_own_has_a_preset_that_runs() -> None:
    page = (ROOT / "docs" / "own-models.md").read_text(encoding="utf-8")
    chosen = config.preset("embedded", {"large": None, **yaml.safe_load(page.split("```yaml\n")[1].split("```")[0])})
    assert {cell.backbone for cell in config.cells(chosen)} == {"my-model"}
    assert config.servers(chosen, ["my-model"])["my-model"].served_name == "my-model"
