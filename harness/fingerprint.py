"""Code fingerprints: SHA-256 over source files, ignoring Python comments, docstrings and formatting."""

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

# Digests by path, size and times. Parsing the whole suite takes a fifth of a short cell, so it is done once per run and
# not once per job.
_CACHE = Path("results", "cache", "syntax.json")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
# Minimum number of spaces in a string constant that may be part of a prompt.
_WORDS = 3
_SUFFIXES = {".py", ".yaml", ".j2", ".jsonl"}


def fingerprint(paths: Iterable[Path]) -> str:
    """Hash source files and folders. For Python, only the syntax tree without docstrings counts."""
    hasher = hashlib.sha256()
    for path in paths:
        for file in sources(path):
            # Relative paths, so that the location of the checkout does not count.
            hasher.update(f"{file.relative_to(path.parent)}\0{_digest(file)}\0".encode())
    return hasher.hexdigest()


def keep_digests() -> None:
    """Store the digests for the jobs of a run that is about to start."""
    with suppress(UserError):  # Without the cache, jobs are only slower.
        write_atomically(_CACHE, orjson.dumps(_known_digests()))


@functools.cache
def fingerprint_of(*names: str) -> str:
    """Cached :func:`fingerprint` of files and folders of the checkout."""
    return fingerprint(ROOT / name for name in names)


@functools.cache
def code_of(module: str) -> str:
    """Fingerprint the code that can change a method's results: ``harness`` and the method's module.

    For a user's module, its whole folder counts, since it may import from there.
    """
    source = source_of(module)
    if source is not None and source.parent not in (ROOT, ROOT / "baselines"):
        source = source.parent
    return fingerprint([ROOT / "harness", *([source] if source else [])])


@functools.cache
def prompts_of(module: str, rules: str) -> str:
    """Hash all texts that can occur in a method's prompts: shared texts, its own texts, and the output rules."""
    texts, own = {rules}, source_of(module)
    for file in [*sources(ROOT / "harness" / "agents"), *(sources(own) if own else ())]:
        if file.suffix != ".py":
            texts.add(_digest(file))
            continue
        tree = ast.parse(file.read_bytes())
        for node in ast.walk(tree):
            if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False):
                node.body = node.body[1:]
        strings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        texts |= {text for text in strings if isinstance(text, str) and text.count(" ") >= _WORDS}
    return digest(sorted(texts))


def source_of(module: str) -> Path | None:
    """Find the file of a module or the folder of a package. None if there is none."""
    try:
        spec = importlib.util.find_spec(module)
    except ImportError:  # no such package, or a path in place of a name
        return None
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)


def sources(path: Path) -> list[Path]:
    """List the source files of a folder, sorted. For a file, list only the file."""
    return sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES) if path.is_dir() else [path]


@functools.cache
def _known_digests() -> dict[str, str]:
    try:
        return dict(orjson.loads(_CACHE.read_bytes()))
    except (OSError, ValueError):
        return {}


def _digest(file: Path) -> str:
    """Hash a file. For valid Python, hash the syntax tree in a form that is equal in all Python versions."""
    known, state = _known_digests(), file.stat()
    # Every change of a file changes its key, since programs cannot set ctime.
    key = f"{file}:{state.st_size}:{state.st_mtime_ns}:{state.st_ctime_ns}"
    if key not in known:
        content = file.read_bytes()
        if file.suffix == ".py":
            with suppress(SyntaxError):
                content = repr(_as_tuples(ast.parse(content))).encode()
        known[key] = hashlib.sha256(content).hexdigest()
    return known[key]


def _as_tuples(node: Any) -> Any:
    """Convert a syntax tree to tuples, without positions, docstrings and version-dependent empty fields."""
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
