"""Programs that write where they may not, or too much where they may, or leave what is hard to remove."""

from __future__ import annotations

from tests.harness.sandbox.battery.entry import (
    KILLED,
    MEMORY,
    NAME,
    NOTHING,
    OPEN_FILES,
    OUTPUT,
    PASSED,
    RAISED,
    Entry,
    probe,
)

THEME = "disk"
# Directories that cannot be looked into count as too much, if anybody looks in time.
_SEEN_OR_NOT = (PASSED, OUTPUT)

_PLACES = (
    "'/'",
    "'..'",
    "'/tmp'",
    "'/var/tmp'",
    "'/dev'",
    "'/dev/shm'",
    "'/etc'",
    "os.path.expanduser('~')",
    "sysconfig.get_path('stdlib')",
    "sysconfig.get_path('purelib')",
    "site.getusersitepackages()",
    "sys.prefix",
)
_BESIDE = probe(
    {place: f"written({place})" for place in _PLACES} | {"bytecode": "cached()"},
    f"""
import site, sys, sysconfig
def written(place):
    # The work directory itself may be written, whatever it is called.
    if os.path.realpath(place) == os.getcwd():
        raise OSError(place)
    with open(os.path.join(place, "{NAME}.pth"), "w") as file:
        file.write("import os")
def cached():
    os.mkdir(os.path.join(os.path.dirname(os.__file__), "json", "__pycache__", "{NAME}"))
""",
)
_LINKED = ("/", "/etc", "/proc/self/root", "/proc/self/cwd/..", "../..", "/proc/1/root", "/dev/fd/..")
_OUT = probe(
    {place: f"through({place!r})" for place in _LINKED}
    | {
        "hard link": "os.link('/etc/passwd', 'hard')",
        "hard link to the interpreter": "os.link('/proc/self/exe', 'harder')",
        "upwards": "os.open('etc', os.O_RDONLY, dir_fd=os.open('..', os.O_PATH | os.O_DIRECTORY))",
        "exchange": "os.rename('/etc', 'etc')",
        "device": "os.mknod('device', 0o20666, os.makedev(1, 1))",
    },
    """
def through(target):
    name = f"way{len(os.listdir('.'))}"
    os.symlink(target, name)
    os.listdir(name)
""",
)
_MANY_FILES = (
    "import itertools\ndef f(x):\n    for number in itertools.count():\n        open(f'{number}', 'w').close()"
)
_MANY_DIRECTORIES = (
    "import itertools, os\ndef f(x):\n    for number in itertools.count():\n        os.mkdir(f'{number}')"
)
_FILL = """
import itertools
def f(x):
    for number in itertools.count():
        with open(f"{number}", "wb") as file:
            file.write(bytes(range(256)) * 3000)
"""
_KEPT_OPEN = """
import os
kept = []
def f(x):
    while True:
        kept.append(open("x", "wb", buffering=0))
        os.unlink("x")
        kept[-1].write(bytes(1_000_000))
"""
# Space beyond the end of a file is no part of its size, and a deleted file is in no directory.
_RESERVED = """
import ctypes, os
def f(x):
    file = os.open("x", os.O_CREAT | os.O_WRONLY)
    os.unlink("x")
    ctypes.CDLL(None).fallocate(file, 1, ctypes.c_long(0), ctypes.c_long(1 << 28))
    return os.fstat(file).st_blocks * 512
"""
_BY_SIGNAL = """
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
def f(x):
    open("x", "wb").write(bytes(1 << 26))
"""
_LEFT = """
import os
ACTIONS = (
    lambda: os.mkfifo("pipe"),
    lambda: os.symlink("loop", "loop"),
    lambda: os.symlink("/etc", "closed/way"),
    lambda: os.mkfifo("closed/pipe"),
    lambda: open("n" * 255, "w"),
    lambda: open(b"\\xff\\n\\x1b[2J", "w"),
    lambda: os.chmod("closed", 0),
    lambda: os.chmod(".", 0),
)
def f(x):
    os.mkdir("closed")
    for action in ACTIONS:
        try:
            action()
        except OSError:
            pass
    return 2 * x + 2
"""
# Whoever counts the files of a directory has to get there.
_BEHIND_A_CLOSED_DOOR = """
import itertools, os
def f(x):
    os.makedirs("closed/inner")
    os.chdir("closed/inner")
    os.chmod("..", 0)
    for number in itertools.count():
        open(f"{number}", "w").close()
"""
_BEYOND_THE_LONGEST_PATH = """
import itertools, os
def f(x):
    for _ in range(20):
        os.mkdir("d" * 250)
        os.chdir("d" * 250)
    for number in itertools.count():
        open(f"{number}", "w").close()
"""
_DEEP = """
import os
def f(x):
    try:
        for _ in range(980):
            os.mkdir("d")
            os.chdir("d")
    except OSError:
        pass
    return 2 * x + 2
"""

PROGRAMS = (
    Entry("writing beside its directory", _BESIDE, (PASSED,), checks=NOTHING, rlimit=OPEN_FILES),
    Entry("ways out of its directory", _OUT, (PASSED,), checks=NOTHING, rlimit=OPEN_FILES),
    Entry("endless files", _MANY_FILES, (OUTPUT, RAISED)),
    Entry("endless directories", _MANY_DIRECTORIES, (OUTPUT, RAISED)),
    Entry("endless files behind a closed door", _BEHIND_A_CLOSED_DOOR, (OUTPUT, RAISED)),
    Entry("endless files beyond the longest path", _BEYOND_THE_LONGEST_PATH, (OUTPUT, RAISED)),
    Entry("files until the disk is full", _FILL, (OUTPUT, RAISED)),
    Entry("deleted files, kept open", _KEPT_OPEN, (OUTPUT, RAISED)),
    Entry(
        "space reserved for a deleted file",
        _RESERVED,
        (PASSED,),
        checks="assert f(0) <= 1 << 24",
        rlimit=OPEN_FILES,
    ),
    Entry("one sparse file", "def f(x):\n    open('x', 'wb').truncate(1 << 40)", (OUTPUT, RAISED)),
    Entry("one file too long, by signal", _BY_SIGNAL, (KILLED, OUTPUT, MEMORY)),
    Entry("nearly a thousand directories deep, and right", _DEEP, (PASSED,)),
    Entry("pipes, loops, long names and closed directories left, and right", _LEFT, _SEEN_OR_NOT),
)
