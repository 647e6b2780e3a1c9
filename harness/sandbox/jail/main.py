"""The first process of a worker: fork the fork server, then become the grader."""

from __future__ import annotations

import json
import marshal
import os
import socket
import sys

from . import fork_server
from .confinement import Policy
from .protocol import LONGEST_JOB, Channel

# Likely imports of programs and checks. Not random, which would draw a new seed in every child.
_LIKELY_IMPORTS = "bisect collections copy functools heapq itertools json math operator re string typing"


def main() -> None:
    """Run a worker until the connection at standard input ends; the last argument is its policy as JSON."""
    parent = Channel(0)
    try:
        policy = Policy(**json.loads(sys.argv[2]))
        for name in _LIKELY_IMPORTS.split():
            __import__(name)
        control, servers_end = socket.socketpair()
        # Forked before a job arrives, so that no checks are ever in the memory of a program.
        server = os.fork()
        if server == 0:
            fork_server.run(policy, servers_end)
        servers_end.close()
        # Imported after the fork: with less memory, the fork server forks faster.
        from .grader import Grader

        grader = Grader(policy, control)
        while True:
            # Jobs come from the process that started this one.
            parent.send(marshal.dumps(grader.run(marshal.loads(parent.receive(LONGEST_JOB)))))  # noqa: S302
    except EOFError as error:
        os.write(2, str(error).encode())
        control.close()
        os.waitpid(server, 0)
    except BaseException as error:
        parent.send(marshal.dumps({"failure": f"{type(error).__name__}: {error}"}))
    os._exit(0)
