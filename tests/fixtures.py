"""Fixtures for tests of methods: questions, a client that answers by rule, a runtime, a training in a folder."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import orjson
import pyarrow.parquet as pq
from safetensors import safe_open

from harness import scripted
from harness.agents.code_tools import CodeTools
from harness.agents.runtime import ErrorShare, Runtime
from harness.agents.trajectory import Answered, Call, Episode, Trajectory
from harness.benchmarks.items import CodeTask, Item, Status, Verdict
from harness.llm.request import Message, Reply, Request, Sampling
from harness.method import Learner
from harness.runner.evaluation import evaluate
from harness.runner.layout import TRAINED
from harness.runner.results import write_training
from harness.sandbox import Execution, Outcome, Program, Sandbox
from harness.scripted import HashedEmbeddings, backbones
from harness.training.loop import Learned, Training

M = TypeVar("M", bound=Learner)
RULES = "End with a line that says: The answer is <number>."
# Words that stand for what a sentence encoder reads.
LONGEST = 50
FAILED = Reply.failed("m", "gone")
Answering = Callable[[str, Request], str | Reply]
embedding = cache(scripted.vector)


def questions(number: int, name: str = "q") -> tuple[Item, ...]:
    return tuple(Item(f"{name}{at}", "toy", f"Question {name}{at}?", "right") for at in range(number))


ITEMS = questions(8)
CODE = Item(
    id="c",
    benchmark="humaneval",
    question="def double(x): ...",
    gold="def double(x):\n    return 2 * x\n",
    code=CodeTask("double", "", "assert double(21) == 42", ("assert double(1) == 2",)),
)


class Client:
    """Answers as a function of backbone and request, and may answer out of order.

    Args:
        answering: The text of a reply, or the reply.
        tokens: Prompt and completion tokens of every reply.
        late: Turns of the event loop that an answer takes, as a function of how many were asked before.
    """

    def __init__(
        self,
        answering: Answering = lambda backbone, request: f"{backbone} says so",
        tokens: tuple[int, int] = (100, 10),
        late: Callable[[int], int] = lambda number: 0,
    ) -> None:
        self.answering, self.tokens, self.late = answering, tokens, late
        self.asked: list[tuple[str, Request]] = []
        self.calls_answered = self.tokens_written = 0
        self.counts = {"log": 0}

    async def complete(self, backbone: str, request: Request) -> Reply:
        self.asked.append((backbone, request))
        number = len(self.asked)
        reply = self.answering(backbone, request)
        for _ in range(self.late(number)):
            await asyncio.sleep(0)
        self.calls_answered += 1
        self.tokens_written += self.tokens[1]
        return reply if isinstance(reply, Reply) else Reply(reply, *self.tokens, "stop", request.model)

    @property
    def requests(self) -> list[Request]:
        return [request for _, request in self.asked]

    @property
    def conversations(self) -> list[tuple[Message, ...]]:
        return [request.messages for request in self.requests]

    @property
    def users(self) -> list[str]:
        return [request.messages[-1].content for request in self.requests]


def context(item: Item, client: Any, rules: str = "", extract: Any = lambda item, text: text, **parts: Any) -> Any:
    """Return a context with the two scripted backbones. Texts are their own answers unless an extractor is given."""
    bench = SimpleNamespace(output_rules=rules, extract=extract, outcome=lambda *_: None)
    tools = {"code_tools": CodeTools(FakeSandbox())}
    return scripted.context(item, client, benchmark=bench, **{**tools, **parts})


def sampling(request: Request) -> Sampling:
    return Sampling(*(getattr(request, name) for name in Sampling._fields))


class FakeSandbox(Sandbox):
    """Keeps programs. One with the word ``good`` passes, one with ``answer = X`` has the value X, others are wrong."""

    def __init__(self, execution: Execution | None = None) -> None:
        self.execution = execution  # in the place of all of these
        self.given: list[Program] = []

    async def run(self, program: Program) -> Execution:
        self.given.append(program)
        await asyncio.sleep(0.001)
        passes = program.show or "good" in program.source.lower()
        shown = program.source.partition("answer = ")[2].partition("\n")[0]
        return self.execution or Execution(Outcome.PASSED if passes else Outcome.WRONG_ANSWER, "", shown)


def right_if(key: str) -> Answering:
    """Return a rule by which only one backbone is ever right."""
    return lambda backbone, request: "right" if backbone == key else "wrong"


class Toy:
    """Stands where a Benchmark does; right when the text ends with the gold answer."""

    key = "toy"
    output_rules = RULES
    names_models = False

    def outcome(self, item: Item, backbone: str) -> None:
        return None

    def extract(self, item: Item, text: str) -> str | None:
        return text.rpartition("answer is ")[2] or None

    def same(self, item: Item, a: str, b: str) -> bool:
        return a.lstrip("0") == b.lstrip("0")

    async def grade(self, item: Item, text: str, tools: Any, cut_off: bool = False) -> Verdict:
        return Verdict(text.endswith(item.gold), text, Status.GRADED)


def runtime(client: Any, seed: int = 0, *, code_tools: Any = None, limit: float = 1.0, greedy: bool = False) -> Runtime:
    tools, errors = code_tools or CodeTools(FakeSandbox()), ErrorShare(limit)
    about: Any = {"tools": None, "code_tools": tools, "embeddings": HashedEmbeddings(LONGEST)}
    return Runtime(client, backbones(), Toy(), seed=seed, errors=errors, greedy=greedy, **about)


def training(client: Any, items: Sequence[Item], seed: int = 0, **options: Any) -> Training:
    return Training(items, runtime(client, seed, **options), "toy cell", 64)


RECORD = {**dict.fromkeys(("preset", "method", "benchmark", "backbone", "seed", "module"), "toy"), "simulated": True}


async def trained(
    method: M, folder: Path, client: Any, items: Sequence[Item] | None = None, seed: int = 0, **equipment: Any
) -> M:
    """Train a method on four questions or those given, write what it learned to a folder, and return it."""
    run = training(client, items or questions(4, "t"), seed, **equipment)
    write_training(folder, run, await method.fit(run), RECORD)
    return method


def learned(folder: Path) -> Learned:
    """Read what a method has learned."""
    with safe_open(folder / TRAINED, framework="numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  not a mapping
        return Learned(tensors, orjson.loads(file.metadata()["metadata"]))


async def answered_by(method: Any, client: Any, items: Sequence[Item], **equipment: Any) -> list[Answered]:
    attempts = [(method.solve, item) for item in items]
    return list(await evaluate(attempts, runtime(client, **equipment), "toy", in_flight=3))


def log(folder: Path, measure: str) -> list[float]:
    rows = pq.read_table(folder / "training.parquet").to_pylist()
    return [row["value"] for row in rows if row["measure"] == measure]


async def walked(
    rollout: Any, client: Any, item: Item, seed: int, episode: Episode, **equipment: Any
) -> tuple[Trajectory, Any]:
    """Walk one rollout in a context of its own; return its trajectory and its trace."""
    context = runtime(client, seed, **equipment).context(item, episode)
    return context.close(await rollout.solve(item, context)), rollout.trace


def attempt(correct: bool, *costs: tuple[float, bool]) -> Answered:
    """Return a graded attempt with calls of these prices, each of a step or not."""
    calls = tuple(
        Call(number, "act", 0, "small", "", "", 0, 0, cost, is_step, "stop", None)
        for number, (cost, is_step) in enumerate(costs, 1)
    )
    return graded(Trajectory(ITEMS[0], "", calls, ()), correct)


def graded(trajectory: Trajectory, correct: bool) -> Answered:
    return Answered(trajectory, Verdict(correct, "", Status.GRADED))


async def graded_rollouts(walks: Iterable[Awaitable[tuple[Trajectory, Any]]]) -> tuple[list[Answered], list[Any]]:
    """Return rollouts, of which every other one is right, and their traces."""
    pairs = await asyncio.gather(*walks)
    return [graded(trajectory, n % 2 == 0) for n, (trajectory, _) in enumerate(pairs)], [trace for _, trace in pairs]
