"""Landlock: the files a process may open, whatever their permissions say."""

from __future__ import annotations

import ctypes
import os

from .linux import call, libc, number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_SOCK, _MAKE_BLOCK, _TRUNCATE, _IOCTL_DEV = 1 << 6, 1 << 9, 1 << 11, 1 << 14, 1 << 15
_CREATE_VERSION = 1
_PATH_BENEATH = 1
# How many file system rights each version of the interface knows; from the last on the number stays.
_RIGHTS_OF_VERSION = (0, 13, 14, 15, 15, 16)
TRUNCATION_SINCE = 3
_NETWORK_SINCE, _BIND_AND_CONNECT_TCP = 4, 3
_SCOPES_SINCE, _SIGNALS_AND_ABSTRACT_SOCKETS = 6, 3


def version() -> int:
    """Version of the interface the kernel offers.

    Raises:
        OSError: The kernel has no Landlock, or it is switched off.
    """
    return call("landlock_create_ruleset", None, 0, _CREATE_VERSION)


def ruleset(readable: list[tuple[str, str]], box: str | None) -> int:
    """Creates the rules: read ``readable``, do anything but execute in ``box``, open nothing else.

    Args:
        readable: Paths with their kind: ``"tree"`` (the directory and all below), ``"list"`` (only the names in it
            and in the directories below), ``"file"``, ``"device"`` (may be written, too).
        box: The directory in which everything but execution and special files is allowed, if any.

    Returns:
        A descriptor for :func:`restrict`.
    """
    available = version()
    handled = (1 << _RIGHTS_OF_VERSION[min(available, len(_RIGHTS_OF_VERSION) - 1)]) - 1
    rights = {
        "tree": _READ_FILE | _READ_DIR,
        "list": _READ_DIR,
        "file": _READ_FILE,
        "device": (_READ_FILE | _WRITE_FILE | _TRUNCATE) & handled,
    }
    rules = call("landlock_create_ruleset", _attributes(handled, available), 24, 0)
    for path, kind in readable:
        _allow(rules, path, rights[kind])
    if box is not None:
        _allow(rules, box, handled & ~(_EXECUTE | _MAKE_CHAR | _MAKE_SOCK | _MAKE_BLOCK | _IOCTL_DEV))
    return rules


def restrict(rules: int) -> None:
    """Applies the rules to the calling process for good."""
    restricting(rules)()


def restricting(rules: int) -> Callable[[], None]:
    """Prepares :func:`restrict` for a process that is still to be forked."""
    arguments = [ctypes.c_long(number("landlock_restrict_self") or 0), ctypes.c_ulong(rules), ctypes.c_ulong(0)]

    def apply() -> None:
        if libc.syscall(*arguments) != 0:
            raise OSError(ctypes.get_errno(), "landlock_restrict_self")
        os.close(rules)

    return apply


def _attributes(handled: int, available: int) -> bytes:
    """The kernel accepts fields it does not know as long as they are zero."""
    network = _BIND_AND_CONNECT_TCP if available >= _NETWORK_SINCE else 0
    scopes = _SIGNALS_AND_ABSTRACT_SOCKETS if available >= _SCOPES_SINCE else 0
    return b"".join(field.to_bytes(8, "little") for field in (handled, network, scopes))


def _allow(rules: int, path: str, rights: int) -> None:
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    call("landlock_add_rule", rules, _PATH_BENEATH, rights.to_bytes(8, "little") + place.to_bytes(4, "little"), 0)
    os.close(place)
