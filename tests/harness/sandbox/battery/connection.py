"""Programs that know how they are asked: they find the connection to the checks and use it themselves."""

from __future__ import annotations

from tests.harness.sandbox.battery.entry import (
    BUSY,
    CONNECTION,
    CPU,
    KILLED,
    MEMORY,
    OUTPUT,
    RAISED,
    UNREADABLE,
    WAITING,
    WALL,
    WRONG,
    WRONG_PROGRAM,
    Entry,
)

THEME = "the connection to the checks"

_ENDS = (WRONG, RAISED)


def _at_once(*lines: str) -> str:
    """Speaks before it is asked anything, then answers wrongly."""
    return "\n".join((CONNECTION, *lines, WRONG_PROGRAM))


def _in_the_call(*lines: str) -> str:
    """Speaks while the checks wait for an answer, then answers wrongly."""
    return "\n".join((CONNECTION, "def f(x):", *(f"    {line}" for line in lines), "    return 41", ""))


def _says(value: str) -> str:
    return _in_the_call(f"say(framed({value}))")


def _first(names: str, shown: str) -> str:
    """Says itself which names the program has."""
    return _at_once(f'reply("value", [{names}, {shown}])', f'reply("value", {{"tuple": [{names}, {shown}]}})')


# Whatever they stand for, the program has no say in them.
_OWN_NAMES = "[[n, True] for n in ('AssertionError', '__builtins__', '@passed', '__name__', 'f', '')]"
_SERVING = """
import threading
def serve():
    for descriptor in connections():
        while head := os.read(descriptor, 4):
            os.read(descriptor, int.from_bytes(head, "little"))
            os.write(descriptor, framed(b'["value",true]'))
for _ in range(2):
    threading.Thread(target=serve, daemon=True).start()
"""
_OWN_OBJECT = """
class Own:
    def __str__(self):
        return self
def ask(kind):
    for number in range(100):
        reply("value", {"object": [number, kind]})
ask("int")
"""
_KEYS = "b'{\"set\":[' + b','.join(b'%d' % (k * (2 ** 61 - 1)) for k in range(60_000)) + b']}'"
_MODULES = """
import builtins, io, json, marshal, os, socket, struct, sys
class Success:
    def __init__(self, *arguments, **keywords): pass
    def __getattr__(self, name): return Success()
    def __call__(self, *arguments, **keywords): return b'["passed", "", 1, null]'
for module in (json, marshal, os, socket, struct, json.encoder, json.decoder, io):
    for name in list(vars(module)):
        if not name.startswith("__"):
            setattr(module, name, Success())
"""
_ENCODER = """
import json.encoder, types
def lie(*arguments, **keywords):
    return '["value", true]'
for name in ("encode", "iterencode", "default"):
    setattr(json.encoder.JSONEncoder, name, lie)
json.dumps = lie
"""
_LOOP = """
import gc
for found in gc.get_objects():
    if isinstance(found, dict) and "call" in found and "truth" in found:
        for name in list(found):
            found[name] = lambda *operands: True
"""
_TEXT = """
import gc
for found in gc.get_objects():
    if isinstance(found, dict) and found.get("text") is str:
        found["text"] = lambda operand: operand
"""
_CODE = """
import gc, types
def changed(*arguments, **keywords):
    return b'["value", true]'
for found in gc.get_objects():
    if isinstance(found, types.FunctionType) and found.__name__ in {"pack", "reply", "_failure", "start"}:
        try:
            found.__code__ = changed.__code__
        except ValueError:
            pass
"""
_NO_BUILTINS = "import builtins\n" + WRONG_PROGRAM + "builtins.__dict__.clear()"
_TRACE = """
import sys, threading
def trace(frame, event, argument):
    for name in list(frame.f_locals):
        if isinstance(frame.f_locals[name], (bytes, str)):
            frame.f_locals[name] = b'["value", true]'
    return trace
sys.settrace(trace)
sys.setprofile(lambda *arguments: None)
frame = sys._getframe()
while frame:
    frame.f_trace = trace
    frame = frame.f_back
"""
_AUDIT = """
import sys
def refuse(event, arguments):
    raise SystemExit(0)
def f(x):
    sys.addaudithook(refuse)
    return 41
"""

PROGRAMS = (
    Entry("replies before the question", _at_once('for _ in range(100):\n    reply("value", True)'), _ENDS),
    Entry("reports before the question", _at_once('reply("passed", "", 1, None)\nreply("passed")'), _ENDS),
    Entry("first reply: no names", _first("{'dict': []}", "None"), (RAISED,)),
    Entry("first reply: nothing", _at_once('reply("value", None)'), _ENDS),
    Entry("first reply: an object instead of names", _first("{'object': [0, 'x']}", "''"), _ENDS),
    Entry("first reply: an object as what is shown", _first("{'dict': [['f', 1]]}", "{'object': [0, 'x']}"), _ENDS),
    Entry("first reply: a number as what is shown", _first("{'dict': [['f', 1]]}", "{'int': '0x' + 'f' * 99}"), _ENDS),
    Entry("first reply: names of the checks' own", _first(f"{{'dict': {_OWN_NAMES}}}", "''"), _ENDS),
    Entry("reports in the call", _in_the_call('reply("passed", "", 1, None)'), _ENDS),
    Entry("bytes that are no message", _in_the_call("say(bytes(range(256)) * 64)"), (RAISED, OUTPUT)),
    Entry("a message longer than allowed", _in_the_call('say((1 << 31).to_bytes(4, "little") + b"x")'), (OUTPUT,)),
    Entry("nesting without an end", _says('b"[" * 1_000_000'), (RAISED,)),
    Entry("nested references", _says("b'{\"tuple\":[' * 100_000 + b'1' + b']}' * 100_000"), (RAISED,)),
    Entry("a number of five million digits", _says("b'[\"value\",' + b'9' * 5_000_000 + b']'"), (RAISED,)),
    Entry("text that is no UTF-8", _says('b\'["value","\\xff\\xfe"]\''), (RAISED,)),
    Entry("a hundred thousand empty messages", _in_the_call("say(bytes(400_000))"), (RAISED,)),
    Entry(
        "half a message, then silence",
        _in_the_call('say(b"\\xff\\0\\0\\0[")', "while True: time.sleep(9)").replace(
            "import json", "import time, json"
        ),
        (WALL,),
        limits=WAITING,
        lasts=True,
    ),
    Entry(
        "connection closed, then silence",
        _in_the_call("os.closerange(3, 1024)", "time.sleep(60)").replace("import json", "import time, json"),
        (RAISED, WALL),
        limits=WAITING,
        lasts=True,
    ),
    Entry(
        "connection closed, then busy",
        _in_the_call("os.closerange(3, 1024)", "while True: pass"),
        (RAISED, CPU),
        limits=BUSY,
        lasts=True,
    ),
    Entry(
        "connection shut down",
        _in_the_call(
            "import socket",
            "for d in connections():",
            "    try: socket.socket(fileno=d).shutdown(2)",
            "    except OSError: pass",
        ),
        (RAISED,),
    ),
    Entry("connection made impatient", _in_the_call("for d in connections(): os.set_blocking(d, False)"), _ENDS),
    Entry("threads that reply", f"{CONNECTION}{_SERVING}{WRONG_PROGRAM}", (WRONG, RAISED, WALL), limits=WAITING),
    Entry(
        "threads that reply, asked for truth",
        f"{CONNECTION}{_SERVING}{WRONG_PROGRAM}",
        (WRONG, RAISED, WALL),
        checks="assert f(20) is f and f(21) == 44",
        limits=WAITING,
        right="",
    ),
    Entry("objects nobody has", f"{CONNECTION}{_OWN_OBJECT}{WRONG_PROGRAM}", _ENDS),
    Entry(
        "text that is an object again",
        f"class A: pass\ndef f(x):\n    return A()\n{_TEXT}",
        _ENDS,
        checks="assert str(f(20)) == '42'",
        right="def f(x):\n    return '42'",
    ),
    Entry(
        "replies until nobody reads them",
        _in_the_call("while True: reply('value', {'object': [0, 'x']})"),
        (WRONG,),
    ),
    Entry(
        "a small message that unfolds",
        _says('b\'["value",{"set":{"range":["0x0","0xffffffffffff","0x1"]}}]\''),
        (RAISED,),
    ),
    Entry(
        "keys of one hash, unfolded by the checks",
        _says(f"b'[\"value\",' + {_KEYS} + b']'"),
        (CPU,),
        limits=BUSY,
        lasts=True,
    ),
    Entry(
        "claim: does not compile",
        _in_the_call('reply("unreadable", "SyntaxError", "x" * 1_000_000, "")'),
        (UNREADABLE,),
    ),
    Entry("claim: no memory", _in_the_call('reply("raised", "MemoryError", "\\ud800\\n\\0", "")'), (MEMORY,)),
    Entry("claim: the checks failed", _in_the_call('reply("raised", "AssertionError", "", "checks")'), (RAISED,)),
    Entry("claim: an end of the process", _in_the_call('reply("raised", "SystemExit", "0", "checks")'), (RAISED,)),
    Entry(
        "claim: an end of the loop",
        _in_the_call('reply("ended", "StopIteration", "", "")'),
        (RAISED,),
        checks="assert all(map(f, [20]))",
        right="def f(x):\n    return True",
    ),
    Entry(
        "claim: a class that exits",
        _in_the_call('reply("value", {"type": "SystemExit"})', 'reply("value", {"type": "quit"})'),
        _ENDS,
    ),
    Entry("claim: a type that is none", _says('b\'["value",{"type":"__import__"}]\''), (RAISED,)),
    Entry("claim: a fraction of nothing", _says('b\'["value",{"fractions.Fraction":[1,0]}]\''), (RAISED,)),
    Entry("claim: a number that signals", _says('b\'["value",{"decimal.Decimal":["sNaN"]}]\''), _ENDS),
    Entry("other functions in the library", f"{_MODULES}{WRONG_PROGRAM}", (WRONG, RAISED, KILLED)),
    Entry("another encoder", f"{_ENCODER}{WRONG_PROGRAM}", _ENDS),
    Entry("other operations", f"{WRONG_PROGRAM}{_LOOP}", _ENDS),
    Entry("other code in the loop", f"{WRONG_PROGRAM}{_CODE}", (WRONG, RAISED, WALL), limits=WAITING),
    Entry("no built-ins at all", _NO_BUILTINS, (WRONG, RAISED, KILLED)),
    Entry("traced frames", f"{WRONG_PROGRAM}{_TRACE}", (WRONG, RAISED)),
    Entry("an audit that exits", _AUDIT, (WRONG, RAISED)),
)
