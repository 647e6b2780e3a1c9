"""The system call filter: no network, no new process, no other process, no kernel machinery."""

from __future__ import annotations

import ctypes
import os
import struct

from .linux import call, forbid_new_privileges, libc, number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_EPERM, _ENOSYS = 1, 38
_SET_MODE_FILTER = 1
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_BIT = 0x40000000

# Offsets in the kernel's seccomp_data; both architectures are little-endian.
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16

_LOAD, _RETURN = 0x20, 0x06
_IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT = 0x15, 0x35, 0x45
_KILL, _ERROR, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000

_CLONE_THREAD = 0x00010000
# F_SETOWN, F_SETSIG, F_SETOWN_EX; FIOSETOWN, SIOCSPGRP, and TIOCSTI, which types into a terminal.
_SIGNAL_REQUESTS = {"fcntl": (8, 10, 15), "ioctl": (0x8901, 0x8902, 0x5412)}
# No process has it; the place where one's own belongs.
_ANY_PID = 0x7FFFFFFE

NETWORK = ("socket", "connect", "bind", "listen", "accept", "accept4", "sendmsg", "sendmmsg")
PROCESSES = ("fork", "vfork", "execve", "execveat", "setsid", "setpgid", "prctl")
OTHER_PROCESSES = (
    *("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "kcmp"),
    *("pidfd_open", "pidfd_getfd", "pidfd_send_signal", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"),
    *("setpriority", "ioprio_set", "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"),
    *("migrate_pages", "move_pages"),
)
FILE_SYSTEMS = (
    *("mount", "umount2", "mount_setattr", "move_mount", "open_tree", "fsopen", "fsmount", "fsconfig", "fspick"),
    *("pivot_root", "chroot", "unshare", "setns", "quotactl", "quotactl_fd", "swapon", "swapoff"),
    *("name_to_handle_at", "open_by_handle_at", "fanotify_init", "lookup_dcookie", "uselib"),
)
KERNEL = (
    *("add_key", "request_key", "keyctl", "bpf", "perf_event_open", "userfaultfd", "seccomp", "personality"),
    *("io_setup", "io_uring_setup", "io_uring_enter", "io_uring_register", "modify_ldt", "ioperm", "iopl"),
    *("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "acct"),
    *("settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname"),
    *("syslog", "vhangup", "sync", "syncfs"),
)
# Memory that no resource limit of the process counts.
# What others share under numbers that can be guessed.
SHARED_MEMORY = ("shmat", "shmctl", "msgsnd", "msgrcv", "msgctl", "semop", "semtimedop", "semctl", "mq_unlink")
UNCOUNTED_MEMORY = ("shmget", "msgget", "semget", "mq_open", "memfd_create", "memfd_secret")
# Tells of what others do with files.
OTHERS_FILES = ("inotify_init", "inotify_init1")
# What file rules do not govern: where the files of a user can be reached, they must not be changed this way either.
FILE_ATTRIBUTES = (
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat"),
    *("utime", "utimes", "utimensat", "futimesat", "setxattr", "lsetxattr", "fsetxattr", "setxattrat"),
    *("removexattr", "lremovexattr", "fremovexattr", "removexattrat", "file_setattr"),
)
FORBIDDEN = (
    *NETWORK,
    *PROCESSES,
    *OTHER_PROCESSES,
    *FILE_SYSTEMS,
    *KERNEL,
    *UNCOUNTED_MEMORY,
    *SHARED_MEMORY,
    *OTHERS_FILES,
)


# What a process needs that starts confined ones and ends them.
_TO_START_OTHERS = ("sendmsg", "fork", "vfork", "setsid", "prctl", "seccomp", "pidfd_open")


def install() -> None:
    """Applies the filter to the calling process for good.

    Raises:
        OSError: The kernel or the architecture does not support it.
    """
    _apply(program(os.getpid()))


def install_first_part(*further: str) -> None:
    """Applies all of the filter that a process can live with which starts others; they inherit it.

    Args:
        *further: Calls to forbid beyond :data:`FORBIDDEN`.

    Raises:
        OSError: The kernel or the architecture does not support it.
    """
    _apply(_filter([name for name in (*FORBIDDEN, *further) if name not in _TO_START_OTHERS]))


def second_part() -> Callable[[], None]:
    """Prepares the rest, for a process that is still to be forked: together the two parts are the whole filter.

    Returns:
        What applies it to the process that calls it; raises ``OSError`` where the kernel does not support it. Little
        happens there: every line of Python makes a new process copy more of its parent.
    """
    instructions = _filter(_TO_START_OTHERS, _ANY_PID)
    code = ctypes.create_string_buffer(instructions, len(instructions))
    head = struct.pack("@HP", len(instructions) // 8, ctypes.addressof(code))
    mark = _ANY_PID.to_bytes(4, "little")
    places = [place for place in range(4, len(instructions), 8) if instructions[place : place + 4] == mark]
    arguments = [ctypes.c_long(_known("seccomp")), ctypes.c_ulong(_SET_MODE_FILTER), ctypes.c_ulong(0), head]

    def apply() -> None:
        me = os.getpid().to_bytes(4, "little")
        for place in places:
            ctypes.memmove(ctypes.byref(code, place), me, 4)
        if libc.syscall(*arguments) != 0:
            raise OSError(ctypes.get_errno(), "seccomp")

    return apply


def program(pid: int) -> bytes:
    """The filter in the kernel's instruction format.

    Args:
        pid: The one process that may be signalled and have its limits read: the caller itself.
    """
    return _filter(FORBIDDEN, pid)


def _apply(instructions: bytes) -> None:
    code = ctypes.create_string_buffer(instructions, len(instructions))
    head = struct.pack("@HP", len(instructions) // 8, ctypes.addressof(code))
    forbid_new_privileges()
    call("seccomp", _SET_MODE_FILTER, 0, head)


def _filter(names: Iterable[str], pid: int | None = None) -> bytes:
    blocks = [_guard()]
    blocks += [_deny(found, _EPERM) for name in names if (found := number(name)) is not None]
    if pid is not None:
        # Arguments of clone3 lie in memory a filter cannot read; C libraries fall back to clone.
        blocks.append(_deny(_known("clone3"), _ENOSYS))
        blocks.append(_only_if(_known("clone"), 0, _IF_ANY_BIT, [_CLONE_THREAD]))
        blocks += [_only_if(_known(name), 0, _IF_EQUAL, [pid]) for name in ("kill", "tgkill")]
        blocks.append(_only_if(_known("prlimit64"), 0, _IF_EQUAL, [0, pid]))
        # With any mode it reserves space that no limit on files counts.
        blocks.append(_only_if(_known("fallocate"), 1, _IF_EQUAL, [0]))
        # The kernel would send signals on behalf of whoever asks for them this way.
        blocks += [_unless(_known(name), 1, commands) for name, commands in _SIGNAL_REQUESTS.items()]
        # socketpair stays, event loops need it; without an address a message can only reach the other end.
        blocks.append(_null_pointer(_known("sendto"), 4))
    return b"".join(blocks) + _step(_RETURN, _ALLOW)


def _known(name: str) -> int:
    found = number(name)
    if found is None:
        raise OSError(f"this architecture has no {name}")
    return found


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)


def _guard() -> bytes:
    """Ends processes that switch to another architecture's call table, then loads the call's number."""
    return b"".join(
        (
            _step(_LOAD, _ARCHITECTURE),
            _step(_IF_EQUAL, _ARCHITECTURES[os.uname().machine], 1, 0),
            _step(_RETURN, _KILL),
            _step(_LOAD, _NUMBER),
            _step(_IF_AT_LEAST, _X32_BIT, 0, 1),
            _step(_RETURN, _KILL),
        )
    )


def _deny(call_number: int, error: int) -> bytes:
    return _step(_IF_EQUAL, call_number, 0, 1) + _step(_RETURN, _ERROR | error)


def _only_if(call_number: int, argument: int, test: int, values: list[int]) -> bytes:
    """Allows a call where one of ``values`` passes ``test`` against the low half of an argument."""
    count = len(values)
    tests = b"".join(_step(test, value, count - place, 0) for place, value in enumerate(values))
    body = _step(_LOAD, _FIRST_ARGUMENT + 8 * argument) + tests + _step(_RETURN, _ERROR | _EPERM)
    return _step(_IF_EQUAL, call_number, 0, count + 3) + body + _step(_RETURN, _ALLOW)


def _unless(call_number: int, argument: int, values: Sequence[int]) -> bytes:
    """Allows a call unless the low half of an argument is one of ``values``."""
    count = len(values)
    tests = b"".join(_step(_IF_EQUAL, value, count - place, 0) for place, value in enumerate(values))
    body = _step(_LOAD, _FIRST_ARGUMENT + 8 * argument) + tests + _step(_RETURN, _ALLOW)
    return _step(_IF_EQUAL, call_number, 0, count + 3) + body + _step(_RETURN, _ERROR | _EPERM)


def _null_pointer(call_number: int, argument: int) -> bytes:
    """Allows a call where both halves of an argument are zero."""
    low = _FIRST_ARGUMENT + 8 * argument
    return b"".join(
        (
            _step(_IF_EQUAL, call_number, 0, 6),
            _step(_LOAD, low),
            _step(_IF_EQUAL, 0, 0, 2),
            _step(_LOAD, low + 4),
            _step(_IF_EQUAL, 0, 1, 0),
            _step(_RETURN, _ERROR | _EPERM),
            _step(_RETURN, _ALLOW),
        )
    )
