"""What the README and the page on GMR show works as shown."""

import re

import yaml

from gmr.config import Config
from harness.files import ROOT
from harness.runner.config import methods

README = (ROOT / "README.md").read_text(encoding="utf-8")
GMR = (ROOT / "docs" / "gmr.md").read_text(encoding="utf-8")


def test_every_file_it_names_exists() -> None:
    for path in re.findall(r"`((?:config|harness|docs|workflow|baselines|gmr)/[\w./-]+)`|\]\(([\w./-]+)\)", README):
        if path[0] == "baselines/length_router.py":  # what the reader saves
            continue
        assert (ROOT / (path[0] or path[1])).exists(), path


def column(heading: str, number: int) -> set[str]:
    """The code words in one column of the tables below a heading of the page on GMR."""
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


def test_every_file_the_page_on_gmr_names_exists() -> None:
    modules = re.findall(r"`(\w+\.py)`", GMR)
    places = re.findall(r"`((?:harness|gmr|config)/[\w/]+\.\w+)`", GMR)
    assert len(modules) > 5
    assert [path for path in (*(f"gmr/{name}" for name in modules), *places) if not (ROOT / path).exists()] == []
