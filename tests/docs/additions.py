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
    """Return the part of the page on adding things under a heading."""
    text = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")
    return text.split(f"\n## {name}\n")[1].split("\n## ")[0]


def programs(name: str) -> list[str]:
    """Return the programs in a section."""
    return re.findall(r"```python\n(.*?)```", section(name), re.DOTALL)


def fragments(name: str) -> list[tuple[str, dict[str, Any]]]:
    """Return what a section adds to files of entries, by file."""
    return [(path, yaml.safe_load(text)) for path, text in _FRAGMENT.findall(section(name))]


def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return merged mappings; any other value is replaced."""
    both = {
        key: merged(old[key], value) if isinstance(value, Mapping) and isinstance(old.get(key), Mapping) else value
        for key, value in new.items()
    }
    return {**old, **both}


def add(folder: Path, path: str, new: Mapping[str, Any]) -> None:
    """Put a fragment into a file of entries; one that does not exist is made of it."""
    file = folder / path
    old = yaml.safe_load(file.read_text()) if file.exists() else {}
    file.write_text(yaml.safe_dump(merged(old, new), sort_keys=False))


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
    add(
        folder,
        "my/methods.yaml",
        {"length_router": {"module": "length_router", "title": "length_router", "rows": "pool"}},
    )
    page = (ROOT / "docs" / "own-models.md").read_text(encoding="utf-8")
    (folder / "config" / "presets" / "mine.yaml").write_text(page.split("```yaml\n")[1].split("```")[0])
    for path, new in (one for name in sections for one in fragments(name)):
        add(folder, path, new)
    (folder / "my" / "weekdays.py").write_text(programs("A benchmark")[1])
    return folder
