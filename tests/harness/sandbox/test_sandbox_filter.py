"""The system call filter, run by an interpreter of its own, against a plain statement of what it should do."""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.sandbox.jail import linux, seccomp

MACHINE = os.uname().machine
pytestmark = pytest.mark.skipif(
    os.uname().sysname != "Linux" or MACHINE not in ("x86_64", "aarch64"),
    reason="the filter exists for Linux on x86_64 and aarch64 only",
)
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
PID = 4242
ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}.get(MACHINE, 0)
NAMES = {linux.number(name): name for name in linux.NUMBERS} if MACHINE in ("x86_64", "aarch64") else {}
CLONE_THREAD = 0x10000
# Of fcntl, and of ioctl; neither knows those of the other.
SIGNAL_REQUESTS = (8, 10, 15, 0x8901, 0x8902, 0x5412)


def evaluate(code: bytes, data: bytes) -> int:
    """Runs a classic packet filter; a jump out of the program is an IndexError."""
    steps = list(struct.iter_unpack("<HBBI", code))
    place, accumulator = 0, 0
    while True:
        operation, if_true, if_false, value = steps[place]
        place += 1
        if operation == 0x06:
            return value
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, value)
            continue
        holds = {
            0x15: accumulator == value,
            0x35: accumulator >= value,
            0x45: bool(accumulator & value),
        }[operation]
        place += if_true if holds else if_false


def expected(number: int, arguments: list[int]) -> int:
    name = NAMES.get(number, "")
    low = [argument & 0xFFFFFFFF for argument in arguments]
    if MACHINE == "x86_64" and number >= 0x40000000:
        return KILL
    if name == "clone3":
        return ENOSYS
    allowed = {
        "clone": bool(low[0] & CLONE_THREAD),
        "kill": low[0] == PID,
        "tgkill": low[0] == PID,
        "prlimit64": low[0] in (0, PID),
        "sendto": arguments[4] == 0,
        "fallocate": low[1] == 0,
        "fcntl": low[1] not in SIGNAL_REQUESTS[:3],
        "ioctl": low[1] not in SIGNAL_REQUESTS[3:],
    }.get(name, name not in linux.FORBIDDEN)
    return ALLOW if allowed else EPERM


numbers = st.sampled_from(sorted(number for number in NAMES if number is not None)) | st.integers(0, 600)
WORDS = [0, 1, PID, CLONE_THREAD, 1 << 32, (1 << 64) - 1, *SIGNAL_REQUESTS]
words = st.sampled_from(WORDS) | st.integers(0, (1 << 64) - 1)


@given(numbers, st.lists(words, min_size=6, max_size=6))
def test_decisions(number: int, arguments: list[int]) -> None:
    data = struct.pack("<IIQ6Q", number, ARCHITECTURE, 0, *arguments)
    assert evaluate(seccomp.program(PID), data) == expected(number, arguments)


LOOKED_INTO = ("clone", "kill", "tgkill", "prlimit64", "sendto", "fcntl", "ioctl", "clone3")


@pytest.mark.parametrize("name", LOOKED_INTO)
@given(st.lists(words, min_size=6, max_size=6))
def test_decisions_by_argument(name: str, arguments: list[int]) -> None:
    number = linux.number(name)
    assert number is not None
    data = struct.pack("<IIQ6Q", number, ARCHITECTURE, 0, *arguments)
    assert evaluate(seccomp.program(PID), data) == expected(number, arguments)


def test_other_architectures_are_ended() -> None:
    data = struct.pack("<IIQ6Q", 1, 0x40000003, 0, *[0] * 6)
    assert evaluate(seccomp.program(PID), data) == KILL
    if MACHINE == "x86_64":
        assert evaluate(seccomp.program(PID), struct.pack("<IIQ6Q", 0x40000001, ARCHITECTURE, 0, *[0] * 6)) == KILL


def test_what_must_be_closed_is_closed() -> None:
    for name in ("socket", "ptrace", "process_vm_writev", "mount", "unshare", "setns", "keyctl", "bpf", "execve"):
        assert name in linux.FORBIDDEN
    assert len(set(linux.FORBIDDEN)) == len(linux.FORBIDDEN)


def test_numbers_are_those_of_the_system_headers() -> None:
    header = HEADERS[MACHINE]
    if not header.exists():
        pytest.skip(f"no kernel headers at {header}")
    defined = {name: int(number) for name, number in re.findall(r"#define __NR_(\w+)\s+(\d+)", header.read_text())}
    known = {name: linux.number(name) for name in linux.NUMBERS if name in defined}
    assert len(known) > 80
    assert known == {name: defined[name] for name in known}


def test_an_unknown_architecture_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linux, "_COLUMN", None)
    with pytest.raises(OSError, match="no system call numbers known"):
        linux.number("socket")
