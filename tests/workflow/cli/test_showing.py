"""``gmr show`` on cells made by hand: every word of a trajectory, the list, and what cannot be shown."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from harness.errors import UserError
from harness.runner import layout
from tests.workflow.cli.conftest import COT, GMR
from workflow.cli import app
from workflow.terminal import Page, visible


def gmr(*words: str) -> str:
    return CliRunner().invoke(app, ["show", *words], catch_exceptions=False, env={"COLUMNS": "100"}).stdout


def document(*words: str) -> dict[str, Any]:
    return json.loads(gmr(*words, "--json"))  # type: ignore[no-any-return]


def test_a_trajectory_of_the_router_as_printed(run: Path) -> None:
    assert gmr("gmr", "gsm_hard", "q0") == (
        "SIMULATED BACKBONES: no model was asked, and the replies are made up.\n"
        "\n"
        "GMR on GSM-Hard, gmr gsm_hard pool seed 0, preset embedded\n"
        "\n"
        "Question q0\n"
        "  How many are 0 and 4?\n"
        "\n"
        "Step 1: Math/R1 (25.0 %) on small (50.0 %)\n"
        "  memory     empty\n"
        "  reply      Three\n"
        "  write      25.0 %, stored\n"
        "  halt       75.0 %, goes on\n"
        "  spent      100 + 10 tokens, cost 4e-07\n"
        "\n"
        "Step 2: Math/R2 (25.0 %) on small (50.0 %)\n"
        "  memory     step 1: 75.0 %, left out\n"
        "  reply      Four\n"
        "  write      75.0 %, refused\n"
        "  halt       25.0 %, halts\n"
        "  spent      100 + 10 tokens, cost 4e-07\n"
        "\n"
        "Last call: small (aggregate)\n"
        "  reply      The answer is 7\n"
        "  spent      100 + 10 tokens, cost 4e-07\n"
        "\n"
        "Answer\n"
        "  The answer is 7\n"
        "\n"
        "  gold       4.0\n"
        "  extracted  7\n"
        "  verdict    right (graded)\n"
        "\n"
        "3 calls in 2 steps, 300 + 30 tokens.\n"
        "Cost 1.2e-06, of this 8e-07 in steps.\n"
        "Utility 15.0000.\n"
    )


def test_prompts_are_shown_in_full_only(run: Path) -> None:
    assert "You count." not in gmr("gmr", "gsm_hard", "q0")
    whole = gmr("gmr", "gsm_hard", "q0", "--full")
    assert "  system     You count.\n  user       Turn 1: 'Three'?\n  reply      Three\n" in whole


def test_a_method_without_gates_shows_its_calls_by_their_purpose(run: Path) -> None:
    text = gmr("cot", "gsm_hard", "q0", "--backbone", "qwen-2.5-14B")
    assert "Step 1\n  asked      small (solve)\n  reply      n\n  spent      100 + 10 tokens" in text
    assert "memory" not in text
    assert "verdict    wrong (graded)" in text


def test_an_answer_that_is_missing_says_so(run: Path) -> None:
    text = gmr("cot", "gsm_hard", "q1", "--backbone", "qwen-2.5-14B")
    assert "Answer\n  (empty)\n" in text
    assert "extracted  none\n  verdict    wrong (call_failed, no room left)\n" in text


def test_what_a_reply_says_cannot_steer_the_terminal(run: Path) -> None:
    text = gmr("gmr", "gsm_hard", "q2")
    assert "\x1b" not in text
    assert "<U+001B>[2Jy" in text


@given(st.text())
def test_only_line_breaks_and_tabs_are_left_of_what_steers(text: str) -> None:
    shown = visible(text)
    assert all(one.isprintable() or one in "\n\t" or ord(one) > 0x9F for one in shown)
    shown.encode()


@pytest.mark.parametrize(
    "control", [0x61C, *range(0x200E, 0x2010), *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x9B]
)
def test_marks_of_direction_are_spelt_out(control: int) -> None:
    assert visible(f"a{chr(control)}b") == f"a<U+{control:04X}>b"


@given(st.text(max_size=300), st.integers(60, 120))
def test_no_line_passes_the_edge(text: str, width: int) -> None:
    lines = Page(width, full=False).entry("reply", text)
    assert len(lines) <= 6
    assert all(len(line.expandtabs()) <= width for line in lines)


def test_the_document_holds_all_that_was_said_and_decided(run: Path) -> None:
    found = document("gmr", "gsm_hard", "q0")
    assert found["simulated"] is True
    assert found["cell"] == {"method": "gmr", "benchmark": "gsm_hard", "backbone": "pool", "seed": 0}
    first, second = found["record"]["steps"]
    assert first["calls"][0]["messages"] == [
        {"role": "system", "content": "You count."},
        {"role": "user", "content": "Turn 1: 'Three'?"},
    ]
    assert second["retrieved"] == {"1": {"is_open": False, "probability": 0.75}}
    assert second["role"] == {"name": "role", "slot": 0, "choice": "Math/R2", "options": 4, "probability": 0.25}
    assert found["record"]["final"][0]["reply"] == "The answer is 7"


def test_the_list_has_every_question_and_can_be_narrowed(run: Path) -> None:
    text = gmr("gmr", "gsm_hard")
    assert "2 of 3 right, 0 in error." in text
    assert [line.split()[:2] for line in text.splitlines()[4:]] == [["q0", "right"], ["q1", "right"], ["q2", "wrong"]]
    row = ("cot", "gsm_hard", "--backbone", "qwen-2.5-14B")
    assert [one["id"] for one in document(*row, "--wrong")["items"]] == ["q0"]
    assert [one["id"] for one in document(*row, "--errors")["items"]] == ["q1"]
    assert [one["id"] for one in document(*row, "--errors", "--wrong")["items"]] == ["q0", "q1"]
    assert document(*row)["items"][1]["status"] == "call_failed"


def test_without_the_log_the_decisions_are_still_shown(run: Path) -> None:
    layout.call_log("embedded", GMR).unlink()
    text = gmr("gmr", "gsm_hard", "q0")
    assert "reply      (the log of the calls does not lie here" in text
    assert "write      25.0 %, stored" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gmr", "gsm_hard", "q9"], "has no question 'q9' among its 3; one that it has is 'q"),
        (["cot", "gsm_hard"], "cot has the rows qwen-2.5-14B, qwen-2.5-32B; name one by --backbone"),
        (["gmr", "math"], "of preset embedded is not finished; run it with `snakemake --cores all results/"),
        (["gmr", "gsm_hrd"], "did you mean 'gsm_hard'"),
        (["gmrr", "gsm_hard", "--backbone", "pool"], "did you mean 'gmr'"),
        (["gmrr", "gsm_hard"], "did you mean 'gmr'"),
        (["gmr", "gsm_hard", "--seed", "7"], "is not finished"),
        (["gmr", "gsm_hard", "q0", "--wrong"], "--wrong and --errors are for the list"),
    ],
)
def test_a_mistake_is_refused_with_what_to_do(run: Path, words: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message) as refusal:
        gmr(*words)
    assert "\n" not in str(refusal.value)


def test_a_question_of_an_unfinished_cell_is_not_looked_for(run: Path) -> None:
    (layout.cell("embedded", COT) / "run.json").unlink()
    with pytest.raises(UserError, match="is not finished"):
        gmr("cot", "gsm_hard", "q0", "--backbone", "qwen-2.5-14B")
