"""Level ``full``: a world of its own with a tiny read-only root, no network and no other process in sight."""

from __future__ import annotations

import os

from .linux import call

_NEW_MOUNTS, _NEW_HOST_NAME, _NEW_IPC = 0x00020000, 0x04000000, 0x08000000
_NEW_USERS, _NEW_PROCESSES, _NEW_NETWORK = 0x10000000, 0x20000000, 0x40000000
_EVERYTHING = _NEW_USERS | _NEW_MOUNTS | _NEW_PROCESSES | _NEW_NETWORK | _NEW_IPC | _NEW_HOST_NAME

_BIND, _RECURSIVE, _PRIVATE = 1 << 12, 1 << 14, 1 << 18
_NO_SUID, _NO_DEVICES = 1 << 1, 1 << 2
_ATTRIBUTES_READ_ONLY_NO_SUID_NO_DEVICES = 1 | 2 | 4
_CURRENT_DIRECTORY = 2**64 - 100
_AT_RECURSIVE = 0x8000
_DETACH = 2

# The root and the work directory in it live in memory and go with the namespace.
_ROOT_OPTIONS = b"size=16m,nr_inodes=1k,mode=755"
HOST_NAME = "sandbox"
_SITE = "/tmp"  # noqa: S108  hidden under the private root, in this namespace only


def enter(prefix: str, mounts: list[str], box: str) -> None:
    """Moves the calling process into new namespaces and a new root directory.

    The process's next child is the first one in the new process namespace.

    Args:
        prefix: The current directory and the interpreter's home: what lies below is reached relative to it, for the
            path to it may be closed to an unprivileged user.
        mounts: Directories the new root shows, read-only, under the names they have now.
        box: The empty work directory to create in the new root.

    Raises:
        OSError: The machine does not allow it.
    """
    user, group = os.geteuid(), os.getegid()
    call("unshare", _EVERYTHING)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")
    call("sethostname", HOST_NAME.encode(), len(HOST_NAME))
    call("mount", b"none", b"/", None, _RECURSIVE | _PRIVATE, None)
    call("mount", b"tmpfs", _SITE.encode(), b"tmpfs", _NO_SUID | _NO_DEVICES, _ROOT_OPTIONS)
    for path in mounts:
        _show(_from(prefix, path), _SITE + path)
    _show_null_device()
    os.makedirs(_SITE + box)
    _change_root()


def _write(path: str, text: str) -> None:
    # No text file: codecs load from a library this user may not be able to reach yet.
    file = os.open(path, os.O_WRONLY)
    os.write(file, text.encode())
    os.close(file)


def _from(prefix: str, path: str) -> str:
    return "." + path[len(prefix) :] if path.startswith(prefix + "/") else path


def _show(source: str, target: str) -> None:
    os.makedirs(target)
    call("mount", source.encode(), target.encode(), None, _BIND | _RECURSIVE, None)
    attributes = _ATTRIBUTES_READ_ONLY_NO_SUID_NO_DEVICES.to_bytes(8, "little") + bytes(24)
    call("mount_setattr", _CURRENT_DIRECTORY, target.encode(), _AT_RECURSIVE, attributes, len(attributes))


def _show_null_device() -> None:
    os.mkdir(_SITE + os.path.dirname(os.devnull))
    os.close(os.open(_SITE + os.devnull, os.O_CREAT | os.O_WRONLY, 0o600))
    call("mount", os.devnull.encode(), (_SITE + os.devnull).encode(), None, _BIND, None)


def _change_root() -> None:
    os.chdir(_SITE)
    call("pivot_root", b".", b".")
    call("umount2", b".", _DETACH)
    os.chdir("/")
