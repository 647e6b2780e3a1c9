"""A copy of the suite in which everything stands that the page on adding things tells a reader to write."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from harness.files import ROOT
from tests.planning import copied_suite

METHOD = "best_backbone"
_FRAGMENT = re.compile(r"```yaml\n# (\S+/\S+)\n(.*?)```", re.DOTALL)


def section(name: str) -> str:
    text = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")
    return text.split(f"\n## {name}\n")[1].split("\n## ")[0]


def programs(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", section(name), re.DOTALL)


def fragments(name: str) -> list[tuple[str, dict[str, Any]]]:
    return [(path, yaml.safe_load(text)) for path, text in _FRAGMENT.findall(section(name))]


def add(folder: Path, path: str, new: Mapping[str, Any]) -> None:
    """Put a fragment of mappings into a file of entries; one that does not exist is made of it."""
    file = folder / path
    old = yaml.safe_load(file.read_text()) if file.exists() else {}
    extended = {key: {**old.get(key, {}), **value} for key, value in new.items()}
    file.write_text(yaml.safe_dump({**old, **extended}, sort_keys=False))


def suite(folder: Path, *sections: str) -> Path:
    """Copy the suite and add a method and what sections of the page add."""
    copied_suite(folder)
    (folder / "my").mkdir()
    (program,) = programs("A method")
    (folder / "my" / f"{METHOD}.py").write_text(program)
    entry = re.search(rf"^    {METHOD}:\n(?:      .*\n)+", section("A method"), re.MULTILINE)
    assert entry
    add(folder, "my/methods.yaml", yaml.safe_load(entry[0]))
    # What README makes by `gmr new method`, and the preset that the page on models of one's own shows.
    shutil.copy(ROOT / "cli" / "method_template.py", folder / "my" / "length_router.py")
    entry_of_router = {"module": "length_router", "title": "length_router", "rows": "pool"}
    add(folder, "my/methods.yaml", {"length_router": entry_of_router})
    page = (ROOT / "docs" / "own-models.md").read_text(encoding="utf-8")
    (folder / "config" / "presets" / "mine.yaml").write_text(page.split("```yaml\n")[1].split("```")[0])
    for path, new in (one for name in sections for one in fragments(name)):
        add(folder, path, new)
    (folder / "my" / "weekdays.py").write_text(programs("A benchmark")[1])
    return folder
