"""Entries of the processes of a worker: the one of the checks, and the nursery where another program starts it."""

from __future__ import annotations

import contextlib
import marshal
import os
import socket
import sys
import warnings

from . import linux, nursery
from .channel import LONGEST_ORDER, Channel, Dismissed
from .confinement import BUBBLEWRAP, FULL, confine_checks, file_rules, isolate, keep_only
from .policy import Policy
from .preload import preload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from .grader import Grader

# Values of programs are decoded there.
_MEMORY_OF_CHECKS = 2 << 30


def main() -> None:
    """Takes a policy, then one order after the other; ends with the connection, without a slow farewell."""
    parent = Channel(0)
    try:
        # The other end is the process that started this one.
        policy, boot = marshal.loads(parent.receive())  # noqa: S302
        with contextlib.closing(_confined_grader(Policy(**policy), boot)) as grader:
            parent.send(marshal.dumps({}))
            while True:
                parent.send(marshal.dumps(grader.grade(marshal.loads(parent.receive(LONGEST_ORDER)))))  # noqa: S302
    except (EOFError, Dismissed):
        pass
    except BaseException as error:
        parent.send(marshal.dumps({"failure": f"{type(error).__name__}: {error}"}))
    os._exit(0)


def serve_nursery() -> None:
    """Takes the descriptor of the control connection and the policy from the command line."""
    descriptor, policy = sys.argv[-2:]
    told = marshal.loads(bytes.fromhex(policy))  # noqa: S302  our own process
    nursery.main(Policy(**told), socket.socket(fileno=int(descriptor)), None)


def _confined_grader(policy: Policy, boot: list[str]) -> Grader:
    """Starts the nursery, then gives up what the checks do not need.

    Raises:
        OSError: The machine does not allow it.
    """
    if policy.processor is not None:
        # Where it has been taken away meanwhile, any other will do.
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {policy.processor})
    control, theirs = socket.socketpair()
    me = os.getpid()
    # Before anything else: nothing that arrives here later is ever in the memory of a program.
    nursery_process = os.fork()
    if nursery_process == 0:
        _become_nursery(policy, theirs, boot, me)
    theirs.close()
    # Not earlier either: the less a process holds, the sooner it is copied.
    from .grader import Grader

    preload()
    # Nobody reads what the compiler thinks of somebody's checks, and a full pipe would stop everything.
    warnings.simplefilter("ignore")
    rules, _ = file_rules(policy, None)
    limits = {"memory_bytes": max(policy.limits["memory_bytes"], _MEMORY_OF_CHECKS), "file_bytes": 0}
    started = marshal.loads(Channel(control.fileno()).receive())  # noqa: S302  our own process
    if "failure" in started:
        raise OSError(started["failure"])
    confine_checks(policy, rules, limits)
    return Grader(policy, control, nursery_process)


def _become_nursery(policy: Policy, control: socket.socket, boot: list[str], parent: int) -> NoReturn:
    """Goes on as the nursery: in this process, in a child of it, or in what another program starts."""
    try:
        for number in range(2):
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
        keep_only([control.fileno()])
        if policy.level == BUBBLEWRAP:
            control.set_inheritable(True)
            command = [*policy.shell, *boot, str(control.fileno()), marshal.dumps(vars(policy)).hex()]
            os.execv(command[0], command)  # noqa: S606  the program that was asked for
        if policy.level == FULL:
            _cross_over(policy, parent)
            parent = 0
    except BaseException as error:
        Channel(control.fileno()).send(marshal.dumps({"failure": f"{type(error).__name__}: {error}"}))
        os._exit(1)
    nursery.main(policy, control, parent)


def _cross_over(policy: Policy, parent: int) -> None:
    """Goes on as the first process of new namespaces: with it, everything in there ends."""
    isolate(policy)
    linux.die_with_parent(parent)
    first = os.fork()
    if first != 0:
        os.waitpid(first, 0)
        os._exit(0)
