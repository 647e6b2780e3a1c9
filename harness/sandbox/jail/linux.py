"""Linux system calls that Python has no function for: capabilities, Landlock, namespaces, seccomp."""

import ctypes
import errno
import os
import signal
import struct
import sys
from collections.abc import Sequence

# Name, number on x86_64 and number on aarch64, grouped by what a call reaches. A program may make only the calls of the
# last group, some of them only with certain arguments.
SYSTEM_CALLS = {
    "network": """
    socket:41:198 connect:42:203 bind:49:200 listen:50:201 accept:43:202 accept4:288:242 sendmsg:46:211
    sendmmsg:307:269""",
    "processes": """
    fork:57:- vfork:58:- execve:59:221 execveat:322:281 setsid:112:157 setpgid:109:154 prctl:157:167""",
    "other processes": """
    ptrace:101:117 process_vm_readv:310:270 process_vm_writev:311:271 process_madvise:440:440 process_mrelease:448:448
    kcmp:312:272 pidfd_open:434:434 pidfd_getfd:438:438 pidfd_send_signal:424:424 tkill:200:130
    rt_sigqueueinfo:129:138 rt_tgsigqueueinfo:297:240 setpriority:141:140 ioprio_set:251:30 sched_setaffinity:203:122
    sched_setattr:314:274 sched_setparam:142:118 sched_setscheduler:144:119 migrate_pages:256:238 move_pages:279:239""",
    "file systems": """
    mount:165:40 umount2:166:39 mount_setattr:442:442 move_mount:429:429 open_tree:428:428 fsopen:430:430
    fsmount:432:432 fsconfig:431:431 fspick:433:433 pivot_root:155:41 chroot:161:51 unshare:272:97 setns:308:268
    quotactl:179:60 quotactl_fd:443:443 swapon:167:224 swapoff:168:225 name_to_handle_at:303:264
    open_by_handle_at:304:265 fanotify_init:300:262 lookup_dcookie:212:18 uselib:134:- inotify_init:253:-
    inotify_init1:294:26""",
    "kernel": """
    add_key:248:217 request_key:249:218 keyctl:250:219 bpf:321:280 perf_event_open:298:241 userfaultfd:323:282
    seccomp:317:277 personality:135:92 io_setup:206:0 io_uring_setup:425:425 io_uring_enter:426:426
    io_uring_register:427:427 modify_ldt:154:- ioperm:173:- iopl:172:- init_module:175:105 finit_module:313:273
    delete_module:176:106 kexec_load:246:104 kexec_file_load:320:294 reboot:169:142 acct:163:89 settimeofday:164:170
    clock_settime:227:112 clock_adjtime:305:266 adjtimex:159:171 sethostname:170:161 setdomainname:171:162
    syslog:103:116 vhangup:153:58 sync:162:81 syncfs:306:267""",
    "memory that no limit counts, or that others share": """
    shmget:29:194 msgget:68:186 semget:64:190 mq_open:240:180 memfd_create:319:279 memfd_secret:447:447 shmat:30:196
    shmctl:31:195 msgsnd:69:189 msgrcv:70:188 msgctl:71:187 semop:65:193 semtimedop:220:192 semctl:66:191
    mq_unlink:241:181""",
    "allowed": """
    capset:126:91 clone:56:220 clone3:435:435 fallocate:285:47 fcntl:72:25 ioctl:16:29 kill:62:129
    landlock_add_rule:445:445 landlock_create_ruleset:444:444 landlock_restrict_self:446:446 prlimit64:302:261
    sendto:44:206 tgkill:234:131""",
}
_ROWS = [[row.split(":") for row in text.split()] for text in SYSTEM_CALLS.values()]
NUMBERS = {name: (x86_64, aarch64) for rows in _ROWS for name, x86_64, aarch64 in rows}
FORBIDDEN = tuple(name for rows in _ROWS[:-1] for name, _, _ in rows)
# Column of this machine. None on other architectures.
_COLUMN = {"x86_64": 0, "aarch64": 1}.get(os.uname().machine) if sys.platform == "linux" else None
KNOWN = _COLUMN is not None

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def number(name: str) -> int | None:
    if _COLUMN is None:
        raise OSError(f"no system call numbers known for {sys.platform} on {os.uname().machine}")
    text = NUMBERS[name][_COLUMN]
    return None if text == "-" else int(text)


def call(name: str, *arguments: int | bytes | None) -> int:
    words = [ctypes.c_ulong(word) if isinstance(word, int) else word for word in arguments]
    result: int = libc.syscall(ctypes.c_long(number(name) or 0), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")
    return result


def forbid_new_privileges() -> None:
    call("prctl", 38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS


def drop_capabilities() -> None:
    call("capset", (0x20080522).to_bytes(4, "little") + bytes(4), bytes(24))  # version 3


def die_with_parent(parent: int) -> None:
    """End this process when its parent ends. Call it after the last change of credentials, which would undo it."""
    call("prctl", 1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        raise OSError("the parent process has ended")


# Landlock: which files a process may open, whatever their permissions.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_SOCK, _MAKE_BLOCK, _TRUNCATE, _IOCTL_DEV = 1 << 6, 1 << 9, 1 << 11, 1 << 14, 1 << 15
# Number of file system rights by version of the interface; later versions have as many as the last.
_RIGHTS_OF_VERSION = (0, 13, 14, 15, 15, 16)


def landlock_rules(readable: list[tuple[str, str]], work_dir: str | None) -> int:
    """Create a ruleset: read paths by kind (tree, list, file, device), do all but execute in ``work_dir``, if any."""
    version = call("landlock_create_ruleset", None, 0, 1)
    handled = (1 << _RIGHTS_OF_VERSION[min(version, 5)]) - 1
    rights = {"tree": _READ_FILE | _READ_DIR, "list": _READ_DIR, "file": _READ_FILE}
    rights["device"] = (_READ_FILE | _WRITE_FILE | _TRUNCATE) & handled
    # TCP since version 4, signals and abstract sockets since version 6; fields unknown to a kernel must be zero.
    fields = b"".join(field.to_bytes(8, "little") for field in (handled, 3 * (version >= 4), 3 * (version >= 6)))
    rules = call("landlock_create_ruleset", fields, len(fields), 0)
    allowed = [(path, rights[kind]) for path, kind in readable]
    if work_dir is not None:
        allowed.append((work_dir, handled & ~(_EXECUTE | _MAKE_CHAR | _MAKE_SOCK | _MAKE_BLOCK | _IOCTL_DEV)))
    for path, right in allowed:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        call("landlock_add_rule", rules, 1, right.to_bytes(8, "little") + descriptor.to_bytes(4, "little"), 0)
        os.close(descriptor)
    return rules


def apply_landlock(rules: int) -> None:
    call("landlock_restrict_self", rules, 0)
    os.close(rules)


# Namespaces: a small read-only root, no network, no other process.
_NEW_MOUNTS, _NEW_HOST_NAME, _NEW_IPC = 0x00020000, 0x04000000, 0x08000000
_NEW_USERS, _NEW_PROCESSES, _NEW_NETWORK = 0x10000000, 0x20000000, 0x40000000
_EVERYTHING = _NEW_USERS | _NEW_MOUNTS | _NEW_PROCESSES | _NEW_NETWORK | _NEW_IPC | _NEW_HOST_NAME
_BIND, _RECURSIVE, _PRIVATE, _NO_SUID, _NO_DEVICES = 1 << 12, 1 << 14, 1 << 18, 1 << 1, 1 << 2
_READ_ONLY_NO_SUID_NO_DEVICES = (1 | 2 | 4).to_bytes(8, "little") + bytes(24)
_AT_CURRENT_DIRECTORY, _AT_RECURSIVE = 2**64 - 100, 0x8000
_DETACH = 2
# Root and work directory are in memory and disappear with the namespace.
_ROOT_OPTIONS = b"size=16m,nr_inodes=1k,mode=755"
_SITE = "/tmp"  # noqa: S108  hidden under the private root, in this namespace only


def enter_namespaces(prefix: str, mounts: list[str], work_dir: str) -> None:
    """Enter new namespaces, with a root of read-only ``mounts`` and ``work_dir``. The current folder is ``prefix``."""
    user, group = os.geteuid(), os.getegid()
    call("unshare", _EVERYTHING)
    for path, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        # Written as bytes: codecs load from a library that this user may be unable to reach yet.
        file = os.open(f"/proc/self/{path}", os.O_WRONLY)
        os.write(file, text.encode())
        os.close(file)
    call("sethostname", b"sandbox", 7)
    call("mount", b"none", b"/", None, _RECURSIVE | _PRIVATE, None)
    call("mount", b"tmpfs", _SITE.encode(), b"tmpfs", _NO_SUID | _NO_DEVICES, _ROOT_OPTIONS)
    for path in mounts:
        source = "." + path[len(prefix) :] if path.startswith(prefix + "/") else path
        os.makedirs(_SITE + path)
        target = (_SITE + path).encode()
        call("mount", source.encode(), target, None, _BIND | _RECURSIVE, None)
        call("mount_setattr", _AT_CURRENT_DIRECTORY, target, _AT_RECURSIVE, _READ_ONLY_NO_SUID_NO_DEVICES, 32)
    os.mkdir(_SITE + os.path.dirname(os.devnull))
    os.close(os.open(_SITE + os.devnull, os.O_CREAT | os.O_WRONLY, 0o600))
    call("mount", os.devnull.encode(), (_SITE + os.devnull).encode(), None, _BIND, None)
    os.makedirs(_SITE + work_dir)
    # A mount of its own, so that only this directory stays writable when the root becomes read-only.
    call("mount", (_SITE + work_dir).encode(), (_SITE + work_dir).encode(), None, _BIND, None)
    call("mount_setattr", _AT_CURRENT_DIRECTORY, _SITE.encode(), 0, _READ_ONLY_NO_SUID_NO_DEVICES, 32)
    os.chdir(_SITE)
    call("pivot_root", b".", b".")
    call("umount2", b".", _DETACH)
    os.chdir("/")


# Seccomp: no network, no new process, no other process, no administration of the kernel.
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_BIT = 0x40000000
# Offsets in the kernel's seccomp_data; both architectures are little-endian.
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_LOAD, _RETURN = 0x20, 0x06
_IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT = 0x15, 0x35, 0x45
_KILL, _ALLOW = 0x80000000, 0x7FFF0000
_REFUSE, _ABSENT = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
_CLONE_THREAD = 0x00010000
# By these requests the kernel sends signals on behalf of a program: F_SETOWN, F_SETSIG, F_SETOWN_EX; FIOSETOWN,
# SIOCSPGRP. TIOCSTI types into a terminal.
_SIGNAL_REQUESTS = {"fcntl": (8, 10, 15), "ioctl": (0x8901, 0x8902, 0x5412)}


def filter_calls() -> None:
    """Apply :func:`call_filter` to this process for good. Requires no_new_privs."""
    instructions = call_filter(os.getpid())
    code = ctypes.create_string_buffer(instructions, len(instructions))
    # SECCOMP_SET_MODE_FILTER
    call("seccomp", 1, 0, struct.pack("@HP", len(code) // 8, ctypes.addressof(code)))


def call_filter(pid: int) -> bytes:
    rules = [_for(name, [_step(_RETURN, _REFUSE)]) for name in FORBIDDEN if number(name) is not None]
    # A filter cannot read the arguments of clone3; C libraries fall back to clone.
    rules += [
        _for("clone3", [_step(_RETURN, _ABSENT)]),
        _rule("clone", 0, _IF_ANY_BIT, [_CLONE_THREAD], _ALLOW, _REFUSE),
        *(_rule(name, 0, _IF_EQUAL, [pid], _ALLOW, _REFUSE) for name in ("kill", "tgkill")),
        _rule("prlimit64", 0, _IF_EQUAL, [0, pid], _ALLOW, _REFUSE),
        # Modes other than 0 can reserve disk space that the limit on file size does not count.
        _rule("fallocate", 1, _IF_EQUAL, [0], _ALLOW, _REFUSE),
        *(_rule(name, 1, _IF_EQUAL, requests, _REFUSE, _ALLOW) for name, requests in _SIGNAL_REQUESTS.items()),
    ]
    # Event loops need ``sendto`` on socket pairs. Without an address, a message reaches only the other end.
    low = _FIRST_ARGUMENT + 8 * 4
    null = [_step(_LOAD, low), _step(_IF_EQUAL, 0, 0, 2), _step(_LOAD, low + 4), _step(_IF_EQUAL, 0, 1, 0)]
    rules.append(_for("sendto", [*null, _step(_RETURN, _REFUSE), _step(_RETURN, _ALLOW)]))
    ours = [_step(_LOAD, _ARCHITECTURE), _step(_IF_EQUAL, _ARCHITECTURES[os.uname().machine], 1, 0)]
    not_x32 = [_step(_LOAD, _NUMBER), _step(_IF_AT_LEAST, _X32_BIT, 0, 1)]
    guard = [*ours, _step(_RETURN, _KILL), *not_x32, _step(_RETURN, _KILL)]
    return b"".join([*guard, *rules, _step(_RETURN, _ALLOW)])


def _rule(name: str, argument: int, test: int, values: Sequence[int], verdict: int, otherwise: int) -> bytes:
    """Build the filter instructions for one system call.

    They return ``verdict`` if the low half of an argument passes the test for any of ``values``, else ``otherwise``.
    """
    load = _step(_LOAD, _FIRST_ARGUMENT + 8 * argument)
    tests = [_step(test, value, len(values) - index, 0) for index, value in enumerate(values)]
    return _for(name, [load, *tests, _step(_RETURN, otherwise), _step(_RETURN, verdict)])


def _for(name: str, steps: list[bytes]) -> bytes:
    """Build instructions that run ``steps`` for this system call and skip them for all others."""
    return _step(_IF_EQUAL, number(name) or 0, 0, len(steps)) + b"".join(steps)


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)
