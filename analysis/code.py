"""Which code can change a report, given its cells: what its modules import, directly or not, from this project."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from harness.files import ROOT, fingerprint

_ROOMS = ("analysis", "harness")
_TEMPLATES = ".j2"


def code_of_report(modules: Iterable[str], *files: str) -> str:
    """Fingerprint of the code and the files that a report is made with.

    Args:
        modules: Where it begins: the modules that build and write it.
        files: What they read besides results, relative to the checkout; folders with all that is in them.
    """
    sources = closure(modules)
    templates = {file for source in sources for file in source.parent.glob(f"*{_TEMPLATES}")}
    read = {file for name in files for file in _all(ROOT / name)}
    return fingerprint([*sources, *templates, *read])


def closure(modules: Iterable[str]) -> list[Path]:
    """The files of modules and of all that they import from this project, imports inside of functions too.

    Args:
        modules: Dotted names.

    Returns:
        The files, sorted.
    """
    found: set[Path] = set()
    waiting = [path for name in modules for path in _files(name)]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += [other for name in _imports(path, path.stat().st_mtime_ns) for other in _files(name)]
    return sorted(found)


@cache
def _imports(path: Path, _changed_at: int) -> tuple[str, ...]:
    folder = path.relative_to(ROOT).parent.parts
    return tuple(_names(ast.parse(path.read_text(encoding="utf-8")), folder))


def _names(tree: ast.AST, folder: Sequence[str]) -> Iterator[str]:
    """What a module in a folder imports; of ``from a import b`` both ``a`` and ``a.b``: ``b`` may be a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = folder[: len(folder) - node.level + 1] if node.level else ()
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (base, *(f"{base}.{alias.name}" for alias in node.names))


def _files(name: str) -> list[Path]:
    """The files that importing a module of this project runs: its own and those of the packages it lies in."""
    parts = name.split(".")
    if parts[0] not in _ROOMS:
        return []
    packages = [ROOT.joinpath(*parts[:depth], "__init__.py") for depth in range(1, len(parts) + 1)]
    return [file for file in (*packages, ROOT.joinpath(*parts).with_suffix(".py")) if file.is_file()]


def _all(path: Path) -> list[Path]:
    return [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
