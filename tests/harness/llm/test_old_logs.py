"""Logs that an earlier version wrote: told as such, and left as they are."""

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from harness.errors import UserError
from harness.llm.call_log import CallLog, failed_calls
from harness.llm.request import Message, Request
from tests.harness.llm.logged import answers, fill, keys, reply, request

FORM = r"was written by an earlier version of this suite, .*; move {} away, or remove it, .* will be asked again$"


def old(*requests: Request) -> bytes:
    """One object a call with everything in place, keys of objects in order, no spaces."""
    records = [
        {"key": one.key, "request": one.to_record(), "reply": dataclasses.asdict(reply("数"))} for one in requests
    ]
    lines = [json.dumps(one, sort_keys=True, separators=(",", ":"), ensure_ascii=False) for one in records]
    return "".join(f"{line}\n" for line in lines).encode()


def test_a_log_of_an_earlier_version_is_told_as_such_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "cell" / "calls.jsonl"
    path.parent.mkdir()
    messages = (Message("system", "数\n"), Message("user", "a" * 64))
    content = old(Request("m", "r", messages, temperature=0.7, response_format="{}"), request("b")) + b'{"key": "to'
    path.write_bytes(content)
    for read in (CallLog, failed_calls):
        with pytest.raises(UserError, match=f"^{path} {FORM.format(path.parent)}"):
            read(path)
    assert path.read_bytes() == content
    shutil.rmtree(path.parent)
    fill(path, "b")
    assert answers(path, "b") == {"b": "B"}


def test_a_call_of_an_earlier_version_that_was_changed_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_bytes(old(request("a")).replace(b'"content":"a"', b'"content":"b"'))
    with pytest.raises(UserError, match=r"calls\.jsonl, line 1 is damaged .*delete this one line"):
        CallLog(path)


@pytest.mark.parametrize("state", ["absent", "running", "sealed"])
def test_spare_calls_of_an_earlier_version_are_told_whatever_lies_beside_them(tmp_path: Path, state: str) -> None:
    path, spare = tmp_path / "calls.jsonl", tmp_path / "calls.spare.jsonl"
    if state != "absent":
        fill(path, "a")
    if state == "sealed":
        with CallLog(path) as log:
            log.seal(keys("a"))
    spare.write_bytes(old(request("b")))
    for read in (CallLog, failed_calls):
        with pytest.raises(UserError, match=f"^{spare} {FORM.format(spare)}"):
            read(path)
    assert spare.read_bytes() == old(request("b"))
    spare.unlink()
    assert answers(path, "ab") == ({} if state == "absent" else {"a": "A"})


def test_of_two_old_files_the_one_that_results_rest_on_is_told(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_bytes(old(request("a")))
    (tmp_path / "calls.spare.jsonl").write_bytes(old(request("b")))
    for read in (CallLog, failed_calls):
        with pytest.raises(UserError, match=f"^{path} {FORM.format(tmp_path)}"):
            read(path)
