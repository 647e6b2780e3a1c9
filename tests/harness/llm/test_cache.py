"""One cache file a machine: shared by many processes at once, kept through kills, told of when damaged or full."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UserError
from harness.files import ROOT
from harness.llm.database import Cache
from harness.runner import layout

PROCESS = """
import hashlib, sys
from pathlib import Path
from harness.llm.database import Cache

path, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
with Cache(path) as cache:
    for number in range(count):
        for text in (f"{name} {number}", f"all {number}"):
            key = hashlib.sha256(text.encode()).digest()
            cache.get("embeddings", key)
            cache.put("embeddings", key, text.encode() * 100)
            assert cache.get("embeddings", key) == text.encode() * 100
            print(key.hex(), flush=True)
"""


def test_what_is_put_is_found_after_reopening_in_its_table_alone(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "cache.sqlite"
    with Cache(path) as cache:
        assert not path.parent.exists()
        assert cache.get("verdicts", b"key") is None
        cache.put("verdicts", b"key", b"one")
        cache.put("verdicts", b"key", b"other")
    with Cache(path) as cache:
        assert cache.get("verdicts", b"key") == b"other"
        assert cache.get("embeddings", b"key") is None
    assert [file.name for file in path.parent.iterdir()] == ["cache.sqlite"]


@pytest.mark.parametrize("processes", [8, pytest.param(100, marks=pytest.mark.nightly)])
def test_many_processes_share_a_new_file_without_an_error(tmp_path: Path, processes: int) -> None:
    path, pipes = tmp_path / "cache.sqlite", {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    commands = ([sys.executable, "-c", PROCESS, str(path), str(number), "25"] for number in range(processes))
    started: list[Any] = [subprocess.Popen(command, cwd=ROOT, **pipes) for command in commands]  # type: ignore[call-overload]
    for process in started:
        assert process.stdout.readline() == "ready\n"
    for process in started:
        process.stdin.write("go\n")
        process.stdin.flush()
    written = [process.communicate()[0] for process in started]
    assert [process.returncode for process in started] == [0] * processes
    with Cache(path) as cache:
        assert all(cache.get("embeddings", bytes.fromhex(key)) for keys in written for key in keys.split())


def test_a_damaged_file_is_one_line_with_the_cure(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    path.write_bytes(b"no database" * 1000)
    with Cache(path) as cache, pytest.raises(UserError, match=r"cache\.sqlite is damaged .*delete it"):
        cache.get("embeddings", b"key")


def test_a_full_disk_is_one_line_and_leaves_what_was_there(tmp_path: Path) -> None:
    with Cache(tmp_path / "cache.sqlite") as cache:
        assert cache.get("embeddings", b"before") is None
        cache.put("embeddings", b"before", b"1")
        (pages,) = cache._database.execute("PRAGMA page_count").fetchone()
        cache._database.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(UserError, match=r"cannot write .*cache\.sqlite: database or disk is full; free space"):
            cache.put("embeddings", b"during", b"x" * 100_000)
        assert cache.get("embeddings", b"before") == b"1"


def test_the_folder_of_the_cache_can_be_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "node7")
    assert layout.cache() == Path("results/cache/node7.sqlite")
    monkeypatch.setenv("GMR_CACHE_DIR", str(tmp_path))
    assert layout.cache() == tmp_path / "node7.sqlite"


def test_a_write_beside_a_read_is_not_refused_while_another_process_writes(tmp_path: Path) -> None:
    def write(into: Cache) -> None:
        for number in range(500):
            into.put("embeddings", f"{id(into)} {number}".encode(), b"x")

    def read() -> None:
        for _ in range(5_000):
            assert cache.get("embeddings", b"key") is not None

    path, interval = tmp_path / "cache.sqlite", sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with Cache(path) as cache, Cache(path) as other, ThreadPoolExecutor(3) as threads:
            for one in (cache, other):
                assert one.get("embeddings", b"key") is None
            cache.put("embeddings", b"key", b"x" * 5000)
            work = [threads.submit(write, cache), threads.submit(write, other), threads.submit(read)]
            for done in work:
                done.result()
    finally:
        sys.setswitchinterval(interval)
