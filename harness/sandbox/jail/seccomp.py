"""The system call filter: no network, no new process, no other process, no kernel machinery."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Callable, Sequence

from .linux import FORBIDDEN, number, prepared

_SET_MODE_FILTER = 1
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_BIT = 0x40000000
# Offsets in the kernel's seccomp_data; both architectures are little-endian.
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_LOAD, _RETURN = 0x20, 0x06
_IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT = 0x15, 0x35, 0x45
_KILL, _ALLOW = 0x80000000, 0x7FFF0000
_REFUSE, _ABSENT = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS

_CLONE_THREAD = 0x00010000
# The kernel would send signals on behalf of whoever asks for them this way: F_SETOWN, F_SETSIG, F_SETOWN_EX;
# FIOSETOWN, SIOCSPGRP, and TIOCSTI, which types into a terminal.
_SIGNAL_REQUESTS = {"fcntl": (8, 10, 15), "ioctl": (0x8901, 0x8902, 0x5412)}
# No process has it; the place where one's own belongs.
_ANY_PID = 0x7FFFFFFE


def filtering() -> Callable[[], None]:
    """Return a function that applies the filter to its process for good, which has to have given up new privileges."""
    instructions = program(_ANY_PID)
    code = ctypes.create_string_buffer(instructions, len(instructions))
    mark = _ANY_PID.to_bytes(4, "little")
    places = [place for place in range(4, len(instructions), 8) if instructions[place : place + 4] == mark]
    head = struct.pack("@HP", len(code) // 8, ctypes.addressof(code))
    install = prepared("seccomp", _SET_MODE_FILTER, 0, head)

    def apply() -> None:
        me = os.getpid().to_bytes(4, "little")
        for place in places:
            ctypes.memmove(ctypes.byref(code, place), me, 4)
        install()

    return apply


def program(pid: int) -> bytes:
    """Return the filter in the kernel's format, for the process that may signal itself and no other."""
    forbidden = [found for found in map(number, FORBIDDEN) if found is not None]
    rules = [_step(_IF_EQUAL, found, 0, 1) + _step(_RETURN, _REFUSE) for found in forbidden]
    # Arguments of clone3 lie in memory a filter cannot read; C libraries fall back to clone.
    rules.append(_for("clone3", [_step(_RETURN, _ABSENT)]))
    rules.append(_rule("clone", 0, _IF_ANY_BIT, [_CLONE_THREAD], _ALLOW, _REFUSE))
    rules += [_rule(name, 0, _IF_EQUAL, [pid], _ALLOW, _REFUSE) for name in ("kill", "tgkill")]
    rules.append(_rule("prlimit64", 0, _IF_EQUAL, [0, pid], _ALLOW, _REFUSE))
    # With any mode it reserves space that no limit on files counts.
    rules.append(_rule("fallocate", 1, _IF_EQUAL, [0], _ALLOW, _REFUSE))
    rules += [_rule(name, 1, _IF_EQUAL, asked, _REFUSE, _ALLOW) for name, asked in _SIGNAL_REQUESTS.items()]
    # socketpair stays, event loops need it; without an address a message can only reach the other end.
    low = _FIRST_ARGUMENT + 8 * 4
    null = [_step(_LOAD, low), _step(_IF_EQUAL, 0, 0, 2), _step(_LOAD, low + 4), _step(_IF_EQUAL, 0, 1, 0)]
    rules.append(_for("sendto", [*null, _step(_RETURN, _REFUSE), _step(_RETURN, _ALLOW)]))
    # Ends processes that switch to another architecture's call table, then loads the call's number.
    ours = [_step(_LOAD, _ARCHITECTURE), _step(_IF_EQUAL, _ARCHITECTURES[os.uname().machine], 1, 0)]
    not_x32 = [_step(_LOAD, _NUMBER), _step(_IF_AT_LEAST, _X32_BIT, 0, 1)]
    guard = [*ours, _step(_RETURN, _KILL), *not_x32, _step(_RETURN, _KILL)]
    return b"".join([*guard, *rules, _step(_RETURN, _ALLOW)])


def _rule(name: str, argument: int, test: int, values: Sequence[int], found: int, otherwise: int) -> bytes:
    """What becomes of a call: ``found`` where a value passes the test against the low half of an argument."""
    load = _step(_LOAD, _FIRST_ARGUMENT + 8 * argument)
    tests = [_step(test, value, len(values) - place, 0) for place, value in enumerate(values)]
    return _for(name, [load, *tests, _step(_RETURN, otherwise), _step(_RETURN, found)])


def _for(name: str, steps: list[bytes]) -> bytes:
    found = number(name)
    if found is None:
        raise OSError(f"this architecture has no {name}")
    return _step(_IF_EQUAL, found, 0, len(steps)) + b"".join(steps)


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)
