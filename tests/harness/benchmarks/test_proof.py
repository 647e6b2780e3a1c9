import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.benchmarks import benchmark, proof
from harness.benchmarks.items import CodeTask, Item
from harness.benchmarks.proof import Plan, Proof, prove
from harness.errors import UserError
from harness.sandbox import Execution, Outcome, Program
from tests.harness.benchmarks.samples import ALL

QUIET = Plan(workers=(1, 3), sample=100, repeats=2, busy=False)
TWICE = Item(
    id="11",
    benchmark="mbpp",
    question="Double a number.",
    gold="def twice(n):\n    return n + n\n",
    code=CodeTask("twice", "", "assert twice(2) == 4\nassert twice(-3) == -6\n", ()),
)
LIMIT = replace(
    TWICE,
    id="12",
    gold="def limit(n):\n    spare = 7\n    return min(n, 5)\n",
    code=CodeTask("limit", "", "assert limit(2) == 2\nassert limit(9) == 5\n", ()),
)


class Sandboxes:
    """Stands in for all sandboxes of a proof: trusted programs run in this process, answers can be exchanged.

    Attributes:
        opened: The numbers of workers asked for, in turn.
        runs: How often each program has run.
    """

    level = "none"

    def __init__(self, exchange: Callable[[str, int, Execution], Execution] = lambda source, run, found: found) -> None:
        self.opened: list[int] = []
        self.runs: dict[str, int] = {}
        self._exchange = exchange

    def __call__(self, workers: int) -> "Sandboxes":
        self.opened.append(workers)
        return self

    async def __aenter__(self) -> "Sandboxes":
        return self

    async def __aexit__(self, *error: object) -> None:
        pass

    async def run(self, program: Program) -> Execution:
        run = self.runs[program.source] = self.runs.get(program.source, 0) + 1
        return self._exchange(program.source, run, _executed(program))


def _executed(program: Program) -> Execution:
    try:
        exec(f"{program.setup}\n{program.source}\n{program.checks}", {})  # noqa: S102  our own
    except AssertionError:
        return Execution(Outcome.WRONG_ANSWER, "AssertionError", "")
    except Exception as error:
        return Execution(Outcome.EXCEPTION, repr(error), "")
    return Execution(Outcome.PASSED, "", "")


async def proved(items: list[Item], sandboxes: Sandboxes, plan: Plan = QUIET) -> Proof:
    return await prove(items, "embedded", plan, sandboxes)  # type: ignore[arg-type]


async def test_a_sound_sandbox_is_proved_with_all_programs_and_all_repeats() -> None:
    sandboxes = Sandboxes()
    found = await proved([TWICE], sandboxes)
    assert found.passed
    assert [(trial.number, trial.verdict.correct) for trial in found.trials] == [
        (0, True),
        (1, False),
        (2, False),
        (3, False),
    ]
    assert sandboxes.opened == [1, 3, 3]
    assert set(sandboxes.runs.values()) == {1 + 1 + QUIET.repeats}
    text = found.to_markdown()
    assert "| MBPP | 1 | 1 | 3 | 3 | 0 | 1 |\n" in text
    assert "4 programs; 2 times more: 4 of them." in text
    assert text.endswith("Verdicts that differed: 0.\n")


async def test_an_equivalent_mutant_is_listed_and_another_one_takes_its_place() -> None:
    found = await proved([LIMIT], Sandboxes())
    equivalent = [trial for trial in found.trials if trial.number and trial.verdict.correct]
    assert equivalent
    assert all("spare = 7" not in trial.source for trial in equivalent)
    assert found.passed
    assert f"| MBPP | 1 | 1 | {3 + len(equivalent)} | 3 | {len(equivalent)} | 1 |\n" in found.to_markdown()
    assert f"- MBPP 12 mutant {equivalent[0].number}\n" in found.to_markdown()


async def test_a_gold_program_that_fails_is_no_proof() -> None:
    found = await proved([replace(TWICE, gold="def twice(n):\n    return n\n"), LIMIT], Sandboxes())
    assert not found.passed
    assert "## Gold programs that fail\n\n- MBPP 11 gold program: wrong_answer: AssertionError\n" in found.to_markdown()


async def test_tests_that_accept_everything_leave_too_few_failing_mutants() -> None:
    assert TWICE.code is not None
    toothless = replace(TWICE, code=replace(TWICE.code, checks="pass"))
    found = await proved([toothless, LIMIT], Sandboxes())
    assert found.passed
    assert "## Questions with fewer than 3 failing mutants\n\n- MBPP 11\n" in found.to_markdown()


@pytest.mark.parametrize(("run", "where"), [(2, "3 workers"), (3, "repeats"), (4, "repeats")])
@pytest.mark.parametrize(
    "other",
    [Execution(Outcome.WALL_LIMIT, "", ""), Execution(Outcome.PASSED, "in other words", "")],
    ids=["verdict", "words"],
)
async def test_one_verdict_that_is_different_once_is_no_proof(run: int, where: str, other: Execution) -> None:
    found = await proved(
        [TWICE, LIMIT],
        Sandboxes(lambda source, now, execution: other if source == TWICE.gold and now == run else execution),
    )
    assert not found.passed
    (flip,) = found.flips
    assert flip.startswith(f"MBPP 11 gold program: passed; then, {where}: {other.outcome}")
    assert f"## Verdicts that differed\n\n- {flip}\n" in found.to_markdown()


async def test_a_failure_of_the_sandbox_itself_is_no_failing_mutant_and_no_proof() -> None:
    broken = Execution(Outcome.SANDBOX_ERROR, "no memory", "")
    found = await proved([TWICE], Sandboxes(lambda source, _, execution: execution if source == TWICE.gold else broken))
    assert not found.passed
    assert "## Questions with fewer than 3 failing mutants\n\n- MBPP 11\n" in found.to_markdown()
    assert not found.flips


async def test_the_sample_is_the_same_whatever_the_order_of_the_questions() -> None:
    plan = replace(QUIET, sample=3)
    runs = []
    for items in ([TWICE, LIMIT], [LIMIT, TWICE]):
        sandboxes = Sandboxes()
        await proved(items, sandboxes, plan)
        runs.append({source: count for source, count in sandboxes.runs.items() if count > 2})
    assert runs[0] == runs[1]
    assert list(runs[0].values()) == [2 + plan.repeats] * 3


async def test_the_real_sandbox_is_proved_on_busy_processors() -> None:
    found = await prove([TWICE, LIMIT], "embedded", Plan(workers=(1, 2), sample=4, repeats=2))
    assert found.passed, found.to_markdown()
    assert f"Level: {found.level}. Workers: 1 and 2, a spinning process" in found.to_markdown()


def test_processors_are_busy_until_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    class Recorded(subprocess.Popen[bytes]):
        def __init__(self, command: list[str]) -> None:
            super().__init__(command)
            started.append(self)

    monkeypatch.setattr(proof.subprocess, "Popen", Recorded)  # type: ignore[attr-defined]
    monkeypatch.setattr(proof.os, "cpu_count", lambda: 3)  # type: ignore[attr-defined]
    with proof.busy_processors():
        assert [process.poll() for process in started] == [None] * 3
    assert [process.returncode for process in started] == [-9] * 3


@pytest.mark.parametrize(
    "wrong", [{"workers": ()}, {"workers": (1, 0)}, {"mutants": 0}, {"sample": 0}, {"repeats": -1}]
)
def test_a_plan_that_proves_nothing_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UserError, match=rf"{next(iter(wrong))} is -?\d; expected at least"):
        Plan(**wrong)  # type: ignore[arg-type]


def test_problems_are_those_too_that_no_score_counts() -> None:
    mbpp = benchmark("mbpp")
    assert [item.id for item in mbpp.problems(ALL["mbpp"])] == ["11", "601", "3"]  # type: ignore[attr-defined]
    assert [item.id for item in mbpp.normalise(ALL["mbpp"])] == ["11", "601"]
    assert {item.benchmark for item in proof.problems("embedded")} == {"mbpp", "humaneval"}


@pytest.mark.realdata
def test_all_real_problems_are_there(mirror: Path) -> None:
    ids = [item.id for item in proof.problems("real")]
    assert len(ids) == len(set(ids)) == 974 + 164


@pytest.mark.parametrize(("flips", "status"), [((), 0), (("one",), 1)])
def test_the_command_writes_the_report_and_says_whether_it_is_proved(
    flips: tuple[str, ...], status: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from typer.testing import CliRunner

    from harness.runner import layout
    from workflow.cli import app

    async def instead(items: list[Item], data: str, plan: Plan) -> Proof:
        return Proof(data, "none", plan, (), flips)

    monkeypatch.setattr(proof, "prove", instead)
    monkeypatch.setattr(proof, "problems", lambda data: [])
    monkeypatch.setattr(layout, "REPORTS", tmp_path)
    words = ["sandbox", "proof", "--workers", "2", "--workers", "5", "--mutants", "4", "--no-busy"]
    assert CliRunner().invoke(app, words).exit_code == status
    plan = Plan(workers=(2, 5), mutants=4, busy=False)
    assert (tmp_path / "sandbox" / "proof.md").read_text() == Proof("embedded", "none", plan, (), flips).to_markdown()
