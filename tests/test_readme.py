"""The README and docs/gmr.md agree with the files, templates and configuration."""

import re

import pytest
import yaml

from gmr.config import Config
from harness.files import ROOT
from harness.runner.config import methods

GMR = (ROOT / "docs" / "gmr.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["README.md", "docs/adding.md"])
def test_the_router_it_shows_is_the_one_that_a_command_writes(page: str) -> None:
    program = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)[0]
    assert program in (ROOT / "cli" / "trained_method_template.py").read_text(encoding="utf-8")


def column(heading: str, number: int) -> set[str]:
    """Return the code words in one column of the tables below a heading of the page on GMR."""
    section = GMR.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    cells = [line.split("|")[number] for line in section.splitlines() if line.startswith("|")]
    return {word for cell in cells for word in re.findall(r"`([\w.]+)`", cell)}


def test_the_page_on_gmr_lists_every_setting_and_no_other() -> None:
    assert column("Settings", 1) == set(Config.model_fields)


def test_the_entries_it_suggests_are_valid_and_new() -> None:
    base = methods()["gmr"]
    for key, entry in yaml.safe_load(re.findall(r"```yaml\n(.*?)```", GMR, re.DOTALL)[0]).items():
        assert key not in methods()
        assert entry["extends"] == base.key
        assert Config(**{**base.config, **entry["config"]}) != Config(**base.config)
