"""One cache file a machine: shared by many processes at once, kept through kills, told of when damaged or full."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from harness.database import Cache
from harness.errors import UserError
from harness.runner import layout


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


def test_many_connections_share_a_new_file_without_an_error(tmp_path: Path) -> None:
    start = Barrier(8)

    def work(name: int) -> None:
        with Cache(tmp_path / "cache.sqlite") as cache:
            start.wait()
            for number in range(25):
                for text in (f"{name} {number}", f"all {number}"):
                    key = text.encode()
                    cache.get("embeddings", key)
                    cache.put("embeddings", key, key * 100)
                    assert cache.get("embeddings", key) == key * 100

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))


def test_a_damaged_file_is_one_line_with_the_cure(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    path.write_bytes(b"no database" * 1000)
    with Cache(path) as cache, pytest.raises(UserError, match=r"cache\.sqlite is damaged .*delete it"):
        cache.get("embeddings", b"key")


def test_the_folder_of_the_cache_can_be_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "node7")
    assert layout.cache() == Path("results/cache/node7.sqlite")
    monkeypatch.setenv("GMR_CACHE_DIR", str(tmp_path))
    assert layout.cache() == tmp_path / "node7.sqlite"
