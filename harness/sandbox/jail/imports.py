"""The standard library stays importable when the path to it is closed."""

from __future__ import annotations

import os
import sys


def pin(stdlib: list[str]) -> list[int]:
    """Reaches the library through open descriptors instead of through its path.

    An interpreter in the home directory of root cannot be reached by the user the program runs as, although the
    library itself is readable. A descriptor opened before the change of user leads past the closed directory.

    Args:
        stdlib: ``sys.path`` of the bare interpreter.

    Returns:
        The descriptors, which have to stay open.
    """
    opened = {path: os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC) for path in stdlib if os.path.isdir(path)}
    pinned = {path: f"/proc/self/fd/{descriptor}" for path, descriptor in opened.items()}
    sys.path[:] = list(pinned.values())
    # Longest first: the directory of extension modules lies inside that of the others.
    places = sorted(pinned.items(), key=lambda place: -len(place[0]))
    for module in list(sys.modules.values()):
        search = getattr(module, "__path__", None)
        if search:
            module.__path__ = [_moved(path, places) for path in search]
    sys.path_importer_cache.clear()
    return list(opened.values())


def forget_launcher() -> None:
    """Removes the launcher's own modules from what the program can import."""
    package = __name__.partition(".")[0]
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]


def _moved(path: str, places: list[tuple[str, str]]) -> str:
    for old, new in places:
        if path == old or path.startswith(old + "/"):
            return new + path[len(old) :]
    return path
