"""``gmr compare`` against counts, a binomial test and a correction that are reckoned here."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from harness import layout
from harness.config import Cell
from harness.errors import UserError
from harness.items import Item, Status, Verdict
from tests.paper.trajectories.made import Ask, Story, finish, prepare
from workflow.cli import app

A, B = ("gmr", "pool"), ("cot", "qwen-2.5-14B")
# By benchmark: what each got right, question by question.
RIGHT = {"gsm_hard": ("1111111100", "1000000011"), "math": ("1101", "1001")}


def gmr(*words: str) -> str:
    return CliRunner().invoke(app, ["compare", *words], catch_exceptions=False).stdout


def document(*words: str) -> dict[str, Any]:
    return json.loads(gmr(*words, "--json"))  # type: ignore[no-any-return]


def make(row: tuple[str, str], benchmark: str, right: str, seed: int = 0, **run: Any) -> None:
    items = [Item(f"q{number}", benchmark, f"How many are {number}?", "7") for number in range(len(right))]
    prepare(items)
    stories = [
        Story(
            [Ask(f"{row[0]} {number}", [("user", f"{row} {number}")])], verdict=Verdict(one == "1", "7", Status.GRADED)
        )
        for number, one in enumerate(right)
    ]
    finish(Cell(row[0], benchmark, row[1], seed), items, stories, **run)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    (tmp_path / "results").mkdir()
    monkeypatch.chdir(tmp_path)

    def made(**run: Any) -> None:
        for benchmark, verdicts in RIGHT.items():
            for row, right in zip((A, B), verdicts, strict=True):
                make(row, benchmark, right, **(run if row == A else {}))

    return made


def binomial(first: int, second: int) -> float:
    """The exact two-sided test that each discordant question is as likely to fall to either."""
    n = first + second
    tail = sum(math.comb(n, k) for k in range(min(first, second) + 1)) / 2**n
    return min(1.0, 2 * tail) if n else 1.0


def test_the_numbers_are_those_of_the_questions(run: Callable[..., None]) -> None:
    run()
    found = document("gmr", "cot/qwen-2.5-14B")
    assert found["simulated"] is True
    assert list(found["benchmarks"]) == ["math", "gsm_hard"]
    for benchmark, (first, second) in RIGHT.items():
        one, pairs = found["benchmarks"][benchmark], list(zip(first, second, strict=True))
        alone = [[f"q{at}" for at, pair in enumerate(pairs) if pair == kind] for kind in (("1", "0"), ("0", "1"))]
        assert one["n"] == len(pairs)
        assert [one["right_alone"]["first"], one["right_alone"]["second"]] == alone
        assert one["p_exact"] == pytest.approx(binomial(*map(len, alone)))
        assert one["difference"]["mean"] == pytest.approx((first.count("1") - second.count("1")) / len(pairs))
        assert one["difference"]["low"] <= one["difference"]["mean"] <= one["difference"]["high"]
        assert one["cost_ratio"]["mean"] == pytest.approx(1)
    exact = [one["p_exact"] for one in found["benchmarks"].values()]
    smaller, larger = sorted(exact)
    holm = {smaller: min(1, 2 * smaller), larger: min(1, max(2 * smaller, larger))}
    assert [one["p_holm"] for one in found["benchmarks"].values()] == pytest.approx([holm[p] for p in exact])


def test_the_page_says_the_same(run: Callable[..., None]) -> None:
    run()
    text = gmr("gmr/pool", "cot/qwen-2.5-14B", "--items", "--benchmark", "gsm_hard")
    assert text.startswith("SIMULATED BACKBONES")
    (row,) = [line for line in text.splitlines() if line.startswith("gsm_hard ")]
    assert row.split()[:4] == ["gsm_hard", "10", "80.0", "30.0"]
    assert "+50.0 (" in row
    assert "0.180" in row
    assert "math" not in text
    assert "gsm_hard, only A right: q1 q2 q3 q4 q5 q6 q7\ngsm_hard, only B right: q8 q9\n" in text


def test_both_orders_agree(run: Callable[..., None]) -> None:
    run()
    one, other = document("gmr", "cot/qwen-2.5-14B"), document("cot/qwen-2.5-14B", "gmr")
    for benchmark in RIGHT:
        first, second = one["benchmarks"][benchmark], other["benchmarks"][benchmark]
        assert first["difference"]["mean"] == pytest.approx(-second["difference"]["mean"])
        assert first["p_exact"] == second["p_exact"]
        assert first["right_alone"]["first"] == second["right_alone"]["second"]


def test_simulated_beside_real_is_refused(run: Callable[..., None]) -> None:
    run(simulated=False)
    with pytest.raises(UserError, match="different kinds of backbones"):
        gmr("gmr", "cot/qwen-2.5-14B")


def test_other_questions_are_refused(run: Callable[..., None]) -> None:
    run()
    folder = layout.cell("embedded", Cell("gmr", "gsm_hard", "pool", 0))
    record = json.loads((folder / "run.json").read_bytes())
    record["data"]["checksum"] = "0" * 64
    (folder / "run.json").write_text(json.dumps(record))
    with pytest.raises(UserError, match="different data checksums of gsm_hard"):
        gmr("gmr", "cot/qwen-2.5-14B")


def test_what_only_one_has_finished_is_left_out_unless_asked_for(run: Callable[..., None]) -> None:
    run()
    (layout.cell("embedded", Cell("cot", "math", "qwen-2.5-14B", 0)) / "run.json").unlink()
    assert list(document("gmr", "cot/qwen-2.5-14B")["benchmarks"]) == ["gsm_hard"]
    with pytest.raises(
        UserError, match=r"gmr/pool and cot/qwen-2\.5-14B are not both finished on math in preset embedded"
    ):
        gmr("gmr", "cot/qwen-2.5-14B", "--benchmark", "math")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gmr", "gmr"], "gmr/pool is compared with itself"),
        (["gmr", "cot"], "cot has the rows qwen-2.5-14B, qwen-2.5-32B; name one, as in cot/qwen-2.5-32B"),
        (["gmr", "cott"], "did you mean 'cot'"),
        (["gmr", "cot/qwen-2.5-14"], "did you mean 'qwen-2.5-14B'"),
        (["gmr", "masrouter", "--benchmark", "maths"], "did you mean 'math'"),
        (["gmr", "masrouter"], "are not both finished on math, gsm_hard, mbpp, humaneval, mmlu_pro"),
    ],
)
def test_a_mistake_is_refused(run: Callable[..., None], words: list[str], message: str) -> None:
    run()
    with pytest.raises(UserError, match=message):
        gmr(*words)
