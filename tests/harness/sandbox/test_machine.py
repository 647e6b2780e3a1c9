"""What the files of a machine tell about it, on machines made for the purpose."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.sandbox import Execution, Outcome, Program
from harness.sandbox.levels import LEVELS, probe
from harness.sandbox.machine import Hindrance, bubblewrap, is_fit, measure, read
from harness.sandbox.worker import Worker

ALL_RIGHTS = "000001ffffffffff"
STATUS = (
    "Name:\tpython\nUid:\t{user}\t{user}\t{user}\t{user}\nCapEff:\t{rights}\nNoNewPrivs:\t0\nSeccomp:\t{filtered}\n"
)


def machine(root: Path, user: int = 1000, rights: str = "0000000000000000", filtered: int = 0, **files: str) -> Path:
    """A machine that hinders nothing; ``files`` by path, with two underscores for a slash."""
    usual = {
        "proc__self__status": STATUS.format(user=user, rights=rights, filtered=filtered),
        "proc__self__uid_map": "         0          0 4294967295\n",
        "proc__self__ns__user": "",
        "proc__self__cgroup": "0::/user/session\n",
        "proc__sys__kernel__osrelease": "6.1.0-13-amd64\n",
        "proc__sys__kernel__seccomp__actions_avail": "kill_process errno allow\n",
        "proc__sys__user__max_user_namespaces": "63000\n",
        "sys__fs__cgroup__cgroup.controllers": "cpu memory pids\n",
    }
    for name, content in {**usual, **files}.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def test_an_ordinary_machine(tmp_path: Path) -> None:
    found = read(machine(tmp_path))
    assert (found.kernel, found.container, found.filters, found.cgroup) == ("6.1.0-13-amd64", "", True, 2)
    assert (found.missing_rights, found.is_alone, found.hindrances) == ((), False, ())
    assert (found.memory_mib, found.processes) == (None, None)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("proc__sys__user__max_user_namespaces", "0\n", Hindrance.NONE_ALLOWED),
        ("proc__sys__kernel__unprivileged_userns_clone", "0\n", Hindrance.ROOT_ONLY),
        ("proc__sys__kernel__apparmor_restrict_unprivileged_userns", "1\n", Hindrance.APPARMOR),
        ("proc__self__status", STATUS.format(user=1000, rights="0", filtered=2), Hindrance.FILTERED),
    ],
)
def test_each_setting_that_closes_namespaces_is_found(
    name: str, content: str, expected: Hindrance, tmp_path: Path
) -> None:
    assert read(machine(tmp_path, **{name: content})).hindrances == (expected,)


def test_settings_that_close_nothing_are_none(tmp_path: Path) -> None:
    settings = {
        "proc__sys__kernel__unprivileged_userns_clone": "1\n",
        "proc__sys__kernel__apparmor_restrict_unprivileged_userns": "0\n",
    }
    assert read(machine(tmp_path, **settings)).hindrances == ()


def test_a_kernel_without_user_namespaces(tmp_path: Path) -> None:
    machine(tmp_path)
    (tmp_path / "proc/self/ns/user").unlink()
    (tmp_path / "proc/sys/kernel/seccomp/actions_avail").unlink()
    found = read(tmp_path)
    assert (found.hindrances, found.filters) == ((Hindrance.NOT_BUILT,), False)


@pytest.mark.parametrize(
    ("user", "rights", "expected"),
    [
        (0, ALL_RIGHTS, ()),
        (0, "0000000000000000", ("CAP_CHOWN", "CAP_KILL", "CAP_SETGID", "CAP_SETUID")),
        # What Docker leaves to root unless told otherwise.
        (0, "00000000a80425fb", ()),
        (0, "00000000a804257b", ("CAP_SETUID",)),
        (1000, "0000000000000000", ()),
    ],
)
def test_rights_that_root_lacks(user: int, rights: str, expected: tuple[str, ...], tmp_path: Path) -> None:
    assert read(machine(tmp_path, user, rights)).missing_rights == expected


@pytest.mark.parametrize(
    ("user", "mapping", "expected"),
    [
        (0, "0 1000 1\n", True),
        (0, "0 1000 1\n1 100000 65536\n", False),
        (0, "0 1000 1\n1 100000 65533\n", True),
        (1000, "1000 1000 1\n", False),
    ],
)
def test_root_without_other_users(user: int, mapping: str, expected: bool, tmp_path: Path) -> None:
    found = read(machine(tmp_path, user, ALL_RIGHTS, proc__self__uid_map=mapping))
    assert found.is_alone is expected


@pytest.mark.parametrize("mark", [".dockerenv", "run/.containerenv", "run/systemd/container"])
def test_a_container_is_known_by_its_mark(mark: str, tmp_path: Path) -> None:
    assert read(machine(tmp_path, **{mark.replace("/", "__"): ""})).container == f"/{mark}"


def test_the_lowest_limit_of_the_group_and_those_above_counts(tmp_path: Path) -> None:
    limits = {
        "sys__fs__cgroup__user__session__memory.max": "max\n",
        "sys__fs__cgroup__user__memory.max": f"{3 << 30}\n",
        "sys__fs__cgroup__user__session__pids.max": "90\n",
        "sys__fs__cgroup__user__pids.max": "400\n",
    }
    found = read(machine(tmp_path, **limits))
    assert (found.cgroup, found.memory_mib, found.processes) == (2, 3072, 90)


@pytest.mark.parametrize(("stated", "expected"), [(512 << 20, 512), (9223372036854771712, None)])
def test_limits_of_groups_of_the_first_version(stated: int, expected: int | None, tmp_path: Path) -> None:
    limits = {
        "proc__self__cgroup": "4:memory:/job/7\n3:cpu,cpuacct:/\n8:pids:/\n1:name=systemd:/init\n",
        "sys__fs__cgroup__memory__job__7__memory.limit_in_bytes": f"{stated}\n",
        # What stands there without a limit.
        "sys__fs__cgroup__memory__memory.limit_in_bytes": "9223372036854771712\n",
        "sys__fs__cgroup__pids__pids.max": "max\n",
    }
    machine(tmp_path, **limits)
    (tmp_path / "sys/fs/cgroup/cgroup.controllers").unlink()
    found = read(tmp_path)
    assert (found.cgroup, found.memory_mib, found.processes) == (1, expected, None)


def test_a_machine_without_such_files_is_unknown_and_no_error(tmp_path: Path) -> None:
    found = read(tmp_path)
    assert (found.kernel, found.hindrances, found.missing_rights, found.cgroup) == ("", (), (), None)
    assert not found.is_alone


def test_this_machine_can_be_read() -> None:
    read()


def test_bubblewrap_is_found_on_the_path_with_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert bubblewrap() is None
    tool = tmp_path / "bwrap"
    tool.write_text("#!/bin/sh\necho bubblewrap 9.8.7\n")
    tool.chmod(0o755)
    assert bubblewrap() == f"{tool}, 9.8.7"


def test_the_weakest_level_alone_is_unfit_for_real_models() -> None:
    assert [is_fit(level) for level in LEVELS] == [True, True, True, False]


def test_the_measured_program_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    if probe("rlimit").outcome is not Outcome.PASSED:
        pytest.skip("no level at all works on this machine")
    outcomes = []
    ask = Worker.ask

    def noted(worker: Worker, program: Program) -> Execution:
        outcomes.append(ask(worker, program))
        return outcomes[-1]

    monkeypatch.setattr(Worker, "ask", noted)
    speed = measure("rlimit")
    assert {one.outcome for one in outcomes} == {Outcome.PASSED}
    assert min(speed.start_s, speed.program_s) > 0
