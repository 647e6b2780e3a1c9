"""A copy of the suite with all additions of docs/adding.md."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from harness.files import ROOT
from tests.planning import copied_suite

_FRAGMENT = re.compile(r"```yaml\n# (\S+/\S+)\n(.*?)```", re.DOTALL)


def section(name: str) -> str:
    text = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")
    return text.split(f"\n## {name}\n")[1].split("\n## ")[0]


def programs(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", section(name), re.DOTALL)


def fragments(name: str) -> list[tuple[str, dict[str, Any]]]:
    return [(path, yaml.safe_load(text)) for path, text in _FRAGMENT.findall(section(name))]


def add(folder: Path, path: str, new: Mapping[str, Any]) -> None:
    """Merge a YAML fragment into a file of entries, which is created if missing."""
    file = folder / path
    old = yaml.safe_load(file.read_text()) if file.exists() else {}
    extended = {key: {**old.get(key, {}), **value} for key, value in new.items()}
    file.write_text(yaml.safe_dump({**old, **extended}, sort_keys=False))


def suite(folder: Path, *sections: str) -> Path:
    """Copy the suite, and add two methods and the additions of the page's sections."""
    copied_suite(folder)
    (folder / "my").mkdir()
    # What `gmr new method` makes, and the preset that the page on models of one's own shows.
    for name, template in (("my_router", "logistic_router.py"), ("drawn", "random_router.py")):
        shutil.copy(ROOT / "baselines" / "cheap" / template, folder / "my" / f"{name}.py")
        entry = {"module": name, "title": name, "rows": "pool", "trained": name == "my_router"}
        add(folder, "my/methods.yaml", {name: entry})
    page = (ROOT / "docs" / "own-models.md").read_text(encoding="utf-8")
    (folder / "config" / "presets" / "mine.yaml").write_text(page.split("```yaml\n")[1].split("```")[0])
    for path, new in (one for name in sections for one in fragments(name)):
        add(folder, path, new)
    (folder / "my" / "weekdays.py").write_text(programs("A benchmark")[1])
    return folder
