import math
import re
import shutil
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from analysis.published import load
from harness.benchmarks import catalogue
from harness.errors import UserError
from harness.files import ROOT, digest
from harness.llm import backbones
from harness.llm.backbones import ABOUT, ENDPOINTS
from harness.runner import config, run
from harness.runner.config import Limit, methods
from harness.runner.layout import POOL, Cell
from harness.runner.preset import departures, making_with, options, resolve
from harness.runner.run import Run
from harness.runner.setting import build
from harness.scripted import setting

ENTRY = {"model": "me/mine", "parameters_b": 2, "description": "A model of my own."}
COT, GMR = Cell("cot", "math", "qwen-2.5-14B", 0), Cell("gmr", "math", "pool", 0)


def forget() -> None:
    for read in (config.methods, backbones.load, run._content):
        read.cache_clear()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Replace the configuration by a copy that tests may damage."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    monkeypatch.setattr(config, "FOLDER", tmp_path / "config")
    monkeypatch.setattr(catalogue, "_further", {})
    monkeypatch.setattr(sys, "path", [*sys.path])
    forget()
    yield tmp_path / "config"
    forget()


def one_line(message: str) -> str:
    return rf"\A.*{re.escape(message)}.*\Z"


def edit(folder: Path, file: str, **changes: Any) -> None:
    path = folder / file
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **changes}, sort_keys=False))
    forget()


def change(folder: Path, method: str, file: str = "methods.yaml", **fields: Any) -> None:
    edit(folder, file, **{method: {**yaml.safe_load((folder / file).read_text())[method], **fields}})


@pytest.mark.parametrize("name", ["embedded", "smoke", "rehearsal", "paper"])
def test_a_shipped_preset_has_every_row_of_the_main_table_in_its_order(name: str) -> None:
    rows = dict.fromkeys((cell.method, cell.backbone) for cell in resolve(name).cells())
    assert [*rows] == [(row.method, row.backbone) for row in load().rows]
    flags = {key: (entry.multi_agent, entry.routing) for key, entry in methods().items() if key in load().methods}
    assert flags == {key: (method.multi_agent, method.routing) for key, method in load().methods.items()}


def with_pool(*names: str, **changes: Any) -> Run:
    names = names or ("mine", "other")
    pool = {name: {**ENTRY, "model": f"me/{name}", **changes.pop(name, {})} for name in names}
    servers = {name: {"url": f"http://localhost:{port}/v1"} for port, name in enumerate(names, 1)}
    keys = {"backbones": list(names), "large": None, "pool": pool, "servers": servers, "endpoints": "served"}
    return resolve("embedded", {**keys, **changes})


def embedded(**changes: Any) -> Run:
    return resolve("embedded", changes)


@pytest.mark.parametrize(
    ("run_of", "changes", "message"),
    [
        (embedded, {"benchmarks": ["math", "gsm-hard"]}, "unknown benchmark 'gsm-hard'; did you mean 'gsm_hard'?"),
        (embedded, {"limit": {"tests": 3}}, "did you mean 'test'?"),
        (embedded, {"limit": {"test": {"mth": 3}}}, "'mth'; did you mean 'math'? (benchmarks: config/"),
        (embedded, {"margin": 0.02}, "margin: Input should be greater than or equal to 0.5"),
        (embedded, {"splits": "all"}, "has splits: all, which leaves no training questions for aflow; use official"),
        (embedded, {"noise_floor": ["humaneval"]}, "simulated replies do not vary"),
        (with_pool, {"noise_floor": ["math"], "methods": ["cot"]}, "add single to its methods"),
        (with_pool, {"endpoints": "simulated"}, "but simulated backbones have none; remove the key"),
        (with_pool, {"pool": {"qwen-2.5-14B": ENTRY}}, "qwen-2.5-14B is in config/backbones.yaml already"),
        (with_pool, {"mine": {"price": {"input": 1, "output": 2}}}, "mine has a price and other has none"),
        (with_pool, {"other": {"model": "me/mine"}}, "two backbones are 'me/mine'"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_to_do(run_of: Any, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=one_line(message)):
        run_of(**changes)


def test_a_run_of_less_than_its_preset_says_what_tables_leave_out_and_hints_keep_its_keys() -> None:
    assert (departures(resolve("smoke")), options(resolve("smoke"))) == ("", [])
    fewer = resolve("smoke", {"benchmarks": ["math"], "seeds": [7]})
    assert options(fewer) == ["--config", "preset=smoke", 'benchmarks=["math"]', "seeds=[7]"]
    assert re.fullmatch("tables of preset smoke do not show its benchmarks .*gsm_hard.*, but math", departures(fewer))
    keys = "--config preset=smoke 'benchmarks=[\"math\"]' 'seeds=[7]'"
    assert making_with(fewer, "reports/smoke/costs.md").endswith(f" reports/smoke/costs.md {keys}`")


def test_a_slip_in_a_method_is_one_line(folder: Path) -> None:
    entry = {"module": "baselines.single", "title": "x", "rows": "pool"}
    for changes, message in (
        ({"matches": "gmmr"}, "unknown method 'gmmr'; did you mean 'gmr'?"),
        ({"matches": "random_matched"}, "cascade matches random_matched, which matches another method; name that"),
        ({"module": "baselines.singel"}, "methods_beyond.yaml: module 'baselines.singel' of cascade was not found"),
        ({"extends": "cascade"}, "unknown base method 'cascade'; known: "),
    ):
        edit(folder, "methods_beyond.yaml", cascade={**entry, **changes})
        with pytest.raises(UserError, match=one_line(message)):
            config.methods()


def test_a_sweep_makes_variants_and_a_method_may_have_benchmarks_of_its_own(folder: Path) -> None:
    change(folder, "cot", sweep={"style": ["complex", "step_by_step"]}, benchmarks=["mbpp"])
    edit(folder, "methods_beyond.yaml", child={"extends": "cot", "title": "Child"})
    assert [key for key in methods() if "cot_" in key] == ["cot_style_complex", "cot_style_step_by_step"]
    cells = (chosen := resolve("rehearsal", {"methods": ["cot_style_complex", "child"]})).cells()
    assert {(one.method, one.benchmark) for one in cells} == {("cot_style_complex", "mbpp"), ("child", "mbpp")}
    cell = chosen.cell(cells[0])
    assert (cell.entry.title, cell.entry.config) == ("CoT, style = complex", {"style": "complex"})
    assert (cell.record["swept"], chosen.entries["child"].variants) == (["cot", "complex"], [])


def test_an_entry_takes_over_what_it_does_not_say_itself(folder: Path) -> None:
    base = {"module": "gmr", "title": "Base", "rows": "pool", "trained": True, "config": {"epochs": {"default": 3}}}
    child = {"extends": "base", "title": "Child", "config": {"halting": False}}
    last = {"extends": "child", "title": "Last", "rows": "large", "config": {"epochs": {"math": 1}}}
    # An entry may stand above its base.
    edit(folder, "methods.yaml", early={"extends": "base", "title": "Early"}, base=base, child=child, last=last)
    known = config.methods()
    assert known["early"] == known["base"].model_copy(update={"key": "early", "title": "Early"})
    both = {"epochs": {"default": 3}, "halting": False}
    assert known["child"] == known["base"].model_copy(update={"key": "child", "title": "Child", "config": both})
    assert known["last"].config == {"epochs": {"math": 1}, "halting": False}
    assert (known["last"].module, known["last"].rows, known["last"].trained) == ("gmr", "large", True)


def test_a_benchmark_of_a_users_file_is_known_by_entry_module_and_questions(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "colours_of_things.py").touch()
    (tmp_path / "colours.jsonl").write_text("{}")
    extra, entry = tmp_path / "entries.yaml", {"module": "colours_of_things", "title": "Colours"}
    extra.write_text(yaml.safe_dump({"benchmarks": {"colours": {**entry, "questions": "colours.jsonl"}}}))
    preset = resolve("smoke", {"extra": str(extra), "benchmarks": ["colours"]})
    assert preset.methods == resolve("smoke").methods
    cell = Cell("single", "colours", "qwen-2.5-14B", 0)
    before = preset.cell(cell).settings, preset.identity_of_data("colours").content
    (tmp_path / "colours.jsonl").write_text("[]")
    after = preset.cell(cell).settings, preset.identity_of_data("colours").content
    assert all(one != other for one, other in zip(before, after, strict=True)), "its questions count"
    for slip, message in (
        ({"benchmarks": {"math": {**entry, "questions": "colours.jsonl"}}}, "the benchmark math is declared already"),
        ({"benchmarks": {"colour": entry}}, "needs either questions"),
        ({"methods": {"mine": {"extends": "gmr"}}}, "put each method at the top level of the file"),
        ({"gmr": {"extends": "gmr", "title": "Mine"}}, r"gmr is in config/methods\.yaml already; rename it"),
    ):
        extra.write_text(yaml.safe_dump(slip))
        config.methods.cache_clear()
        with pytest.raises(UserError, match=message):
            resolve("smoke", {"extra": str(extra)})


@pytest.mark.parametrize("name", config.preset_names())
def test_the_settings_of_a_preset_make_it_again(name: str) -> None:
    """So does a bundle of it, where there is no such preset."""
    found = resolve(name)
    settings = yaml.safe_load(yaml.safe_dump(found.settings))
    assert resolve("mine", settings) == found.model_copy(update={"name": "mine"})


def test_a_cell_that_the_preset_does_not_have_is_refused() -> None:
    chosen = resolve("smoke", {"backbones": ["qwen-2.5-14B", "llama-3.2-3B"]})
    with pytest.raises(UserError, match=r"no row for llama-3\.2-3B .* for qwen-2\.5-14B; add .* `large`"):
        chosen.cell(Cell("cot", "gsm_hard", "llama-3.2-3B", 0))
    chosen.cell(Cell("gmr_no_write_gate", "gsm_hard", "pool", 7))


def of_cell(cell: Cell, **overrides: Any) -> dict[str, Any]:
    return embedded(**overrides).cell(cell).settings


def test_the_identity_of_a_cell_holds_what_can_change_it_and_nothing_else(folder: Path) -> None:
    limit, both = resolve("embedded").limit.model_dump(), ["qwen-2.5-14B", "qwen-2.5-32B"]
    limits = [{"limit": {"test": 3}}, {"limit": {"share": 0.5}}]
    changing = [{"length_scale": 0.5}, {"data": "real"}, {"splits": "published"}, {"decoding": "greedy"}, *limits]
    passing = [{"benchmarks": ["math"]}, {"in_flight": 3}, {"methods": ["cot"]}, {"max_error_share": 0.5}]
    passing += [{"limit": {**limit, "train": 3}}, {"budget": {"calls": 3, "cost": 0.5}}]
    of_training = [{"limit": {"train": 3}}, {"limit": {"epochs": 0}}, {"limit": {"epochs": 1}}]
    assert all(of_cell(COT, **overrides) != of_cell(COT) for overrides in changing)
    assert all(of_cell(COT, **overrides) == of_cell(COT) for overrides in passing)
    assert all(of_cell(GMR, **overrides) != of_cell(GMR) for overrides in of_training)
    # The order of the pool counts.
    assert len({digest(of_cell(GMR, backbones=pool)) for pool in (both, both[::-1])}) == 2
    learned, answered = of_cell(GMR), of_cell(COT)
    edit(folder, "encoder.yaml", max_tokens=128)
    assert (of_cell(GMR) == learned, of_cell(COT) == answered) == (False, True)


def test_a_cell_that_meets_the_cost_of_another_changes_with_it_and_waits_for_it(folder: Path) -> None:
    chosen = resolve("smoke")
    cells = [Cell(name, "gsm_hard", "pool", 3) for name in ("random_matched", "cascade")]
    before = [chosen.cell(cell).settings for cell in cells]
    waits = [chosen.cell(cell).matched is not None for cell in cells]
    change(folder, "gmr", config={"epochs": {"default": 7}})
    changed = [resolve("smoke").cell(cell).settings != value for cell, value in zip(cells, before, strict=True)]
    assert waits == changed == [True, False]
    change(folder, "random_matched", "methods_beyond.yaml", matches="cascade")
    assert str(resolve("smoke").cell(cells[0]).matched) == "cascade gsm_hard pool seed 0", "it does not learn: one cell"


def test_an_entry_may_have_other_seeds_and_ask_more_backbones_than_that_of_its_row(folder: Path) -> None:
    history = Cell("full_history", "math", "pool", 0)
    before = of_cell(history)
    change(folder, "full_history", seed_offset=7)
    change(folder, "cot", further_backbones=["qwen-2.5-32B"])
    after = of_cell(history)
    assert {name for name in after if after[name] != before[name]} == {"seed_offset"}
    chosen = resolve("embedded")
    asked = [tuple(chosen.cell(Cell("cot", "math", row, 0)).backbones) for row in chosen.backbones[3:]]
    assert asked == [("qwen-2.5-14B", "qwen-2.5-32B"), ("qwen-2.5-32B",)]
    assert list(of_cell(COT)["backbones"]) == ["qwen-2.5-14B", "qwen-2.5-32B"]


@given(st.integers(1, 20_000), st.integers(1, 1000), st.none() | st.integers(1, 50))
def test_a_share_of_a_split_is_exact_rounded_up_and_bounded(questions: int, thousandths: int, most: int | None) -> None:
    share = math.ceil(Fraction(questions * thousandths, 1000))
    assert Limit(share=thousandths / 1000).used_questions(questions, most) == min(share, most or share)


def test_limits_may_differ_by_benchmark_and_only_single_calls_are_asked_again() -> None:
    limit = {"train": 5, "test": {"default": 7, "math": 3}}
    chosen = with_pool(benchmarks=["math", "mbpp"], limit=limit, noise_floor=["mbpp"])
    assert [chosen.limit.of(key) for key in chosen.benchmarks] == [Limit(train=5, test=3), Limit(train=5, test=7)]
    assert Limit(test={"math": 3}).of("mbpp") == Limit(), "without a default, the others have no limit"
    again = [Cell("single", "mbpp", row, 1) for row in ("mine", "other")]
    assert chosen.asked_again() == again
    assert not set(again) & {*chosen.cells()}
    assert with_pool(benchmarks=["math"], limit=limit, noise_floor=["mbpp"]).asked_again() == []


def test_a_method_of_one_backbone_refuses_the_pool_and_one_without_fit_a_training() -> None:
    with pytest.raises(UserError, match=r"\Athis method needs a backbone, not the row 'pool'; set `rows`.*\Z"):
        build("baselines.single", setting("pool"), {})
    with pytest.raises(UserError, match=r"`trained` names baselines\.single, whose method has no fit, utility"):
        build("baselines.single", setting(), {}, trained=True)


def test_methods_take_the_backbones_that_the_preset_has() -> None:
    rows: dict[str, list[str]] = {}
    for cell in with_pool(large=["other"], benchmarks=["math"], methods=["single", "cot", "gmr"]).cells():
        rows.setdefault(cell.method, []).append(cell.backbone)
    assert rows == {"single": ["mine", "other"], "cot": ["other"], "gmr": [POOL]}
    everyone = with_pool(benchmarks=["math"], methods=["cot", "gmr"], seeds=[3, 4]).cells()
    # Without large ones all are. A method that does not learn has one seed.
    assert [(cell.backbone, cell.seed) for cell in everyone] == [("mine", 0), ("other", 0), (POOL, 3), (POOL, 4)]
    mixed = with_pool("mine", backbones=["qwen-2.5-32B", "mine"])
    assert list(mixed.cell(Cell("gmr", "math", POOL, 0)).backbones) == ["qwen-2.5-32B", "mine"]


def test_servers_are_those_of_the_environment_or_the_preset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENDPOINTS, raising=False)
    assert with_pool().servers_of(["other"])["other"].url == "http://localhost:2/v1"
    with pytest.raises(UserError, match=r"unknown endpoint for backbone 'third'.* servers of preset embedded"):
        with_pool().servers_of(["third"])
    (tmp_path / "served.yaml").write_text('other: {url: "http://elsewhere:7/v1"}')
    monkeypatch.setenv(ENDPOINTS, str(tmp_path / "served.yaml"))
    assert with_pool().servers_of(["other"])["other"].url == "http://elsewhere:7/v1"


def test_only_what_changes_replies_or_costs_is_of_a_cells_identity() -> None:
    cell = Cell("cot", "math", "other", 0)
    base = with_pool().cell(cell).settings
    for change in ({"max_tokens": 64}, {"stop": ["Question:"]}, {"system": "merge"}, {"parameters_b": 3}):
        assert with_pool(other=change).cell(cell).settings != base
        assert with_pool(mine=change).cell(cell).settings == base
    for name in ABOUT:
        assert with_pool(other={name: "Somebody"}).cell(cell).settings == base
    assert with_pool(servers={}).cell(cell).settings == base


def test_cost_weighs_the_same_in_every_pool_by_the_price_of_its_dearest_backbone() -> None:
    smaller = resolve("embedded", {"backbones": ["llama-3.2-3B", "llama-3.1-8B"], "large": ["llama-3.1-8B"]})
    assert [chosen.cost_factor for chosen in (resolve("paper"), smaller)] == [1.0, 4.0]
    for output, factor in ((0.016, 20), (0, 1)):
        price = {"price": {"input": 5, "output": output}}
        assert with_pool(mine=price, other=price).cost_factor == pytest.approx(factor)
    # Where a row may weigh cost, it changes with what other backbones of the preset cost.
    cell = Cell("knn_router", "math", POOL, 0)
    assert with_pool().cell(cell).settings["cost_factor"] == with_pool().cost_factor
