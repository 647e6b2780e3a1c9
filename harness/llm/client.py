"""Client of all backbones, and the budget of a preset, summed over the call logs of its cells.

Every model call of every method goes through :class:`ChatClient`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import PositiveFloat, PositiveInt

from harness.concurrency import InFlight
from harness.errors import UserError
from harness.files import Declaration, write_atomically
from harness.llm.backbones import Backbone, Endpoint
from harness.llm.call_log import AttemptLog, CallLog, CallLogReader
from harness.llm.recordings import SERVERS, Recordings
from harness.llm.request import Reply, Request, Served

if TYPE_CHECKING:
    from harness.llm.served_backbone import ServedBackbone
    from harness.simulator.endpoint import SimulatedEndpoint

logger = logging.getLogger(__name__)

# Number of calls after which the logs of other processes are read again.
CHECK_EVERY = 200


class Budget(Declaration):
    """Limits on the sum over all cells of a preset. Calls made between two log reads can exceed them."""

    calls: PositiveInt | None = None
    tokens: PositiveInt | None = None  # prompt plus completion
    cost: PositiveFloat | None = None  # in the paper's unit of cost


class BudgetError(UserError):
    """The budget of a preset is spent."""


class Spending:
    """Budget accounting of one cell: refuses calls once the cells of its preset have spent the budget."""

    def __init__(
        self, preset: str, budget: Budget, logs: Callable[[], Iterable[Path]], backbones: Iterable[Backbone]
    ) -> None:
        self._preset, self._budget, self._logs = preset, budget, logs
        self._backbones = {backbone.model: backbone for backbone in backbones}
        self._paid = self._in_flight = 0
        self._ended = asyncio.Event()
        #: Totals of the finished calls of all cells. Those of other processes date from the last reading of the logs.
        self.spent = self._sum()

    async def pay(self, request: Request, ask: Callable[[], Awaitable[Reply]]) -> Reply:
        """Run ``ask``, which records its reply. If the budget is spent, await calls in flight and raise BudgetError."""
        while (reached := self._reached()) is not None:
            if not self._in_flight:
                raise BudgetError(reached)
            self._ended.clear()
            await self._ended.wait()
        self._in_flight += 1
        try:
            reply = await ask()
            if reply.error is None:
                self.add(request.model, reply.prompt_tokens, reply.completion_tokens)
        finally:
            self._in_flight -= 1
            self._ended.set()
        self._paid += 1
        if self._paid % CHECK_EVERY == 0:
            total = await asyncio.to_thread(self._sum)
            self.spent |= total  # the larger of both, since calls may have ended meanwhile
        return reply

    def add(self, model: str, prompt_tokens: int, completion_tokens: int) -> None:
        self.spent += self._spent(model, 1, prompt_tokens, completion_tokens)

    def _sum(self) -> Counter[str]:
        spent = Counter[str]()
        for log in self._logs():
            with CallLogReader(log) as reader:
                for row in reader.paid():
                    spent += self._spent(*row)
        return spent

    def _spent(self, model: str, calls: int, prompt_tokens: int, completion_tokens: int) -> Counter[str]:
        cost: Any = self._backbones[model].cost(prompt_tokens, completion_tokens) if model in self._backbones else 0.0
        return Counter(calls=calls, tokens=prompt_tokens + completion_tokens, cost=cost)

    def _reached(self) -> str | None:
        for name, limit in self._budget:
            used = self.spent[name]
            if limit is not None and used + (self._in_flight if name == "calls" else 0) >= limit:
                calls, tokens, cost = (self.spent[name] for name in Budget.model_fields)
                return (
                    f"the budget of preset {self._preset} is spent: {used:,.10g} of {limit:,.10g} {name} (in all "
                    f"{calls:,} calls, {tokens:,} tokens, cost {cost:.4g}). Every finished call of a cell is kept; "
                    f"raise `budget`, in config/presets/{self._preset}.yaml or with --config budget='{{...}}', and "
                    "give the same command again to resume"
                )
        return None


class ChatClient(AbstractAsyncContextManager["ChatClient"]):
    """Client that sends each distinct call once. Equal calls in flight share one request.

    Replies come from the log, else from recordings, else from ``in_process`` or the servers.
    """

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        log: CallLog,
        attempts: AttemptLog,
        in_process: SimulatedEndpoint | None = None,
        spending: Spending | None = None,
        recordings: Recordings | None = None,
    ) -> None:
        self.counts = Counter(asked=0, log=0)  # replies by source: backbones, log, recordings
        self.calls_answered = 0  # from all sources
        self.tokens_written = 0  # by backbones
        self._log, self._attempts, self._spending = log, attempts, spending
        self._flight: InFlight[Reply] = InFlight()
        self._in_process, self._recordings = in_process, recordings
        self._backbones: Mapping[str, ServedBackbone] = {}
        if endpoints:
            # Lazy: the import takes a second.
            from harness.llm.served_backbone import ServedBackbone
            from harness.llm.servers import http_client

            http = http_client(sum(endpoint.max_in_flight for endpoint in endpoints.values()))
            self._backbones = {
                key: ServedBackbone(key, endpoint, http, attempts, self._charge) for key, endpoint in endpoints.items()
            }

    async def __aexit__(self, *_: object) -> None:
        await self._flight.close()
        for backbone in self._backbones.values():
            await backbone.close()

    async def served(self, backbone: str, model: str) -> Served:
        """Return the description of a model. Raises UserError if its server is gone or serves another model."""
        if self._in_process is not None:
            return self._in_process.served(model)
        if backbone in self._backbones:
            return await self._backbones[backbone].served(model)
        if self._recordings is None or (recorded := self._recordings.served.get(model)) is None:
            raise UserError(f"the recordings have no call of {model}; take it out of `backbones`")
        return recorded

    async def complete(self, backbone: str, request: Request) -> Reply:
        """Return the reply to a call. If servers refuse or the budget is spent, record nothing and raise UserError."""
        if (reply := self._log.get(request.key)) is not None:
            self.counts["log"] += 1
        elif self._recordings is not None and (reply := self._recordings.get(request.key)) is not None:
            self.counts["recorded"] += 1
        else:
            reply = await self._flight.run_once(request.key.encode(), lambda: self._ask(backbone, request))
        self.calls_answered += 1
        await asyncio.sleep(0)  # Many repeated calls in a row must not hold up progress lines and signals.
        return reply

    async def _ask(self, backbone: str, request: Request) -> Reply:
        async def ask_and_record() -> Reply:
            if self._recordings is not None and backbone not in self._backbones:
                raise self._recordings.missing(request)
            if self._in_process is None:
                reply = await self._backbones[backbone].ask(request)
            else:
                with self._attempts.measure(request.key, "in-process"):
                    reply = self._in_process.complete(request)
            self.counts["asked"] += 1
            self.tokens_written += reply.completion_tokens
            await self._log.append(request, reply)
            return reply

        return await (ask_and_record() if self._spending is None else self._spending.pay(request, ask_and_record))

    async def _charge(self, model: str, prompt_tokens: int, completion_tokens: int) -> None:
        await self._log.charge(model, prompt_tokens, completion_tokens)
        if self._spending is not None:
            self._spending.add(model, prompt_tokens, completion_tokens)


def write_served(folder: Path, served: Iterable[Served], kept: int) -> None:
    """Write ``servers.json`` of a cell: the descriptions of its served models.

    If the log has calls (``kept`` > 0), descriptions that differ from the current ones stay as ``earlier``.
    """
    path = folder / SERVERS
    models = {model.model: {name: value for name, value in asdict(model).items() if name != "root"} for model in served}
    content: dict[str, Any] = orjson.loads(path.read_bytes()) if kept and path.exists() else {"served": models}
    if (before := content["served"]) != models:
        logger.warning("%s: the description of a server changed after the first %d calls were recorded", path, kept)
        content = {"served": models, "earlier": [*content.get("earlier", []), before]}
    write_atomically(path, orjson.dumps(content, option=orjson.OPT_INDENT_2))
