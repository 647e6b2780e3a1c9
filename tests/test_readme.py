"""The README and docs/gmr.md agree with the templates and the configuration."""

import re
from pathlib import Path

import pytest
import yaml

from gmr.config import Config
from harness.files import ROOT
from harness.runner.config import methods
from harness.runner.layout import POOL, Cell
from harness.runner.preset import resolve

GMR = (ROOT / "docs" / "gmr.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["README.md", "docs/adding.md"])
def test_the_router_it_shows_is_the_one_that_a_command_writes(page: str) -> None:
    program = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)[0]
    assert program in (ROOT / "baselines/cheap/logistic_router.py").read_text(encoding="utf-8")


def test_self_consistency_at_the_cost_of_another_method_is_an_entry(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "baselines.md").read_text(encoding="utf-8")
    (tmp_path / "methods.yaml").write_text(re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)[0])
    run = resolve("smoke", {"extra": str(tmp_path / "methods.yaml")})
    matched = run.cell(Cell(run.methods[-1], "gsm_hard", POOL, 0)).matched
    assert matched is not None
    assert (run.methods[-1], matched.method, matched.backbone) == ("consistency_masrouter", "masrouter", POOL)


def test_the_page_on_gmr_lists_every_setting_and_no_other() -> None:
    section = GMR.split("\n## Settings\n")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("|")]
    assert {word for cell in cells for word in re.findall(r"`([\w.]+)`", cell)} == set(Config.model_fields)


def test_the_entries_it_suggests_are_valid_and_new() -> None:
    base = methods()["gmr"]
    for key, entry in yaml.safe_load(re.findall(r"```yaml\n(.*?)```", GMR, re.DOTALL)[0]).items():
        assert key not in methods()
        assert entry["extends"] == base.key
        assert Config(**{**base.config, **entry["config"]}) != Config(**base.config)
