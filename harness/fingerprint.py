"""Fingerprints of code: SHA-256 over files, in which comments, docstrings and the layout of Python do not count."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from harness.errors import UserError
from harness.files import ROOT, digest, write_atomically

# Digests of files by path, size and times of change: reading and parsing the whole suite takes a fifth of a short cell,
# and is done once a run and not once a job.
_CACHE = Path("results", "cache", "syntax.json")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
# A text of code with so many spaces may be part of a prompt.
_WORDS = 3
_SUFFIXES = {".py", ".yaml", ".j2", ".jsonl"}


def fingerprint(paths: Iterable[Path]) -> str:
    """Return the SHA-256 of source files and of those in folders; of Python, the syntax tree without docstrings."""
    hasher = hashlib.sha256()
    for path in paths:
        for file in sources(path):
            # Wherever a checkout, or a folder of further methods, is.
            hasher.update(f"{file.relative_to(path.parent)}\0{_digest(file)}\0".encode())
    return hasher.hexdigest()


def keep_digests() -> None:
    """Write the digests of this process, for the jobs of the run that begins; a plan alone writes nothing."""
    with suppress(UserError):  # A folder that cannot be written costs time alone.
        write_atomically(_CACHE, orjson.dumps(_known_digests()))


@functools.cache
def fingerprint_of(*names: str) -> str:
    """Return the :func:`fingerprint` of files and folders of the checkout, computed once a process."""
    return fingerprint(ROOT / name for name in names)


@functools.cache
def code_of(module: str) -> str:
    """Return the fingerprint of the code that can change the results of a method: ``harness`` and its own module.

    Of a user's module it is all that lies beside it, which it may import.
    """
    source = source_of(module)
    if source is not None and source.parent not in (ROOT, ROOT / "baselines"):
        source = source.parent
    return fingerprint([ROOT / "harness", *([source] if source else [])])


@functools.cache
def prompts_of(module: str, rules: str) -> str:
    """Return the digest of the texts that a method's prompts are made of: of agents, its own, and the output rules."""
    texts, own = {rules}, source_of(module)
    for file in [*sources(ROOT / "harness" / "agents"), *(sources(own) if own else ())]:
        if file.suffix != ".py":
            texts.add(_digest(file))
            continue
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.count(" ") >= _WORDS:
                texts.add(node.value)
            if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False):
                node.body = node.body[1:]  # what is in it is walked later
    return digest(sorted(texts))


def source_of(module: str) -> Path | None:
    """Return the file of a module or the folder of a package; None if there is none."""
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return None
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)


def sources(path: Path) -> list[Path]:
    """Return a file, or the source files in a folder, sorted."""
    return sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES) if path.is_dir() else [path]


@functools.cache
def _known_digests() -> dict[str, str]:
    try:
        return dict(orjson.loads(_CACHE.read_bytes()))
    except (OSError, ValueError):
        return {}


def _digest(file: Path) -> str:
    """Return the digest of a file: of Python the syntax tree, the same in every version of it, if it has one."""
    known, state = _known_digests(), file.stat()
    # A change that keeps all of these is none: no program can set the last one.
    key = f"{file}:{state.st_size}:{state.st_mtime_ns}:{state.st_ctime_ns}"
    if key not in known:
        content = file.read_bytes()
        if file.suffix == ".py":
            with suppress(SyntaxError):
                content = repr(_as_tuples(ast.parse(content))).encode()
        known[key] = hashlib.sha256(content).hexdigest()
    return known[key]


def _as_tuples(node: Any) -> Any:
    """Return a tree as tuples without positions, docstrings and empty fields, which differ between Python versions."""
    if not isinstance(node, ast.AST):
        return node
    fields: list[tuple[str, Any]] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            if name == "body" and isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
                value = value[1:]
            value = [_as_tuples(item) for item in value]
        if value is not None and value != []:
            fields.append((name, _as_tuples(value)))
    return type(node).__name__, fields
