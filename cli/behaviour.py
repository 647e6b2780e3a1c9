"""Checks of a method's behaviour (``gmr test``): one cell, run several times on simulated backbones."""

import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

import pyarrow.parquet as pq

from cli import signals
from harness.benchmarks.items import Item
from harness.benchmarks.prepare import DATA_DIR, EMBEDDED
from harness.errors import UserError, explain
from harness.llm.request import Reply, Request
from harness.runner import cell, layout, questions
from harness.runner.config import MethodEntry
from harness.runner.layout import Cell
from harness.runner.plan import plan
from harness.runner.preset import resolve
from harness.runner.setting import Matched
from harness.scripted import HashedEncoder
from harness.simulator.endpoint import SimulatedEndpoint

_STOPS = 4  # interruptions of a run
_FEW = {
    "backbones": ["qwen-2.5-14B", "qwen-2.5-32B"],
    "limit": {"train": 2, "test": 4, "epochs": 2},
    "max_error_share": 1.0,
}
Fault = Callable[[Reply], Reply]
_FAULTS: Sequence[Fault] = (
    lambda reply: Reply.failed(reply.model, "the call failed"),
    lambda reply: replace(reply, text=""),
    lambda reply: replace(reply, text=reply.text[: len(reply.text) // 2], finish_reason="length"),
    lambda reply: replace(reply, text="word " * 10_000),
)
_CURE = "let calls and answers follow from the question, earlier replies and context.uniform alone"
_TEMPORARY = gettempdir()
# What the method that runs reached outside its context. None while none runs.
_reached: list[str] | None = None


class _Backbones(SimulatedEndpoint):
    """Simulated backbones that keep requests, may stop a run, and spoil replies about some questions."""

    def __init__(self, simulated: Any, most: int, spoiled: Mapping[str, Fault]) -> None:
        vars(self).update(vars(simulated))  # They know the same questions.
        self.most, self.spoiled = most, spoiled
        self.asked: dict[str, Request] = {}

    def complete(self, request: Request) -> Reply:
        if len(self.asked) == self.most:
            raise UserError("a run that is repeated makes other calls", _CURE)
        self.asked[request.key] = request
        reply = super().complete(request)
        return next((fault(reply) for text, fault in self.spoiled.items() if _mentions(request, text)), reply)


def check(entry: MethodEntry, extra: str | None = None) -> Iterator[tuple[str, str]]:
    """Check a method, of the file ``extra`` if given. Yield each check and, if it failed, why and what to do.

    If the first check fails, the others are not tried.
    """
    global _reached
    layout.RESULTS.mkdir(exist_ok=True)
    with TemporaryDirectory(prefix="test-", dir=layout.RESULTS) as folder:
        trial = _Trial(entry, extra, Path(folder))
        for each in (trial.answers, trial.order, trial.stops, trial.outside, trial.charges, trial.faults):
            problem, _reached = "", trial.reached
            try:
                each()
            except Exception as error:
                problem = explain(error)
            finally:
                _reached = None
            yield (each.__doc__ or "").rstrip("."), problem
            if problem and each == trial.answers:
                return


class _Trial:
    """Runs of one cell, each in a folder of its own."""

    def __init__(self, entry: MethodEntry, extra: str | None, folder: Path) -> None:
        benchmark = entry.benchmarks[0] if entry.benchmarks else "gsm_hard"
        run = resolve("smoke", {**_FEW, "extra": extra, "methods": [entry.key], "benchmarks": [benchmark]})
        # The method to match has no finished cell here.
        entries = {**run.entries, entry.key: entry.model_copy(update={"matches": None})}
        run = run.model_copy(update={"name": folder.name, "entries": entries})
        questions.write(run, benchmark)
        planned = plan(run, Cell(entry.key, benchmark, run.rows(entry)[0], 0))
        setting = replace(planned.setting, matched=Matched(entry.matches, 2e-5, 2.0) if entry.matches else None)
        self.plan, self.simulated = replace(planned, setting=setting, encoder=HashedEncoder()), planned.in_process
        _ = planned.cell.record  # The fingerprint of the code reads the mini-benchmarks, before the method is watched.
        self.folder, self.files = folder, layout.cell_files(learned=entry.trained)
        self.train, self.test = planned.questions.train, planned.questions.test
        self.reached: list[str] = []

    def answers(self) -> None:
        """Each question gets a text as answer."""
        self.first = self._backbones()
        self.results = self._run("first", self.first)

    def order(self) -> None:
        """Results are the same for 1 and for 64 questions in flight, and without one of the questions."""
        cure = "draw random numbers with context.uniform, and share nothing between questions"
        self._compare(self._run("one", self._backbones(), in_flight=1), cure)
        longest = max(self.test, key=lambda item: len(item.question))  # asked first
        others = self._run("first", self._backbones(), [item for item in self.test if item != longest])
        if not all(row in _answers(self.results) for row in _answers(others)):
            raise UserError("without one question, others get other answers", cure)

    def stops(self) -> None:
        """A run that is interrupted again and again makes the same calls, each once, and gives the same results."""
        asked: list[str] = []
        for _ in range(2 * _STOPS):
            backbones = self._backbones(max(1, len(self.first.asked) // _STOPS))
            with suppress(UserError):  # It made as many calls as it may.
                self._run("stopped", backbones)
            asked += backbones.asked
            if len(asked) >= len(self.first.asked):
                break
        if sorted(asked) != sorted(self.first.asked):
            raise UserError("after an interruption it makes other calls", _CURE)
        self._compare(self._run("stopped", self._backbones(0)), _CURE)

    def outside(self) -> None:
        """A method opens no connection, sees no test question in training and no right answer, and writes no file."""
        if self.reached:
            raise UserError(self.reached[0], "use only the training questions and the context")
        trained = [self.first.asked[key] for key in _keys(self.results, "training_calls") if key in self.first.asked]
        if any(_mentions(request, item.question) for request in trained for item in self.test):
            raise UserError("the training asks a test question", "ask only questions of training.items")
        golds = [item.gold for item in self.test]
        changed = [replace(item, gold=gold) for item, gold in zip(self.test, golds[1:] + golds[:1], strict=True)]
        if _answers(self._run("first", self._backbones(), changed)) != _answers(self.results):
            raise UserError("answers depend on the right answer", "do not read item.gold in solve")

    def charges(self) -> None:
        """Every call is charged."""
        charged = {*_keys(self.results, "calls"), *_keys(self.results, "training_calls")}
        if lost := len(self.first.asked.keys() - charged):
            cure = "call models with context.ask, and pass every attempt to training.log_update"
            raise UserError(f"{lost} calls are in no table", cure)

    def faults(self) -> None:
        """A failed call and replies that are empty, cut off or long end in a verdict."""
        spoiled = dict(zip([item.question for item in self.test], _FAULTS, strict=True))
        self._run("faults", self._backbones(spoiled={**spoiled, self.train[0].question: _FAULTS[0]}))

    def _backbones(self, most: int = sys.maxsize, spoiled: Mapping[str, Fault] | None = None) -> _Backbones:
        return _Backbones(self.simulated, most, spoiled or {})

    def _run(
        self, name: str, backbones: _Backbones, test: Sequence[Item] = (), in_flight: int = 64
    ) -> dict[str, bytes]:
        """Run the cell in a folder, with the calls in its log. Return the files of its results."""
        folder, asked = self.folder / name, replace(self.plan.questions, test=[*(test or self.test)])
        changed = replace(self.plan, folder=folder, in_process=backbones, questions=asked, in_flight=in_flight)
        signals.run(cell.run(changed))
        return {file: (folder / file).read_bytes() for file in self.files}

    def _compare(self, results: Mapping[str, bytes], cure: str) -> None:
        if differing := [file for file in self.files if results[file] != self.results[file]]:
            raise UserError(f"{', '.join(differing)} differ", cure)


def _rows(results: Mapping[str, bytes], table: str) -> list[dict[str, Any]]:
    file = results.get(f"{table}.parquet")
    return pq.read_table(io.BytesIO(file)).to_pylist() if file else []


def _keys(results: Mapping[str, bytes], table: str) -> list[str]:
    return [row["key"] for row in _rows(results, table)]


def _answers(results: Mapping[str, bytes]) -> list[Any]:
    """Return answers, calls and decisions, without verdicts."""
    texts = [(row["item_id"], row["text"]) for row in _rows(results, "items")]
    return [*texts, *_rows(results, "calls"), *_rows(results, "decisions")]


def _mentions(request: Request, text: str) -> bool:
    return any(text in message.content for message in request.messages)


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    """Note connections, which fail, files with questions, and files that are written elsewhere."""
    if _reached is None:
        return
    if event in ("socket.connect", "socket.getaddrinfo"):
        _reached.append(f"it opens a connection to {arguments[event == 'socket.connect']}")
        raise UserError(_reached[-1], "ask models with context.ask only")
    if event == "open" and isinstance(arguments[0], str | Path):
        path = Path(arguments[0]).absolute()
        is_written = bool(arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        own = (layout.RESULTS.absolute(), _TEMPORARY, "/dev", "/proc")
        is_own = "__pycache__" in path.parts or any(path.is_relative_to(folder) for folder in own)
        has_questions = any(path.is_relative_to(folder) for folder in (EMBEDDED, os.environ.get(DATA_DIR, EMBEDDED)))
        if (is_written and not is_own) or has_questions or path.name.endswith(".items.jsonl"):
            _reached.append(f"it {'writes' if is_written else 'reads'} {path}")


sys.addaudithook(_note)
