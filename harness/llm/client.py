"""The one request path: every model call of every method goes through :class:`ChatClient`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol

import orjson

from harness.concurrency import InFlight
from harness.errors import UserError
from harness.files import write_atomically
from harness.llm.budget import Spending
from harness.llm.call_log import AttemptLog, CallLog, CallLogReader
from harness.llm.endpoints import IN_PROCESS, Endpoint
from harness.llm.request import Reply, Request, Served

if TYPE_CHECKING:
    from harness.llm.served_backbone import ServedBackbone

SERVERS = "servers.json"


class InProcess(Protocol):
    """Backbones in this process: a pure function of the request."""

    def served(self, model: str) -> Served:
        """The description of a model."""

    def complete(self, request: Request) -> Reply:
        """The outcome of a call."""


@dataclass
class Counts:
    """The source of a reply: ``asked`` a backbone, the ``log`` of this cell, a call in ``flight``, a ``shared`` log."""

    asked: int = 0
    log: int = 0
    flight: int = 0
    shared: int = 0


class ChatClient:
    """Asks backbones, each distinct call once: identical calls in flight share one request."""

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        log: CallLog,
        attempts: AttemptLog,
        shared: Sequence[CallLogReader] = (),  # of finished cells that are declared inputs of this one
        in_process: InProcess | None = None,
        spending: Spending | None = None,
    ) -> None:
        self.counts = Counts()
        self.calls_answered = self.tokens_written = 0  # whatever the source
        self._log = log
        self._shared = shared
        self._spending = spending
        self._flight: InFlight[Reply] = InFlight()
        self._asked: Mapping[str, _InThisProcess | ServedBackbone] = {}
        if in_process is not None:
            self._asked = dict.fromkeys(endpoints, _InThisProcess(in_process, attempts))
        elif endpoints:
            # A second of imports, which a cell without servers does without.
            from harness.llm.served_backbone import connected

            self._asked = connected(endpoints, attempts, self._charge)

    async def __aenter__(self) -> ChatClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._flight.close()
        for one in self._asked.values():
            await one.close()

    async def served(self, backbone: str, model: str) -> Served:
        """What serves a backbone, asked before the first paid call; UserError where it is gone or another model."""
        return await self._asked[backbone].served(model)

    async def complete(self, backbone: str, request: Request) -> Reply:
        """The outcome of a call; UserError, nothing recorded, where the server refuses or the budget is spent."""
        reply = await self._reply(backbone, request)
        self.calls_answered += 1
        self.tokens_written += reply.completion_tokens
        return reply

    async def _reply(self, backbone: str, request: Request) -> Reply:
        if (known := self._log.get(request.key)) is not None:
            self.counts.log += 1
            return known
        key = request.key.encode()
        self.counts.flight += key in self._flight
        return await self._flight.share(key, lambda: self._find(backbone, request))

    async def _find(self, backbone: str, request: Request) -> Reply:
        for other in self._shared:
            if (known := other.get(request.key)) is not None and known.error is None:
                self.counts.shared += 1
                await self._log.append(request, known, asked=False)
                return known
        return await self._ask(backbone, request)

    async def _charge(self, model: str, prompt_tokens: int, completion_tokens: int) -> None:
        await self._log.charge(model, prompt_tokens, completion_tokens)
        if self._spending is not None:
            self._spending.add(model, prompt_tokens, completion_tokens)

    async def _ask(self, backbone: str, request: Request) -> Reply:
        async def recorded() -> Reply:
            reply = await self._asked[backbone].ask(request)
            self.counts.asked += 1
            await self._log.append(request, reply)
            return reply

        return await (recorded() if self._spending is None else self._spending.pay(request, recorded))


class _InThisProcess:
    def __init__(self, answers: InProcess, attempts: AttemptLog) -> None:
        self._answers = answers
        self._attempts = attempts

    async def served(self, model: str) -> Served:
        return self._answers.served(model)

    async def ask(self, request: Request) -> Reply:
        with self._attempts.measure(request.key, IN_PROCESS.urls[0]):
            return self._answers.complete(request)

    async def close(self) -> None:
        pass


def note_served(folder: Path, served: Iterable[Served], encoder: str) -> None:
    """Keep in the folder of a cell what its calls depend on besides prompts: what servers say, and the encoder."""
    said = {one.model: {name: value for name, value in asdict(one).items() if name != "root"} for one in served}
    write_atomically(folder / SERVERS, orjson.dumps({"encoder": encoder, "served": said}, option=orjson.OPT_INDENT_2))


class Recorded:
    """Backbones that answer no call: for replay of a cell whose log has all of them, with the same encoder."""

    def __init__(self, folder: Path, encoder: str) -> None:
        if not (folder / SERVERS).exists():
            raise UserError(f"{folder} holds no recorded run, and no server is asked here (recorded: true)")
        self._folder, self._encoder = folder, encoder
        self._known = orjson.loads((folder / SERVERS).read_bytes())

    def served(self, model: str) -> Served:
        """Return what the servers of a model said when the run was recorded; UserError where none was asked."""
        if model not in self._known["served"]:
            raise UserError(f"{model} was not asked in the recorded run of {self._folder}; take it out of `backbones`")
        return Served(**self._known["served"][model])

    def complete(self, request: Request) -> NoReturn:
        """Refuse a call that is not in the log, by a UserError that says why it may be missing."""
        why = "the log is incomplete, or settings, code or questions are others"
        if (then := self._known["encoder"]) != self._encoder:
            why = f"recorded on another processor type or with other libraries ({then}; here {self._encoder})"
        raise UserError(f"call {request.key} of {request.model} is not in the call log of {self._folder}: {why}")
