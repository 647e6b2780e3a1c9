"""The attempt log: what is noted, and that it can be gone on with."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import orjson
import pytest

from harness.errors import UserError
from harness.llm.attempts import AttemptLog


async def test_every_attempt_is_noted_at_once_with_its_error(tmp_path: Path) -> None:
    before = time.time()
    for _ in range(2):
        log = AttemptLog(tmp_path / "attempts.jsonl")
        with log.measure("key", "url"):
            await asyncio.sleep(0.02)
        with pytest.raises(ValueError, match="worse"), log.measure("key", "url"):
            raise ValueError("worse")
        first, second = [orjson.loads(line) for line in log.path.read_bytes().splitlines()][-2:]
        assert (first["key"], first["endpoint"], first["error"]) == ("key", "url", None)
        assert first["latency_s"] >= 0.02
        assert before <= first["started"] <= time.time()
        assert second["error"] == "ValueError: worse"
        assert log.failed == 1
        log.close()
    assert log.path.read_bytes().count(b"\n") == 4


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "attempts.jsonl").symlink_to("/dev/full")
    log = AttemptLog(tmp_path / "attempts.jsonl")
    with pytest.raises(UserError, match=r"cannot write .*No space left"), log.measure("key", "url"):
        pass
