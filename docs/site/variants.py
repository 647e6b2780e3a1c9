"""The table of variants in docs/gmr.md, from config/methods.yaml: ``python docs/site/variants.py`` rewrites it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from harness.runner.config import MethodEntry, methods

PAGE = Path(__file__).resolve().parents[1] / "gmr.md"
_BLOCK = re.compile(r"(?<=<!-- variants -->\n).*?(?=<!-- end of variants -->)", re.DOTALL)


def with_table(page: str) -> str:
    """The page with the table as the configuration has it now."""
    return _BLOCK.sub(lambda _: f"\n{_table()}\n\n", page)


def _table() -> str:
    known = methods()
    gmr = known["gmr"]
    rows = [
        f"| `{key}` | {entry.title} | {_differences(entry, gmr)} |"
        for key, entry in known.items()
        if entry.module == gmr.module and key != gmr.key
    ]
    return "\n".join(["| entry | in tables | differs from `gmr` by |", "|---|---|---|", *rows])


def _differences(entry: MethodEntry, gmr: MethodEntry) -> str:
    changed = {key: value for key, value in entry.config.items() if gmr.config.get(key) != value}
    if entry.seed_offset:
        changed["seed_offset"] = entry.seed_offset
    return ", ".join(f"`{key}: {_yaml(value)}`" for key, value in changed.items())


def _yaml(value: Any) -> str:
    text: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False)
    return text.removesuffix("...\n").strip()


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text("utf-8")), "utf-8")
