"""Logs of finished runs: what is in them, what they are known by, and what damage does."""

import hashlib
import logging
import os
import shutil
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import UserError
from harness.llm import log_frames
from harness.llm.call_log import CallLog
from harness.llm.log_index import Seal
from harness.llm.sealed_log import SealedLog
from tests.harness.llm.logged import answers, fill, keys, reply, request, sealed

FILES = ["calls.index", "calls.jsonl.zst", "calls.lock"]
TEXTS = [f"{number} " + "some words " * (number % 7) for number in range(40)]


@pytest.fixture
def small_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_frames, "_FRAME_SIZE", 1000)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def seal(path: Path, texts: list[str] | str) -> Seal:
    with CallLog(path) as log:
        return log.seal(keys(texts))


def answered(path: Path, found: Seal, texts: list[str] | str) -> list[str | None]:
    log = SealedLog(path, found)
    replies = [log.get(request(text).key) for text in texts]
    return [one and one.text for one in replies]


def frames(path: Path) -> list[bytes]:
    """The SHA-256 of the lines of each frame, as the frames that programs skip say."""
    content, at, found = path.read_bytes(), 0, []
    while True:
        magic, size = struct.unpack_from("<II", content, at)
        at += 8 + size
        if magic != 0x184D2A50:
            assert (magic, at) == (0x184D2A51, len(content))
            return found
        packed, _, sha256 = struct.unpack_from("<II32s", content, at - size)
        found.append(sha256)
        at += packed


@pytest.mark.usefixtures("small_frames")
def test_texts_come_by_their_sha256_and_calls_by_their_keys(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    fill(path, [*TEXTS, *TEXTS[:3]])
    found = seal(path, TEXTS)
    texts, calls = sealed(tmp_path / "calls.jsonl.zst")
    assert texts == sorted({*TEXTS, *map(str.upper, TEXTS)}, key=lambda text: hashlib.sha256(text.encode()).digest())
    assert [call["key"] for call in calls] == sorted(keys(TEXTS))
    by_key = {request(text).key: text for text in TEXTS}
    for call in calls:
        text = by_key[call["key"]]
        assert call["request"] == request(text).to_record()
        assert call["reply"]["text"] == text.upper()
    assert len(frames(tmp_path / "calls.jsonl.zst")) > 5
    expected = hashlib.sha256(b"".join(frames(tmp_path / "calls.jsonl.zst"))).hexdigest()
    assert found == Seal(len(TEXTS), expected)
    assert names(tmp_path) == FILES


@pytest.mark.usefixtures("small_frames")
def test_a_sealed_log_answers_all_it_holds_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    fill(path, TEXTS)
    found = seal(path, TEXTS)
    assert answered(path, found, [*TEXTS, "other"]) == [*map(str.upper, TEXTS), None]
    with CallLog(path) as log:
        assert len(log) == len(TEXTS)
        assert all(log.get(request(text).key) == reply(text.upper()) for text in TEXTS)
        assert request("other").key not in log


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_sealed_bytes_depend_on_the_calls_alone(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Not on their order, on the runs they are from, or on calls of other configurations made before."""
    everything, used = "abcdefgh", "abcde"
    straight = tmp_path_factory.mktemp("straight") / "calls.jsonl"
    fill(straight, used)
    path = tmp_path_factory.mktemp("winding") / "calls.jsonl"
    expected = seal(straight, used)
    while missing := sorted(set(used) - answers(path, everything).keys()):
        fill(path, data.draw(st.lists(st.sampled_from(everything), unique=True)))
        fill(path, data.draw(st.permutations(missing).map(lambda one: one[:2])))
        there = sorted(answers(path, everything))
        if data.draw(st.booleans()):
            seal(path, data.draw(st.lists(st.sampled_from(there), unique=True)))
        assert sorted(answers(path, everything)) == there
    there = answers(path, everything)
    assert seal(path, used) == expected
    for name in ("calls.jsonl.zst", "calls.index"):
        assert (path.parent / name).read_bytes() == (straight.parent / name).read_bytes()
    assert answers(path, everything) == there


def test_other_calls_move_beside_and_come_back(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    fill(path, "cab")
    seal(path, "a")
    assert names(tmp_path) == [*FILES, "calls.spare.index", "calls.spare.jsonl.zst"]
    assert [call["key"] for call in sealed(tmp_path / "calls.spare.jsonl.zst")[1]] == sorted(keys("bc"))
    assert answers(path, "abc") == {"a": "A", "b": "B", "c": "C"}
    assert seal(path, "abc").calls == 3
    assert names(tmp_path) == FILES


def test_an_unchanged_log_is_sealed_without_being_written(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    fill(path, "abc")
    found = seal(path, "ab")
    before = {name: os.stat(tmp_path / name).st_ino for name in names(tmp_path)}
    assert seal(path, "ab") == found
    assert {name: os.stat(tmp_path / name).st_ino for name in names(tmp_path)} == before


def test_a_run_without_calls_is_sealed_too(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    found = seal(path, "")
    assert found == Seal(0, hashlib.sha256(b"").hexdigest())
    assert answered(path, found, "a") == [None]
    assert answers(path, "a") == {}


def test_a_log_that_lost_calls_of_its_run_is_not_sealed(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    fill(path, "a")
    with pytest.raises(UserError, match="lacks 1 calls that an earlier part of this run used"):
        seal(path, "ab")
    assert answers(path, "ab") == {"a": "A"}


def test_another_log_than_the_one_that_was_sealed_is_refused(tmp_path: Path) -> None:
    path, other = tmp_path / "one" / "calls.jsonl", tmp_path / "other" / "calls.jsonl"
    fill(path, "a")
    fill(other, "b")
    found = seal(path, "a")
    seal(other, "b")
    with pytest.raises(UserError, match="not the log that was sealed"):
        SealedLog(other, found)
    with pytest.raises(UserError, match=r"not the log that was sealed .*found no file"):
        SealedLog(tmp_path / "none" / "calls.jsonl", found)


@pytest.mark.parametrize("damage", ["missing", "cut", "flipped", "another's", "empty", "rubbish"])
def test_an_index_is_made_again_with_a_word(tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    path, index = tmp_path / "calls.jsonl", tmp_path / "calls.index"
    fill(path, TEXTS)
    found = seal(path, TEXTS)
    whole = index.read_bytes()
    other = tmp_path / "other" / "calls.jsonl"
    fill(other, [*TEXTS[:-1], "x"])
    seal(other, [*TEXTS[:-1], "x"])
    damaged = {
        "cut": whole[:-1],
        "flipped": whole[:100] + bytes([whole[100] ^ 1]) + whole[101:],
        "another's": (tmp_path / "other" / "calls.index").read_bytes(),
        "empty": b"",
        "rubbish": bytes(range(256)) * 20,
    }
    if damage == "missing":
        index.unlink()
    else:
        index.write_bytes(damaged[damage])
    with caplog.at_level(logging.WARNING):
        assert answered(path, found, TEXTS) == [text.upper() for text in TEXTS]
    state = "missing" if damage == "missing" else "not its log's"
    assert caplog.messages == [f"{index} is {state}; made again from the log"]
    assert index.read_bytes() == whole


def test_in_a_folder_that_cannot_be_written_the_index_is_made_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "calls.jsonl"
    fill(path, TEXTS)
    found = seal(path, TEXTS)
    (tmp_path / "calls.index").unlink()

    def read_only(*_: object, **__: object) -> tuple[int, str]:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.mkstemp", read_only)
    assert answered(path, found, TEXTS) == [text.upper() for text in TEXTS]
    assert "calls.index" not in names(tmp_path)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("has_index", [True, False])
def test_a_changed_log_gives_a_true_answer_or_none(
    has_index: bool, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("log")
    path, file = folder / "calls.jsonl", folder / "calls.jsonl.zst"
    fill(path, "abc")
    found = seal(path, "abc")
    if not has_index:
        (folder / "calls.index").unlink()
    content = bytearray(file.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content[at] ^= data.draw(st.integers(1, 255))
        file.write_bytes(content)
    else:
        file.write_bytes(content[:at])
    try:
        replies = answered(path, found, "abcd")
    except UserError:
        return
    assert replies == ["A", "B", "C", None]


def test_a_damaged_frame_is_one_line(tmp_path: Path) -> None:
    path, file = tmp_path / "calls.jsonl", tmp_path / "calls.jsonl.zst"
    fill(path, TEXTS)
    found = seal(path, TEXTS)
    content = bytearray(file.read_bytes())
    content[80] ^= 255
    file.write_bytes(content)
    with pytest.raises(UserError, match=r"calls\.jsonl\.zst is damaged; restore it, or remove it"):
        answered(path, found, TEXTS)
    with pytest.raises(UserError, match=r"calls\.jsonl\.zst is damaged"):
        answers(path, TEXTS)
    file.unlink()
    assert answers(path, TEXTS) == {}


def test_a_log_read_while_its_cell_is_sealed_anew_answers_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    fill(path, "a")
    log = SealedLog(path, seal(path, "a"))
    fill(path, "b")
    seal(path, "b")
    assert log.get(request("a").key) == reply("A")
    shutil.rmtree(tmp_path)
    assert log.get(request("a").key) == reply("A")
