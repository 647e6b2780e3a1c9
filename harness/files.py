"""Files that are either whole or absent."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from harness.errors import UserError

ROOT = Path(__file__).resolve().parent.parent
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn a failed write inside the block into one line for the user.

    Raises:
        UserError: The disk is full, or the place cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {error.strerror}; free space or mend the folder, then give the same command again "
            "(finished calls are kept)"
        ) from error


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Write a file so that a reader, or a crash, sees the old content or the new, never a part.

    The file appears when the block ends; nothing is left behind where it fails.

    Raises:
        UserError: The disk is full, or the folder cannot be written.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            Path(name).chmod(0o644)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write a file whole or not at all.

    Raises:
        UserError: The disk is full, or the folder cannot be written.
    """
    with whole_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def remove_leftovers(path: Path) -> None:
    """Remove what killed processes left of a file that they were writing whole; nobody may be writing it.

    Raises:
        UserError: The folder cannot be written.
    """
    unfinished = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}")
    with writing(path):
        for file in path.parent.iterdir():
            if unfinished.fullmatch(file.name):
                file.unlink(missing_ok=True)


def fingerprint(paths: Iterable[Path]) -> str:
    """SHA-256 over source files and every ``.py``, ``.yaml``, ``.j2`` and ``.jsonl`` file below folders.

    Of Python the syntax tree without docstrings counts, so that comments and formatting do not; else every byte does.

    Args:
        paths: Files or folders; their order does not matter.
    """
    files = {file for path in paths for file in (_sources(path) if path.is_dir() else [path])}
    digest = hashlib.sha256()
    for file in sorted(files):
        name = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file.name
        content = _syntax(file.read_bytes()) if file.suffix == ".py" else file.read_bytes()
        digest.update(f"{name}\0".encode() + content + b"\0")
    return digest.hexdigest()


def code_of(module: str) -> str:
    """Fingerprint of the code that can change the results of a method: the ground floor and the method's own module."""
    source = source_of(module)
    return fingerprint([ROOT / "harness", *([source] if source else [])])


def source_of(module: str) -> Path | None:
    """File of a module, or folder of a package; ``None`` if there is none."""
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return None
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)


@cache
def _syntax(source: bytes) -> bytes:
    """The syntax tree of a module, the same in every version of Python; the source itself where it has no tree."""
    try:
        return repr(_plain(ast.parse(source))).encode()
    except SyntaxError:
        return source


def _plain(node: ast.AST) -> tuple[str, list[tuple[str, Any]]]:
    """A tree as tuples without positions, docstrings and empty fields, of which newer versions of Python have more."""
    fields: list[tuple[str, Any]] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            fields.append((name, _plain(value)))
        elif isinstance(value, list):
            if name == "body" and isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
                del value[0]
            if value:
                fields.append((name, [_plain(part) if isinstance(part, ast.AST) else part for part in value]))
        elif value is not None:
            fields.append((name, value))
    return type(node).__name__, fields


def _sources(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.suffix in {".py", ".yaml", ".j2", ".jsonl"}]
