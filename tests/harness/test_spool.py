import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.agents.trajectory import Call, Decision, Trajectory
from harness.benchmarks.items import Item, Status, Verdict
from harness.errors import UserError
from harness.files import ROOT
from harness.results import Answered
from harness.runner.answers import Answers
from harness.spool import Spool

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(codec="utf-8"))


def test_records_come_back_in_their_order_and_by_number(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "new")
    records: list[Any] = [{"a": 1}, [], "text\n", None, 0.1, "x" * 100_000]
    for number, record in enumerate(records):
        spool.add(record)
        assert spool[number] == record
    assert list(spool) == list(spool) == records
    assert len(spool) == len(records)


def test_numbers_of_numpy_come_back_as_numbers(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.add([np.float64(0.1), np.int64(3)])
    assert spool[0] == [0.1, 3]


def test_the_file_has_no_name(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.add("here")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    program = (
        "from pathlib import Path; from harness.spool import Spool; from harness.errors import UserError\n"
        f"spool = Spool(Path({str(tmp_path)!r})); spool.add('x' * 500)\n"
        "try:\n    spool.add('y' * 5_000)\n"
        "except UserError as error:\n    print(error)\n"
    )

    def small_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, resource.RLIM_INFINITY))

    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    said = subprocess.run(
        [sys.executable, "-c", program], env=environment, preexec_fn=small_disk, capture_output=True, text=True
    )
    assert said.stdout.startswith(f"cannot write {tmp_path}: File too large; free space")
    assert said.stdout.count("\n") == 1
    assert said.stderr == ""


def test_a_place_that_is_no_folder_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write"):
        Spool(tmp_path / "file" / "below")


CALLS = st.builds(
    Call,
    step=st.integers(1, 9),
    purpose=TEXTS,
    slot=st.integers(0, 9),
    backbone=TEXTS,
    role=TEXTS,
    key=st.binary(min_size=32, max_size=32).map(bytes.hex),
    prompt_tokens=st.integers(0, 1 << 40),
    completion_tokens=st.integers(0, 1 << 40),
    cost=FLOATS,
    is_step=st.booleans(),
    finish_reason=TEXTS,
    error=st.none() | TEXTS,
)
DECISIONS = st.builds(Decision, st.integers(1, 9), TEXTS, st.integers(0, 9), TEXTS, st.integers(1, 99), FLOATS)
VERDICTS = st.builds(
    Verdict,
    correct=st.booleans(),
    answer=st.none() | TEXTS,
    status=st.sampled_from(Status),
    detail=TEXTS,
    also=st.just({}) | st.fixed_dictionaries({"math_verify": st.booleans()}),
)
ITEM = Item("id", "toy", "?", "!")
ANSWERED = st.builds(
    lambda text, calls, decisions, embedded, verdict: Answered(
        Trajectory(ITEM, text, tuple(calls), tuple(decisions), embedded, 1), verdict
    ),
    TEXTS,
    st.lists(CALLS, max_size=3),
    st.lists(DECISIONS, max_size=3),
    st.integers(0, 99),
    VERDICTS,
)


@given(st.lists(ANSWERED, min_size=1, max_size=4), st.randoms())
def test_answers_come_back_equal_and_in_the_order_of_the_questions(
    tmp_path_factory: pytest.TempPathFactory, answered: list[Answered], chance: Any
) -> None:
    answers = Answers([ITEM] * len(answered), tmp_path_factory.mktemp("spool"))
    order = list(range(len(answered)))
    chance.shuffle(order)
    for position in order:
        answers.add(position, answered[position])
    assert list(answers) == answered
    assert [type(one.verdict.status) for one in answers] == [Status] * len(answered)
    assert answers.keys == {call.key for one in answered for call in one.trajectory.calls}


def test_answers_that_are_not_there_yet_are_left_out(tmp_path: Path) -> None:
    one = Answered(Trajectory(ITEM, "text", (), ()), Verdict(True, "text", Status.GRADED))
    answers = Answers([ITEM] * 3, tmp_path)
    answers.add(1, one)
    assert list(answers) == [one]
    assert len(answers) == 1
