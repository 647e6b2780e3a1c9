"""The system-call filter: its decisions and call numbers."""

import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.sandbox.jail import linux

PID, ALLOW, KILL, EPERM, ENOSYS = 4242, 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
SIGNAL_REQUESTS = {"fcntl": (8, 10, 15), "ioctl": (0x8901, 0x8902, 0x5412)}
LOOKED_INTO = ("clone", "kill", "tgkill", "prlimit64", "sendto", "fcntl", "ioctl", "clone3", "fallocate")
on_known_machines = pytest.mark.skipif(not linux.KNOWN, reason="the filter is for Linux on x86_64 and aarch64")
words = st.sampled_from([0, 1, PID, 0x10000, 1 << 32, *SIGNAL_REQUESTS["fcntl"], *SIGNAL_REQUESTS["ioctl"]])
words |= st.integers(0, (1 << 64) - 1)


def evaluate(number: int, arguments: list[int], architecture: int) -> int:
    """Run the filter, a classic packet filter; a jump out of it is an IndexError."""
    data = struct.pack("<IIQ6Q", number, architecture, 0, *arguments)
    steps, index, held = list(struct.iter_unpack("<HBBI", linux.call_filter(PID))), 0, 0
    while True:
        operation, if_true, if_false, value = steps[index]
        index += 1
        if operation == 0x06:
            return value
        if operation == 0x20:
            (held,) = struct.unpack_from("<I", data, value)
            continue
        holds = {0x15: held == value, 0x35: held >= value, 0x45: bool(held & value)}[operation]
        index += if_true if holds else if_false


@on_known_machines
@given(st.sampled_from(LOOKED_INTO) | st.sampled_from(sorted(linux.NUMBERS)), st.lists(words, min_size=6, max_size=6))
def test_the_filter_decides_as_stated(name: str, arguments: list[int]) -> None:
    low = [argument & 0xFFFFFFFF for argument in arguments]
    allowed = {
        "clone": bool(low[0] & 0x10000),
        "kill": low[0] == PID,
        "tgkill": low[0] == PID,
        "prlimit64": low[0] in (0, PID),
        "sendto": arguments[4] == 0,
        "fallocate": low[1] == 0,
        **{call: low[1] not in requests for call, requests in SIGNAL_REQUESTS.items()},
    }.get(name, name not in linux.FORBIDDEN)
    number, ours = linux.number(name), linux._ARCHITECTURES[linux.os.uname().machine]
    if number is not None:
        expected = ENOSYS if name == "clone3" else ALLOW if allowed else EPERM
        assert evaluate(number, arguments, ours) == expected
    # An ordinary call, the table for short pointers, another architecture.
    assert [evaluate(1000, arguments, ours), evaluate(1, arguments, 0x40000003)] == [ALLOW, KILL]
    assert evaluate(0x40000001, arguments, ours) == KILL


@on_known_machines
def test_numbers_are_those_of_the_system_headers() -> None:
    headers = ["/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm-generic/unistd.h"]
    header = Path(headers[linux._COLUMN])  # type: ignore[index]
    if not header.exists():
        pytest.skip(f"no kernel headers at {header}")
    defined = {name: int(number) for name, number in re.findall(r"#define __NR_(\w+)\s+(\d+)", header.read_text())}
    known = {name: linux.number(name) for name in linux.NUMBERS if name in defined}
    assert len(known) > 80
    assert known == {name: defined[name] for name in known}
    for name in ("socket", "ptrace", "process_vm_writev", "mount", "unshare", "setns", "keyctl", "bpf", "execve"):
        assert name in linux.FORBIDDEN
