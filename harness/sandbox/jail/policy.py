"""What a worker is told once, before any program: how programs are confined."""

from __future__ import annotations


class Policy:
    """One level of confinement on this machine (a plain class: ``dataclasses`` is slow to import).

    Attributes:
        level: One of the names in :mod:`harness.sandbox.levels`.
        program_user: The user a program runs as, ``None`` to stay the present one.
        checks_user: The same for its checks; another one, so that neither can touch the other.
        limits: Hard limits of a program by name as in :mod:`.rlimits`.
        wall_s: Seconds it may live.
        output_bytes: How much of what it prints is kept.
        box: The work directory of programs.
        box_entries: Files and directories it may hold.
        box_bytes: Disk space it may take.
        prefix: Installation prefix of the interpreter.
        stdlib: ``sys.path`` of the bare interpreter.
        mounts: Directories a private root shows.
        readable: Paths that may be read, each with its kind as in :mod:`.landlock`.
        processor: The one that all processes of the worker share, ``None`` for any.
        shell: Command line that starts a process in namespaces made by another program; empty where ours are used.
    """

    def __init__(
        self,
        *,
        level: str,
        program_user: int | None,
        checks_user: int | None,
        limits: dict[str, int],
        wall_s: float,
        output_bytes: int,
        box: str,
        box_entries: int,
        box_bytes: int,
        prefix: str,
        stdlib: list[str],
        mounts: list[str],
        readable: list[tuple[str, str]],
        processor: int | None,
        shell: list[str],
    ) -> None:
        self.level = level
        self.program_user = program_user
        self.checks_user = checks_user
        self.limits = limits
        self.wall_s = wall_s
        self.output_bytes = output_bytes
        self.box = box
        self.box_entries = box_entries
        self.box_bytes = box_bytes
        self.prefix = prefix
        self.stdlib = stdlib
        self.mounts = mounts
        self.readable = readable
        self.processor = processor
        self.shell = shell
