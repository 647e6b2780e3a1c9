"""Proof that the sandbox gives every program the verdict it deserves, however many run at once and however busy it is.

Gold programs have to pass and mutants of them to fail; then the same programs are judged again with other numbers of
workers, and a sample of them many times. A verdict that differs in anything, its words included, is a flip.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.benchmarks.base import Tools
from harness.benchmarks.code_grading import CodeBenchmark
from harness.benchmarks.items import Item, Status, Verdict
from harness.benchmarks.loading import load_items
from harness.benchmarks.math_verifier import MathVerifier
from harness.benchmarks.registry import benchmark, entry, keys
from harness.benchmarks.sources import load
from harness.benchmarks.splits import keyed_order
from harness.errors import UserError
from harness.sandbox import Limits, Sandbox

# What grading allows, but for the clock: with many others on a processor it would decide in place of processor time.
LIMITS = Limits(wall_s=600)
LOG_EVERY = 500
# Ends with whoever started it, also where that one is killed.
_SPIN = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(100000))\n"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is to be proved.

    Attributes:
        workers: Numbers of workers; all programs run with each of them.
        mutants: Mutants of every gold program that have to fail.
        sample: Programs that are judged again and again, gold programs and mutants mixed.
        repeats: How often.
        busy: Whether a process spins on every processor meanwhile.
    """

    workers: tuple[int, ...] = (1, 8)
    mutants: int = 3
    sample: int = 100
    repeats: int = 20
    busy: bool = True

    def __post_init__(self) -> None:
        given = {"workers": min(self.workers, default=0), "mutants": self.mutants, "sample": self.sample}
        for name, value in given.items():
            if value < 1:
                raise UserError(f"sandbox proof: {name} is {value}; expected at least 1")
        if self.repeats < 0:
            raise UserError(f"sandbox proof: repeats is {self.repeats}; expected at least 0")


@dataclass(frozen=True, slots=True)
class Trial:
    """One program and its first verdict; ``number`` 0 is the gold program, others are mutants in their order."""

    item: Item
    number: int
    source: str
    verdict: Verdict

    @property
    def name(self) -> str:
        """The program in words that are unique."""
        return f"{_title(self.item)} {f'mutant {self.number}' if self.number else 'gold program'}"


@dataclass(frozen=True, slots=True)
class Proof:
    """What was found.

    Attributes:
        data: ``"embedded"`` or ``"real"``.
        level: How well programs were confined.
        plan: What was to be proved.
        trials: All programs, question by question.
        flips: A line for every program whose verdict was not always the same.
    """

    data: str
    level: str
    plan: Plan
    trials: tuple[Trial, ...]
    flips: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether every gold program passes, the sandbox itself never failed and no verdict flipped."""
        failed_ourselves = any(trial.verdict.status is Status.SANDBOX_ERROR for trial in self.trials)
        return not failed_ourselves and not self.flips and not self._wrong_gold()

    def to_markdown(self) -> str:
        """The report, exceptions by name; nothing in it depends on how fast the machine is."""
        plan = self.plan
        busy = "a spinning process for every processor meanwhile" if plan.busy else "nothing else started meanwhile"
        runs = " and ".join(map(str, plan.workers))
        head = (
            "Benchmark",
            "Questions",
            "Gold passes",
            "Mutants",
            "Fail",
            "Pass",
            f"Questions with {plan.mutants} failing",
        )
        sampled = min(plan.sample, len(self.trials))
        lines = [
            "# Proof of the sandbox",
            "",
            f"Data: {self.data}. Level: {self.level}. Workers: {runs}, {busy}.",
            f"Limits of a program: {LIMITS.cpu_s} s of processor time, {LIMITS.wall_s:g} s by the clock.",
            "",
            f"| {' | '.join(head)} |",
            "|---|---:|---:|---:|---:|---:|---:|",
            *(self._row(key) for key in dict.fromkeys(trial.item.benchmark for trial in self.trials)),
            "",
            f"Judged with {runs} workers: {len(self.trials)} programs; {plan.repeats} times more: {sampled} of them.",
            f"Verdicts that differed: {len(self.flips)}.",
            *_listed("Verdicts that differed", self.flips),
            *_listed("Gold programs that fail", map(_told, self._wrong_gold())),
            *_listed(f"Questions with fewer than {plan.mutants} failing mutants", map(_title, self._with_too_few())),
            *_listed(
                "Mutants that pass: the tests of their question cannot tell them from the gold program",
                (trial.name for trial in self.trials if trial.number and trial.verdict.correct),
            ),
        ]
        return "\n".join(lines) + "\n"

    def _row(self, key: str) -> str:
        trials = [trial for trial in self.trials if trial.item.benchmark == key]
        gold = [trial.verdict.correct for trial in trials if not trial.number]
        mutants = [trial.verdict.correct for trial in trials if trial.number]
        failing = sum(_fails(trial.verdict) for trial in trials if trial.number)
        few = sum(item.benchmark == key for item in self._with_too_few())
        cells = [len(gold), sum(gold), len(mutants), failing, sum(mutants), len(gold) - few]
        return f"| {benchmark(key).title} | {' | '.join(map(str, cells))} |"

    def _wrong_gold(self) -> list[Trial]:
        return [trial for trial in self.trials if not trial.number and not trial.verdict.correct]

    def _with_too_few(self) -> list[Item]:
        failing = Counter(_title(trial.item) for trial in self.trials if trial.number and _fails(trial.verdict))
        golds = [trial.item for trial in self.trials if not trial.number]
        return [item for item in golds if failing[_title(item)] < self.plan.mutants]


def problems(data: str) -> list[Item]:
    """All problems of all programming benchmarks, also those that a benchmark leaves out.

    Raises:
        UserError: The data cannot be had or are not what they should be.
    """
    found: list[Item] = []
    for key in keys():
        subject = benchmark(key)
        if isinstance(subject, CodeBenchmark):
            # Checks the data.
            load_items(key, data)
            found += subject.problems(load(entry(key), data).rows)
    return found


async def prove(items: Sequence[Item], data: str, plan: Plan, opened: Callable[[int], Sandbox] | None = None) -> Proof:
    """Run the proof.

    Args:
        items: Programming problems.
        data: Where they are from, for the report.
        plan: How much is to be proved.
        opened: Gives the sandbox for a number of workers; without it the best one this machine offers.

    Raises:
        UserError: The machine offers no way to execute programs.
    """
    opened = opened or (lambda workers: Sandbox(LIMITS, workers))
    first, *others = plan.workers
    with busy_processors() if plan.busy else contextlib.nullcontext():
        async with opened(first) as sandbox, MathVerifier() as math_verify:
            level = sandbox.level
            tools, progress = Tools(sandbox, math_verify), _Progress(f"{first} workers, first verdicts")
            found = await asyncio.gather(*(_trials(item, plan.mutants, tools, progress) for item in items))
        trials = [trial for of_question in found for trial in of_question]
        flips: list[str] = []
        for workers in others:
            flips += await _again(trials, f"{workers} workers", 1, opened, workers)
        by_name = {trial.name: trial for trial in trials}
        sample = [by_name[name] for name in keyed_order(by_name, "sandbox proof")[: plan.sample]]
        flips += await _again(sample, "repeats", plan.repeats, opened, max(plan.workers))
    return Proof(data, level, plan, tuple(trials), tuple(dict.fromkeys(flips)))


@contextlib.contextmanager
def busy_processors() -> Iterator[None]:
    """Keeps every processor of the machine busy."""
    with contextlib.ExitStack() as spinning:
        for _ in range(os.cpu_count() or 1):
            process = spinning.enter_context(subprocess.Popen([sys.executable, "-c", _SPIN]))  # noqa: S603  our own
            spinning.callback(process.kill)
        yield


async def _trials(item: Item, wanted: int, tools: Tools, progress: _Progress) -> list[Trial]:
    """The gold program, and mutants until enough of them fail."""
    subject = benchmark(item.benchmark)
    trials: list[Trial] = []
    failing = 0
    for number, source in enumerate([item.gold, *subject.wrong_answers(item)]):
        if failing == wanted:
            break
        trials.append(Trial(item, number, source, await subject.judge(item, source, tools)))
        failing += number > 0 and _fails(trials[-1].verdict)
        progress.step()
    return trials


async def _again(
    trials: Sequence[Trial], what: str, times: int, opened: Callable[[int], Sandbox], workers: int
) -> list[str]:
    """The programs once more, all at once; a line for every verdict that is not the first one."""
    progress = _Progress(what, len(trials) * times)
    async with opened(workers) as sandbox, MathVerifier() as math_verify:
        tools = Tools(sandbox, math_verify)

        async def verdict(trial: Trial) -> Verdict:
            found = await benchmark(trial.item.benchmark).judge(trial.item, trial.source, tools)
            progress.step()
            return found

        verdicts = await asyncio.gather(*map(verdict, [*trials] * times))
    pairs = zip([*trials] * times, verdicts, strict=True)
    return [f"{_told(trial)}; then, {what}: {found.detail}" for trial, found in pairs if found != trial.verdict]


class _Progress:
    def __init__(self, what: str, of: int | None = None) -> None:
        self._what = what
        self._of = f" of {of}" if of is not None else ""
        self._done = 0

    def step(self) -> None:
        self._done += 1
        if self._done % LOG_EVERY == 0:
            logger.info("%s: %d%s programs", self._what, self._done, self._of)


def _fails(verdict: Verdict) -> bool:
    return not verdict.correct and verdict.status is Status.GRADED


def _title(item: Item) -> str:
    title = benchmark(item.benchmark).title
    return item.id if item.id.startswith(title) else f"{title} {item.id}"


def _told(trial: Trial) -> str:
    return f"{trial.name}: {trial.verdict.detail}"


def _listed(title: str, lines: Iterable[str]) -> list[str]:
    listed = [f"- {line}" for line in lines]
    return ["", f"## {title}", "", *listed] if listed else []
