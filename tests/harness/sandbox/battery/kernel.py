"""Programs that talk to the kernel, to other processes and to the network."""

from __future__ import annotations

from tests.harness.sandbox.battery.entry import (
    KILLED,
    NAME,
    NOTHING,
    OPEN_NETWORK,
    OPEN_PROCESSES,
    PASSED,
    PORT,
    Entry,
    probe,
    system_calls,
)

THEME = "kernel, other processes, network"

_PARENT = "os.getppid()"
_KEY = int.from_bytes(NAME.encode()[:4], "big")
_NEW = 0o1600
_OTHER_PROCESSES = system_calls(
    f"ptrace 16 {_PARENT} 0 0",
    "ptrace 0 0 0 0",
    f"process_vm_readv {_PARENT} 0 0 0 0 0",
    f"process_vm_writev {_PARENT} 0 0 0 0 0",
    f"pidfd_open {_PARENT} 0",
    "pidfd_getfd 0 0 0",
    "pidfd_send_signal 0 0 0 0",
    f"kcmp {_PARENT} {_PARENT} 0 0 0",
    f"kill {_PARENT} 0",
    "kill -1 0",
    "kill 0 0",
    f"tkill {_PARENT} 0",
    f"tgkill {_PARENT} {_PARENT} 0",
    f"rt_sigqueueinfo {_PARENT} 0 0",
    f"prlimit64 {_PARENT} 0 0 0",
)
_NEW_PROCESSES = system_calls(
    "fork",
    "clone 17 0 0 0 0",
    "clone3 0 0",
    "execve 0 0 0",
    "execveat -1 0 0 0 0",
    "setsid",
    "setpgid 0 0",
)
_PLACES = system_calls(
    "mount 0 0 0 0 0",
    "umount2 0 0",
    "move_mount 0 0 0 0 0",
    "mount_setattr 0 0 0 0 0",
    "fsopen 0 0",
    "open_tree -1 0 0",
    "pivot_root 0 0",
    "chroot 0",
    "unshare 0",
    "unshare 0x10000000",
    "setns 0 0",
    "name_to_handle_at -1 0 0 0 0",
    "open_by_handle_at -1 0 0",
    "quotactl 0 0 0 0",
    "swapon 0 0",
)
_MACHINERY = system_calls(
    "add_key 0 0 0 0 0",
    "request_key 0 0 0 0",
    "keyctl 0 0",
    "bpf 0 0 0",
    "perf_event_open 0 0 0 0 0",
    "userfaultfd 0",
    "io_setup 0 0",
    "io_uring_setup 0 0",
    "io_uring_enter 0 0 0 0 0 0",
    "seccomp 0 0 0",
    "personality 0x40000",
    "modify_ldt 0 0 0",
    "init_module 0 0 0",
    "kexec_load 0 0 0 0",
    "syslog 3 0 0",
    "settimeofday 0 0",
    "clock_settime 0 0",
    "sethostname 0 0",
    "acct 0",
)
_UNCOUNTED = system_calls(
    "memfd_create 0 0",
    "memfd_secret 0",
    f"shmget {_KEY} 4096 {_NEW}",
    f"msgget {_KEY} {_NEW}",
    f"semget {_KEY} 1 {_NEW}",
    "mq_open 0 0 0 0",
)
_BACK = system_calls(
    "prctl 38 0 0 0 0",
    "prctl 22 0 0 0 0",
    "prctl 1 0 0 0 0",
    "prctl 4 1 0 0 0",
    "prctl 36 1 0 0 0",
    "setpriority 0 0 5",
    "sched_setaffinity 0 8 0",
    "sched_setscheduler 0 0 0",
)
_USERS = probe(
    {
        "setuid": "os.setuid(0)",
        "setresuid": "os.setresuid(0, 0, 0)",
        "setgid": "os.setgid(0)",
        "setgroups": "os.setgroups([0])",
        "chown": "os.chown('.', 0, 0)",
    }
)
_SOCKETS = probe(
    {
        "server": f"socket.create_server(('127.0.0.1', {PORT}))",
        "connection": "socket.create_connection(('127.0.0.1', 9), 1)",
        "abstract": f"socket.socket(socket.AF_UNIX).bind('\\0{NAME}')",
        "file": f"socket.socket(socket.AF_UNIX).bind('{NAME}')",
        "name": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.53', 53))",
        "http": "http.client.HTTPConnection('127.0.0.1', 8000, timeout=1).connect()",
        "loop": "asyncio.run(asyncio.open_connection('127.0.0.1', 9))",
        "handed over": "passed_along()",
    },
    """
import array, asyncio, http.client, socket
def passed_along():
    left, right = socket.socketpair()
    left.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))])
""",
)
_SOCKET_CALLS = system_calls(
    "socket 2 1 0",
    "socket 10 2 0",
    "socket 1 1 0",
    "socket 16 3 0",
    "socket 17 3 0",
    "socket 40 1 0",
    "connect 0 0 0",
    "bind 0 0 0",
    "listen 0 0",
    "accept 0 0 0",
    "sendmsg 0 0 0",
    "sendmmsg 0 0 0 0",
    "sendto 0 0 0 0 1 16",
)
_LIBRARY = probe(
    {
        "memory": f"shared_memory.SharedMemory('{NAME}', create=True, size=4096)",
        "semaphore": "multiprocessing.Semaphore()",
        "queue": "multiprocessing.Queue()",
        "fork": "multiprocessing.get_context('fork').Process(target=print).start()",
        "spawn": "multiprocessing.get_context('spawn').Process(target=print).start()",
        "program": "subprocess.run([sys.executable, '-c', ''], check=False)",
        "shell": "1 / (os.system('true') + 1) and [][0] if os.system('true') == 0 else open('/nothing')",
    },
    "import multiprocessing, subprocess, sys\nfrom multiprocessing import shared_memory\n",
)
_LIMITS = probe(
    {name: f"raised({name!r})" for name in ("CPU", "AS", "FSIZE", "NOFILE", "NPROC", "CORE")},
    """
import resource
def raised(name):
    kind = getattr(resource, f"RLIMIT_{name}")
    soft, hard = resource.getrlimit(kind)
    if hard == resource.RLIM_INFINITY:
        raise ValueError("nothing to raise")
    resource.setrlimit(kind, (soft, hard + 1))
""",
)
_MACHINE_CODE = """
import ctypes, mmap
def f(x):
    place = mmap.mmap(-1, 4096, prot=7)
    place.write(bytes.fromhex("{code}"))
    address = ctypes.addressof(ctypes.c_char.from_buffer(place))
    return ctypes.CFUNCTYPE(ctypes.c_long)(address)()
"""


def _denied(name: str, source: str, rlimit: str = "") -> Entry:
    return Entry(name, source, (PASSED,), checks=NOTHING, rlimit=rlimit)


def _ended(name: str, code: str) -> Entry:
    source = _MACHINE_CODE.format(code=code)
    return Entry(name, source, (KILLED,), rlimit=OPEN_PROCESSES, machines=("x86_64",))


PROGRAMS = (
    _denied("tracing, reading and ending other processes", _OTHER_PROCESSES, OPEN_PROCESSES),
    _denied("new processes and programs by system call", _NEW_PROCESSES, OPEN_PROCESSES),
    _denied("mounts, roots, namespaces", _PLACES, OPEN_PROCESSES),
    _denied("keys, filters, rings, modules, clocks", _MACHINERY, OPEN_PROCESSES),
    _denied("memory that no limit counts", _UNCOUNTED, OPEN_PROCESSES),
    _denied("taking the confinement back", _BACK, OPEN_PROCESSES),
    _denied("another user", _USERS),
    _denied("raised limits", _LIMITS),
    _denied("sockets of the library", _SOCKETS, OPEN_NETWORK),
    _denied("sockets by system call", _SOCKET_CALLS, OPEN_NETWORK),
    _denied("shared memory, semaphores and programs of the library", _LIBRARY, OPEN_PROCESSES),
    # The number 20, or 39 in the table for short pointers, asks for the process id.
    _ended("system call of another architecture", "b814000000cd80c3"),
    _ended("system call of another table", "b8270000400f05c3"),
)
