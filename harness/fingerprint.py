"""Code fingerprints: SHA-256 over source files, ignoring Python comments, docstrings and formatting."""

import ast
import functools
import hashlib
import importlib.util
from collections.abc import Iterable
from contextlib import suppress
from modulefinder import ModuleFinder
from pathlib import Path

from harness.files import ROOT

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_SUFFIXES = {".py", ".yaml", ".j2", ".jsonl"}
_HARNESS = ROOT / "harness"
_AGENTS = _HARNESS / "agents"
# Code and texts of roles, which only count for methods that import them.
_ROLES = {_AGENTS / name for name in ("activation.py", "roles.py", "roles.yaml")}


def fingerprint(paths: Iterable[Path]) -> str:
    """Hash source files and folders. For Python, only the syntax tree without docstrings counts."""
    hasher = hashlib.sha256()
    for path in paths:
        for file in sources(path):
            # Relative paths, so that the location of the checkout does not count.
            hasher.update(f"{file.relative_to(path.parent)}\0{_digest(file)}\0".encode())
    return hasher.hexdigest()


@functools.cache
def fingerprint_of(*names: str) -> str:
    return fingerprint(ROOT / name for name in names)


@functools.cache
def code_of(module: str) -> str:
    """Fingerprint the code that can change a method's results: its own files, and ``harness`` without unused roles."""
    shared = (file for file in sources(_HARNESS) if file not in _ROLES)
    return fingerprint([*shared, *files_of(module)])


def files_of(module: str) -> list[Path]:
    """Return the files of a module or package, those that it imports, directly or not, and data that they name beside.

    They are in the module's own folder, in the checkout, or roles. Imports by other means than ``import`` do not count.
    """
    source = source_of(module)
    if source is None:
        return []
    folders = [str(source.parents[module.count(".")]), str(ROOT)]
    finder = ModuleFinder(folders, excludes=[f"harness.{path.stem}" for path in _HARNESS.iterdir() if path != _AGENTS])
    with suppress(ImportError, SyntaxError):
        finder.import_hook(module, fromlist=["*"])
    imported = {Path(file) for each in finder.modules.values() if (file := vars(each)["__file__"])}
    found = {*sources(source), *(path for path in imported if path in _ROLES or _HARNESS not in path.parents)}
    for file in [path for path in found if path.suffix == ".py"]:
        text = file.read_text(encoding="utf-8", errors="replace")
        data = (path for path in file.parent.iterdir() if path.suffix in _SUFFIXES - {".py"})
        found |= {path for path in data if path.name in text}
    return sorted(found)


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


def _digest(file: Path) -> str:
    state = file.stat()
    # Every change of a file changes its state, since programs cannot set ctime.
    return _digest_at(file, state.st_size, state.st_mtime_ns, state.st_ctime_ns)


@functools.cache
def _digest_at(file: Path, *_: int) -> str:
    """Hash a file. For valid Python, hash the code as the standard library prints it from the syntax tree."""
    content = file.read_bytes()
    if file.suffix == ".py":
        with suppress(SyntaxError):
            content = canonical(ast.parse(content)).encode()
    return hashlib.sha256(content).hexdigest()


def canonical(tree: ast.Module) -> str:
    """Format a syntax tree in the standard library's layout, without comments and docstrings. Changes the tree."""
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)
