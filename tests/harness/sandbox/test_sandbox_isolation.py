"""What a program must not see, reach or leave behind."""

from __future__ import annotations

import sysconfig
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from harness.sandbox import Execution, Limits, Outcome, Program, Sandbox
from harness.sandbox.jail.linux import number
from harness.sandbox.policy import policy

Execute = Callable[..., Awaitable[Execution]]

REPOSITORY = Path(__file__).parents[3]
STDLIB = policy("full", Limits(), "/box")["stdlib"]
DENIED = """
def denied(action, *arguments):
    try:
        action(*arguments)
    except OSError:
        return True
    return False
"""


def secret_places() -> list[str]:
    return [
        "/etc/passwd",
        "/etc/hostname",
        "/proc/self/environ",
        "/proc/1/cmdline",
        "/proc/self/root/etc/passwd",
        __file__,
        str(REPOSITORY / "pyproject.toml"),
        str(REPOSITORY / "harness/sandbox/jail/candidate.py"),
        pytest.__file__,
        *(str(path) for path in sorted(Path(STDLIB[0]).glob("site-packages/*.txt"))),
        *(str(path) for path in sorted(Path.home().glob(".*rc"))),
    ]


async def test_files_of_the_machine_cannot_be_read(full: Execute) -> None:
    execution = await full(
        f"paths = {secret_places()!r}\nopened = []\nfor path in paths:\n    try:\n"
        "        open(path).close()\n        opened.append(path)\n    except OSError:\n        pass",
        "assert opened == [], opened",
    )
    assert execution.outcome is Outcome.PASSED, execution.detail


async def test_directories_of_the_machine_cannot_be_listed(full: Execute) -> None:
    places = ["/", "/etc", "/proc", "/home", "/root", str(Path.home()), str(REPOSITORY), ".."]
    execution = await full(f"import os\nassert all(denied(os.listdir, p) for p in {places!r})", setup=DENIED)
    assert execution.outcome is Outcome.PASSED, execution.detail


async def test_full_hides_even_the_existence_of_files(full: Execute) -> None:
    places = ["/etc", "/proc", "/sys", str(REPOSITORY)]
    execution = await full(f"import os\nassert not any(map(os.path.exists, {places!r}))")
    assert execution.outcome is Outcome.PASSED, execution.detail


async def test_nothing_outside_the_work_directory_can_be_written(full: Execute, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    places = [str(tmp_path / "x"), "/dev/x", "/x", "../x", f"{STDLIB[-1]}/x.py", "/etc/x"]
    execution = await full(
        f"import os\nassert all(denied(open, p, 'w') for p in {places!r})\n"
        f"os.symlink({str(tmp_path)!r}, 'way_out')\nassert denied(open, 'way_out/x', 'w')\n"
        f"os.symlink('/etc/passwd', 'way_in')\nassert denied(open, 'way_in')\n"
        f"assert denied(os.link, '/etc/passwd', 'hard')\nassert denied(os.mkdir, {str(tmp_path / 'd')!r})",
        setup=DENIED,
    )
    assert execution.outcome is Outcome.PASSED, execution.detail
    assert list(tmp_path.iterdir()) == []


async def test_installed_packages_cannot_be_imported(execute: Execute) -> None:
    for name in ("pytest", "numpy", "harness", "jail"):
        execution = await execute(f"import {name}")
        assert execution.outcome is Outcome.EXCEPTION
        assert "ModuleNotFoundError" in execution.detail


async def test_installed_packages_cannot_be_reached_by_path(full: Execute) -> None:
    execution = await full(f"import sys\nsys.path.append({sysconfig.get_path('purelib')!r})\nimport pytest")
    assert execution.outcome is Outcome.EXCEPTION
    assert "ModuleNotFoundError" in execution.detail


async def test_environment_is_fixed(execute: Execute, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "a secret")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    execution = await execute(
        "import os, sys, time\n"
        "assert dict(os.environ) == {'LC_ALL': 'C.UTF-8', 'PYTHONHASHSEED': '0', 'TZ': 'UTC'}, os.environ\n"
        "assert sys.argv == [''] and sys.orig_argv == [] and time.tzname[0] == 'UTC'\n"
        "assert sys.flags.hash_randomization == 0 and sys.stdout.encoding == 'utf-8'",
    )
    assert execution.outcome is Outcome.PASSED, execution.detail


async def test_root_is_never_the_user(execute: Execute) -> None:
    execution = await execute(
        DENIED + "import os\n"
        "assert 0 not in (os.getuid(), os.geteuid())\nassert denied(os.setuid, 0) and denied(os.setgid, 0)",
    )
    assert execution.outcome is Outcome.PASSED, execution.detail


async def test_the_network_is_closed(full: Execute) -> None:
    execution = await full(
        "import socket, urllib.request\n"
        "for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK):\n"
        "    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):\n"
        "        assert denied(socket.socket, family, kind)\n"
        "assert denied(urllib.request.urlopen, 'http://127.0.0.1:8000')\n"
        "a, b = socket.socketpair(type=socket.SOCK_DGRAM)\na.send(b'x')\nassert b.recv(1) == b'x'\n"
        "assert denied(a.sendto, b'x', '\\0anybody') and denied(a.connect, '\\0anybody') and denied(a.bind, 'here')",
        setup=DENIED,
    )
    assert execution.outcome is Outcome.PASSED, execution.detail


async def test_no_process_can_be_started_or_touched(full: Execute) -> None:
    execution = await full(
        "import os, resource, subprocess, sys\nassert denied(os.fork)\n"
        "assert denied(subprocess.run, [sys.executable, '-c', 'pass']) and denied(os.execv, sys.executable, ['x'])\n"
        "assert denied(os.kill, os.getppid(), 9) and denied(os.kill, -1, 9) and denied(os.kill, 0, 9)\n"
        "assert denied(os.killpg, 0, 9) and denied(os.setsid)\n"
        "assert denied(resource.prlimit, os.getppid(), resource.RLIMIT_CPU, (0, 0))",
        setup=DENIED,
    )
    assert execution.outcome is Outcome.PASSED, execution.detail


async def test_the_kernel_sends_no_signal_on_behalf_of_a_program(full: Execute) -> None:
    execution = await full(
        "import fcntl, os, socket, struct\na, b = socket.socketpair()\n"
        "for command in (8, 10, 15):\n    assert denied(fcntl.fcntl, a, command, 1), command\n"
        "for request in (0x8901, 0x8902, 0x5412):\n"
        "    assert denied(fcntl.ioctl, a, request, struct.pack('i', os.getppid())), request\n"
        "assert fcntl.fcntl(a, fcntl.F_GETFL) >= 0\n",
        setup=DENIED,
    )
    assert execution.outcome is Outcome.PASSED, execution.detail


async def test_kernel_machinery_is_closed(full: Execute) -> None:
    calls = {
        "ptrace": (0, 0, 0, 0),
        "unshare": (0x10000000,),
        "mount": (0, 0, 0, 0, 0),
        "keyctl": (0, 0),
        "bpf": (0, 0),
    }
    numbers = {name: number(name) for name in calls}
    execution = await full(
        f"import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\ncalls, numbers = {calls!r}, {numbers!r}\n"
        "for name, arguments in calls.items():\n    ctypes.set_errno(0)\n"
        "    assert libc.syscall(numbers[name], *arguments) == -1 and ctypes.get_errno() == 1, name",
    )
    assert execution.outcome is Outcome.PASSED, execution.detail


async def test_files_are_small_and_few(execute: Execute) -> None:
    execution = await execute(
        "from pathlib import Path\nPath('small').write_bytes(bytes(1 << 20))\n"
        "assert denied(Path('large').write_bytes, bytes((1 << 20) + 1))\n"
        "def open_many():\n    files.extend(open('small') for _ in range(100))\n"
        "files = []\nassert denied(open_many) and len(files) < 64",
        setup=DENIED,
    )
    assert execution.outcome is Outcome.PASSED, execution.detail


async def test_full_bounds_the_disk_as_a_whole(full: Execute) -> None:
    fill = "for number in range(5000):\n    with open(f'{number}', 'wb') as f:\n        f.write(bytes(100_000))"
    execution = await full(fill)
    assert execution.outcome is Outcome.EXCEPTION
    assert "No space left" in execution.detail


async def test_threads_work_and_are_bounded(full: Execute) -> None:
    few = "import threading\nt = threading.Thread(target=print, args=('hello',))\nt.start()\nt.join()"
    assert (await full(few)).stdout == "hello\n"
    bomb = "import threading, time\nwhile True:\n    threading.Thread(target=time.sleep, args=(60,)).start()"
    execution = await full(bomb)
    assert execution.outcome in (Outcome.EXCEPTION, Outcome.MEMORY_LIMIT), execution


FORK_BOMB = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        failed = True\n"
DAEMON = """
import os, time
def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(60)
        os._exit(0)
try:
    daemon()
except OSError:
    pass
"""


SHORT, LONG = Limits(cpu_s=1, wall_s=0.5), Limits(cpu_s=1, wall_s=60.0)
BLOCKED = "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nsignal.pause()"


@pytest.mark.parametrize(
    ("source", "limits", "outcome"),
    [
        (DAEMON, LONG, Outcome.PASSED),
        (FORK_BOMB, LONG, Outcome.CPU_LIMIT),
        ("import time\ntime.sleep(60)", SHORT, Outcome.WALL_LIMIT),
        (BLOCKED, SHORT, Outcome.WALL_LIMIT),
        ("while True:\n    print('x' * 1000)", LONG, Outcome.CPU_LIMIT),
    ],
    ids=["daemon", "fork bomb", "sleep", "signals blocked", "flood"],
)
async def test_nothing_outlives_the_verdict(
    level: str, descendants: Callable[[], set[int]], source: str, limits: Limits, outcome: Outcome
) -> None:
    async with Sandbox(limits, level=level) as sandbox:
        execution = await sandbox.run(Program(source))
    assert execution.outcome is outcome, execution
    assert descendants() == set()
