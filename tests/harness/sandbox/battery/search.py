"""A program that searches everything its process can read for pieces of what it must not know."""

from __future__ import annotations

from tests.harness.sandbox.battery.entry import NOTHING

# Every marker starts like this and goes on with eight hexadecimal digits; the searching program holds the start alone.
MARKER = "wombat-"
IN_CHECKS, IN_ENVIRONMENT, IN_EARLIER_PROGRAM, IN_EARLIER_CHECKS = (
    f"{MARKER}{digits}" for digits in ("0badcafe", "1badcafe", "2badcafe", "3badcafe")
)

SEARCH = f"""
import ctypes, gc, linecache, os, re, sys
NEEDLE = re.compile(rb"{MARKER}([0-9a-f]{{8}})")
PAGE, STEP = 4096, 1 << 18
libc = ctypes.CDLL(None)
source, sink = os.pipe()
os.set_blocking(sink, False)
os.set_blocking(source, False)
try:
    import fcntl
    fcntl.fcntl(sink, 1031, STEP)
except OSError:
    STEP = 1 << 16

def content(address, length):
    # The kernel refuses to read what is not there, where looking would end the program.
    written = libc.write(sink, ctypes.c_void_p(address), ctypes.c_size_t(length))
    return os.read(source, written) if written > 0 else b""

def searched(address, seen, found):
    for step in (STEP, -STEP):
        place = address - address % STEP + (0 if step > 0 else step)
        while place not in seen and place > 0:
            seen.add(place)
            piece, offset = b"", 0
            while offset < STEP:
                part = content(place + offset, STEP - offset)
                piece += part or bytes(PAGE)
                offset += (len(part) + PAGE - 1) // PAGE * PAGE or PAGE
            if not piece.strip(b"\\0"):
                break
            found.update(NEEDLE.findall(piece))
            place += step

def in_memory():
    seen, found = set(), set()
    anchors = {{id(one) // STEP for one in gc.get_objects()}}
    anchors |= {{id(value) // STEP for one in gc.get_objects() if type(one) is dict for value in one.values()}}
    libc.sbrk.restype = ctypes.c_void_p
    anchors |= {{(libc.sbrk(0) - 1) // STEP, ctypes.addressof(ctypes.create_string_buffer(1 << 18)) // STEP}}
    anchors.add(ctypes.cast(libc.environ, ctypes.c_void_p).value // STEP)
    for anchor in sorted(anchors):
        searched(anchor * STEP, seen, found)
    return found, len(seen) * STEP

def in_objects():
    texts = []
    for one in gc.get_objects():
        if type(one) is dict:
            texts += one.values()
        elif type(one) in (list, tuple, set, frozenset):
            texts += one
    frame = sys._getframe()
    while frame:
        texts += [*frame.f_locals.values(), *frame.f_globals.values(), *frame.f_code.co_consts]
        frame = frame.f_back
    texts += [line for entry in linecache.cache.values() if len(entry) > 2 for line in entry[2]]
    texts += [*os.environ.values(), *sys.argv, *sys.orig_argv]
    texts = [one.encode("utf-8", "replace") if type(one) is str else one for one in texts]
    return {{digits for text in texts if type(text) is bytes for digits in NEEDLE.findall(text)}}

def f(x):
    global result
    if result is None:
        result = in_memory()
    found, size = result
    return sorted(digits.decode() for digits in found | in_objects()) if size > 1 << 22 else ["nothing searched"]

result = None
"""
SEARCH_CHECKS = f"MARK = '{IN_CHECKS}'\n{NOTHING}"
