"""What ``gmr sandbox`` prints: how a program ended, and what this machine offers."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import NamedTuple

import orjson

from harness.sandbox import Execution, Limits, Outcome
from harness.sandbox.jail.confinement import BUBBLEWRAP, FULL, NO_NAMESPACES, RLIMIT
from harness.sandbox.machine import Hindrance, Machine, Speed, is_fit
from harness.sandbox.orders import CHECKS_USER, PROGRAM_USER

_INDENT, _WIDTH = 19, 100
_NAMESPACES = (
    "every file but the standard library's, even the sight of others; network; new processes; other processes",
    "faults of the kernel; how busy the processor is",
)
# By level: what it holds back, and what it does not.
_WORTH = {
    FULL: _NAMESPACES,
    BUBBLEWRAP: _NAMESPACES,
    NO_NAMESPACES: (
        "the content of every file but the standard library's; network; new processes; signals to other processes",
        "whether a file or process exists that it names, and its size; faults of the kernel; how busy the processor is",
    ),
    RLIMIT: (
        "use of processor, memory, disk and output beyond the limits",
        "anything else that its user may do: read files, use the network, signal that user's processes",
    ),
}
_REMEDIES = {
    Hindrance.NOT_BUILT: "a kernel with user namespaces (CONFIG_USER_NS), as all large distributions have",
    Hindrance.NONE_ALLOWED: "as root: sysctl user.max_user_namespaces=10000",
    Hindrance.ROOT_ONLY: "as root: sysctl kernel.unprivileged_userns_clone=1",
    Hindrance.APPARMOR: "as root: sysctl kernel.apparmor_restrict_unprivileged_userns=0, or bubblewrap together with "
    "the distribution's AppArmor profile for it",
    Hindrance.FILTERED: "a container whose filter lets namespaces pass: with Docker and Podman --security-opt "
    "seccomp=unconfined, with Docker --security-opt apparmor=unconfined too",
}
_EXCEPTIONS = re.compile(r"\A(?:\w+Error: )+(?:\[Errno \d+\] )?")


class Findings(NamedTuple):
    """What was found out about a machine.

    Attributes:
        system: Operating system, release, architecture.
        machine: What its files tell.
        user: Effective user id.
        landlock: Version of the file rules, if any.
        bubblewrap: Where it is, if anywhere.
        tried: How the trial of each level ended.
        best: The first that works, if any.
        speed: Of that one.
    """

    system: str
    machine: Machine
    user: int
    landlock: int | None
    bubblewrap: str | None
    tried: Mapping[str, Execution]
    best: str | None
    speed: Speed | None


def to_json(execution: Execution, level: str, limits: Limits) -> str:
    """An execution for a script: one document."""
    told = asdict(execution)
    # Nothing was asked to be shown.
    told.pop("shown")
    document = {**told, "level": level, "limits": asdict(limits)}
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()


def outcome(execution: Execution, level: str) -> str:
    """An execution for the eyes of a person; what the program wrote cannot steer the terminal."""
    lines = [f"outcome   {execution.outcome}"]
    if execution.detail:
        lines.append(f"detail    {_visible(execution.detail)}")
    if execution.assertions:
        lines.append(f"held      {execution.assertions} assertions of the checks")
    if execution.first is not None:
        lines.append(f"at first  {execution.first}; executed once more, and that counts")
    lines.append(f"level     {level}")
    if execution.stdout:
        lines += ["output", *(f"  {_visible(line)}" for line in execution.stdout.splitlines())]
    return "\n".join(lines)


def diagnosis(found: Findings) -> str:
    """What a machine offers, level by level, and what would give a better one."""
    lines = ["This machine", *_machine(found), "", "Levels, the strongest first"]
    lines += [line for level in found.tried for line in _level(level, found.tried[level])]
    lines += ["", *(line for sentence in _conclusion(found) for line in textwrap.wrap(sentence, _WIDTH))]
    remedies = [_item("  - ", remedy) for remedy in _remedies(found)]
    if remedies:
        lines += ["", "For a better level", *remedies]
    return "\n".join(lines)


def _machine(found: Findings) -> Iterator[str]:
    machine = found.machine
    yield _row("system", found.system)
    if machine.container:
        yield _row("container", f"yes ({machine.container})")
    yield _row("user", _user(found))
    yield _row("user namespaces", _namespaces(found))
    yield _row("Landlock", "none" if found.landlock is None else f"version {found.landlock}")
    yield _row("seccomp", "yes" if machine.filters else "none")
    yield _row("bubblewrap", found.bubblewrap or "not installed")
    if machine.cgroup is not None:
        memory = "no limit of memory" if machine.memory_mib is None else f"{machine.memory_mib} MiB of memory"
        processes = "no limit of processes" if machine.processes is None else f"{machine.processes} processes"
        yield _row("control group", f"version {machine.cgroup}, {memory}, {processes}")


def _user(found: Findings) -> str:
    if found.user != 0:
        return f"{found.user}; programs run as the same user"
    if found.machine.missing_rights:
        return f"root, but without {', '.join(found.machine.missing_rights)}"
    if found.machine.is_alone:
        return f"root of a user namespace without the users {PROGRAM_USER} and {CHECKS_USER}"
    return f"root; programs run as user {PROGRAM_USER}, checks as user {CHECKS_USER}"


def _namespaces(found: Findings) -> str:
    if _works(found, FULL):
        return "open"
    return "; ".join(found.machine.hindrances) or "no setting closes them"


def _level(level: str, execution: Execution) -> Iterator[str]:
    held, not_held = _WORTH[level]
    works = execution.outcome is Outcome.PASSED
    reason = _visible(_EXCEPTIONS.sub("", execution.detail)) or execution.outcome
    yield _row(level, "works" if works else f"does not work: {reason}")
    if works:
        yield _row("  holds back", held)
        yield _row("  but not", not_held)


def _conclusion(found: Findings) -> Iterator[str]:
    if found.best is None or found.speed is None:
        yield "No program can be executed here, so no preset can be run."
        return
    if is_fit(found.best):
        yield f"Programs run at level {found.best}: fit for those of real models."
    else:
        yield (
            f"Programs run at level {found.best}: presets with simulated backbones work. Presets with real models need "
            f"one of {', '.join(level for level in found.tried if is_fit(level))}."
        )
    start, program = found.speed.start_s, found.speed.program_s
    yield f"A worker starts in {start:.2f} s; an honest program and its check take {program:.4f} s."


def _remedies(found: Findings) -> Iterator[str]:
    """What to do, the likeliest first; nothing where the best level works."""
    machine = found.machine
    if _works(found, FULL):
        return
    if not machine.kernel:
        yield "run the suite in a Linux virtual machine or container, and ask again there"
        return
    if machine.missing_rights:
        yield "run the suite as an ordinary user (in a container --user 1000), or give root back the rights it lacks"
    if machine.is_alone:
        yield "run the suite as an ordinary user, or in a user namespace of more users (subordinate ids, /etc/subuid)"
    if found.landlock is None:
        hidden = ", and a container engine whose filter knows it" if machine.container else ""
        yield f"a kernel of 5.13 or later with landlock in its boot parameter lsm={hidden}"
    if not machine.filters:
        yield "a kernel with system call filters (CONFIG_SECCOMP_FILTER)"
    for hindrance in machine.hindrances:
        yield _REMEDIES[hindrance]
    if found.bubblewrap is None:
        yield "bubblewrap (apt-get install bubblewrap), which may have rights that we lack"
    yield "the suite in a virtual machine of its own"


def _works(found: Findings, level: str) -> bool:
    return found.tried[level].outcome is Outcome.PASSED


def _row(label: str, text: str) -> str:
    return _item(f"  {label:<{_INDENT - 2}}", text)


def _item(head: str, text: str) -> str:
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _visible(text: str) -> str:
    """The text with every character that a terminal might obey written out."""
    return "".join(one if one.isprintable() or one == "\t" else one.encode("unicode_escape").decode() for one in text)
